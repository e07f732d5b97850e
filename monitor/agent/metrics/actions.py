"""Actions of the agent."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitor.base.metrics import label
from monitor.facts import NodeSnapshot


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Actions that ended or were refused."""
    actions = snapshot.actions
    if actions is None:
        return
    yield GaugeMetricFamily("gpuwarden_actions_enabled", "Whether this agent executes actions.", actions.enabled)
    ended = CounterMetricFamily("gpuwarden_actions", "Actions that ended.", labels=("kind", "outcome"))
    for key, count in sorted({**actions.done, **actions.failed}.items()):
        kind, _, outcome = key.partition("/")
        ended.add_metric((label(kind), label(outcome)), count)
    refused = CounterMetricFamily("gpuwarden_actions_refused", "Requests that were refused.", labels=("reason",))
    for reason, count in sorted(actions.refused.items()):
        refused.add_metric((label(reason),), count)
    yield from (family for family in (ended, refused) if family.samples)
    if actions.refused_at is not None:
        name = "gpuwarden_actions_refused_last_seconds"
        yield GaugeMetricFamily(name, "When a request was last refused (Unix time).", actions.refused_at)
