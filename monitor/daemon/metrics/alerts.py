"""Metrics of alerts and their delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.alert.delivery.stats import DeliveryStats
from monitor.alert.model import Phase
from monitor.alert.mute import AlertView
from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.facts.findings import Severity

STATES = ("pending", "firing", "silenced", "maintenance", "inhibited")

ALERTS: MetricTable[int] = MetricTable(
    ("severity", "state"), (("gpuwarden_alerts", "Alerts that are not resolved.", lambda count: count),)
)
MESSAGES: MetricTable[int] = MetricTable(
    ("receiver", "state"),
    (
        (
            "gpuwarden_outbox_messages",
            "Messages waiting for delivery, or parked after a permanent failure.",
            lambda count: count,
        ),
    ),
)
DELIVERIES: MetricTable[int] = MetricTable(
    ("receiver", "outcome"),
    counters=(("gpuwarden_deliveries", "Delivery attempts since the start of the process.", lambda count: count),),
)
RECEIVERS: MetricTable[DeliveryStats] = MetricTable(
    ("receiver",),
    (
        ("gpuwarden_delivery_seconds", "Age of the last message at its delivery.", lambda t: t.took),
        ("gpuwarden_receiver_failing_since_seconds", "Start of the current delivery failures (Unix time).",
         lambda t: t.failing_since),
    ),
)  # fmt: skip
TABLES = (ALERTS, MESSAGES, DELIVERIES, RECEIVERS)


def families(views: Iterable[AlertView]) -> Iterable[Metric]:
    """Number of alerts by severity and state."""
    counts = Counter({(severity.value, state): 0 for severity in Severity for state in STATES})
    counts.update(
        (view.alert.finding.severity.value, _state(view)) for view in views if view.alert.phase is not Phase.RESOLVED
    )
    yield from ALERTS.families(counts.items())


def delivery_families(stats: tuple[DeliveryStats, ...]) -> Iterable[Metric]:
    """Queued messages and delivery attempts by receiver."""
    yield from MESSAGES.families(
        ((short(receiver.receiver), state), count)
        for receiver in stats
        for state, count in (("waiting", receiver.waiting), ("parked", receiver.parked))
    )
    yield from DELIVERIES.families(
        ((short(receiver.receiver), outcome), count)
        for receiver in stats
        for outcome, count in receiver.outcomes.items()
    )
    yield from RECEIVERS.families(((short(receiver.receiver),), receiver) for receiver in stats)


def _state(view: AlertView) -> str:
    """State of an alert: pending, firing, or why a firing one is muted."""
    if view.alert.phase is Phase.PENDING:
        return "pending"
    if view.silenced_by is not None:
        return "silenced"
    if view.in_maintenance:
        return "maintenance"
    return "firing" if view.explained_by is None else "inhibited"
