from __future__ import annotations

from typing import Any

from monitor.alert.delivery.stats import DeliveryCounters, DeliveryStats
from monitor.alert.model import Alert, Phase
from monitor.alert.mute import AlertView
from monitor.daemon.metrics.alerts import STATES, delivery_families, families
from tests.alert.delivery.sender_support import finding, notification
from tests.daemon.metrics.support import lines


def shown(phase: Phase, severity: str = "warning", **more: Any) -> AlertView:
    found = finding(severity=severity)
    return AlertView(alert=Alert(fingerprint="f", finding=found, phase=phase, first_seen_at=1.0, seen_at=1.0), **more)


def test_alerts_are_counted_by_what_is_done_about_them() -> None:
    given = [
        shown(Phase.PENDING, silenced_by="s"),
        shown(Phase.FIRING),
        shown(Phase.FIRING, "critical"),
        shown(Phase.FIRING, silenced_by="s", explained_by="x"),
        shown(Phase.FIRING, in_maintenance=True),
        shown(Phase.FIRING, explained_by="x"),
        shown(Phase.RESOLVED),
    ]
    found = lines(families(given))
    assert len(found) == 3 * len(STATES)
    assert [line for line in found if not line.endswith(" 0.0")] == [
        *(f'gpuwarden_alerts{{severity="warning",state="{state}"}} 1.0' for state in STATES),
        'gpuwarden_alerts{severity="critical",state="firing"} 1.0',
    ]


def test_what_becomes_of_messages() -> None:
    tally = DeliveryCounters()
    tally.sent([notification(at=5.0), notification(at=3.0)], 7.0)
    tally.failed()
    tally.failed()
    busy = DeliveryStats(
        receiver="bot", waiting=2, parked=1, outcomes=tally.outcomes, took=tally.took, failing_since=9.0
    )  # fmt: skip
    idle = DeliveryStats(receiver="mail", waiting=0, parked=0, outcomes=DeliveryCounters().outcomes)
    assert lines(delivery_families((busy, idle))) == [
        'gpuwarden_outbox_messages{receiver="bot",state="waiting"} 2.0',
        'gpuwarden_outbox_messages{receiver="bot",state="parked"} 1.0',
        'gpuwarden_outbox_messages{receiver="mail",state="waiting"} 0.0',
        'gpuwarden_outbox_messages{receiver="mail",state="parked"} 0.0',
        'gpuwarden_deliveries_total{outcome="sent",receiver="bot"} 1.0',
        'gpuwarden_deliveries_total{outcome="failed",receiver="bot"} 2.0',
        'gpuwarden_deliveries_total{outcome="parked",receiver="bot"} 0.0',
        'gpuwarden_deliveries_total{outcome="sent",receiver="mail"} 0.0',
        'gpuwarden_deliveries_total{outcome="failed",receiver="mail"} 0.0',
        'gpuwarden_deliveries_total{outcome="parked",receiver="mail"} 0.0',
        'gpuwarden_delivery_seconds{receiver="bot"} 4.0',
        'gpuwarden_receiver_failing_since_seconds{receiver="bot"} 9.0',
    ]
