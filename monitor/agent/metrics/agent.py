"""The agent itself and its collectors."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos, message_label
from monitor.base.metrics import Row, counters, gauges, label
from monitor.facts import CollectorFact, NodeSnapshot

GAUGES: tuple[Row[CollectorFact], ...] = (
    (
        "gpuwarden_collector_up",
        "Whether the collector's last run succeeded.",
        lambda c: c.outcome == "ok" and not c.hung_since,
    ),
    (
        "gpuwarden_collector_absent",
        "Whether the node does not have what the collector reads.",
        lambda c: c.outcome == "absent",
    ),
    ("gpuwarden_collector_hung", "Whether a run exceeds its time limit.", lambda c: c.hung_since is not None),
    ("gpuwarden_collector_hung_since_seconds", "When the hung run began (Unix time).", lambda c: c.hung_since),
    ("gpuwarden_collector_interval_seconds", "How often it is run.", lambda c: c.interval_seconds),
    ("gpuwarden_collector_duration_seconds", "How long the last run took.", lambda c: c.duration_seconds),
    ("gpuwarden_collector_last_success_seconds", "When a run last succeeded (Unix time).", lambda c: c.succeeded_at),
)
COUNTERS: tuple[Row[CollectorFact], ...] = (
    ("gpuwarden_collector_runs", "Runs that ended.", lambda c: c.runs),
    ("gpuwarden_collector_failures", "Runs that failed.", lambda c: c.failures),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Build info and the state of each collector."""
    info = GaugeMetricFamily("gpuwarden_agent_info", "The agent.", labels=("version", "node", "boot_id"))
    info.add_metric((label(snapshot.agent_version), label(snapshot.node), label(snapshot.boot_id)), 1)
    yield info
    rows = [((label(fact.name),), fact) for fact in snapshot.collectors]
    yield from gauges(GAUGES, ("collector",), rows)
    yield from counters(COUNTERS, ("collector",), rows)
    outcomes = [(label(fact.name), fact.outcome, message_label(fact.message)) for fact in snapshot.collectors]
    text = "How the last run ended: ok, absent, failed or starting, with its message."
    yield from infos("gpuwarden_collector_outcome_info", text, ("collector", "outcome", "message"), outcomes)
