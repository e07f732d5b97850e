"""Alerts, and what becomes of the messages about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.alert.delivery.stats import Traffic
from monitor.alert.model import Phase
from monitor.alert.muted import Shown
from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.facts.findings import Severity

STATES = ("pending", "firing", "silenced", "maintenance", "inhibited")

ALERTS: MetricTable[int] = MetricTable(
    ("severity", "state"), (("gpuwarden_alerts", "Alerts that are not over.", lambda count: count),)
)
MESSAGES: MetricTable[int] = MetricTable(
    ("receiver", "state"),
    (("gpuwarden_outbox_messages", "Messages that wait, or were refused for good.", lambda count: count),),
)
DELIVERIES: MetricTable[int] = MetricTable(
    ("receiver", "outcome"),
    counters=(("gpuwarden_deliveries", "Attempts to deliver, since the start of the process.", lambda count: count),),
)
RECEIVERS: MetricTable[Traffic] = MetricTable(
    ("receiver",),
    (
        ("gpuwarden_delivery_seconds", "How old the last message was when it was delivered.", lambda t: t.took),
        ("gpuwarden_receiver_failing_since_seconds", "Since when it takes no messages (Unix time).",
         lambda t: t.failing_since),
    ),
)  # fmt: skip
TABLES = (ALERTS, MESSAGES, DELIVERIES, RECEIVERS)


def families(shown: Iterable[Shown]) -> Iterable[Metric]:
    """Yield the number of alerts by severity and state."""
    counts = Counter({(severity.value, state): 0 for severity in Severity for state in STATES})
    counts.update(
        (each.alert.finding.severity.value, _state(each)) for each in shown if each.alert.phase is not Phase.RESOLVED
    )
    yield from ALERTS.families(counts.items())


def delivery_families(traffic: tuple[Traffic, ...]) -> Iterable[Metric]:
    """Yield what becomes of messages, by receiver."""
    yield from MESSAGES.families(
        ((short(each.receiver), state), count)
        for each in traffic
        for state, count in (("waiting", each.waiting), ("parked", each.parked))
    )
    yield from DELIVERIES.families(
        ((short(each.receiver), outcome), count) for each in traffic for outcome, count in each.outcomes.items()
    )
    yield from RECEIVERS.families(((short(each.receiver),), each) for each in traffic)


def _state(shown: Shown) -> str:
    """Return where an alert is, and of one that fires why nothing is told about it."""
    if shown.alert.phase is Phase.PENDING:
        return "pending"
    if shown.silenced_by is not None:
        return "silenced"
    if shown.in_maintenance:
        return "maintenance"
    return "firing" if shown.explained_by is None else "inhibited"
