from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.alert.digest import MAX_SUBJECTS, DigestSchedule, digest_notifications, is_due
from monitor.alert.model import Alert, Phase
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

DAILY = DigestSchedule("0 9 * * *", "Asia/Shanghai", ("wecom", "mail"))


def at(day: int, hour: int, minute: int = 0) -> float:
    """Time in March 2024, UTC; Shanghai is eight hours ahead."""
    return datetime(2024, 3, day, hour, minute, tzinfo=UTC).timestamp()


DUE: list[tuple[str, float, float, bool]] = [
    ("not yet", at(4, 1, 0), at(5, 0, 59), False),
    ("now", at(4, 1, 0), at(5, 1, 0), True),
    ("already sent", at(5, 1, 0), at(5, 1, 5), False),
    ("missed while nobody ran", at(1, 1, 0), at(5, 20, 0), True),
]


@pytest.mark.parametrize(("name", "last", "now", "expect"), DUE, ids=[row[0] for row in DUE])
def test_when_a_summary_is_due(name: str, last: float, now: float, expect: bool) -> None:
    assert is_due(DAILY, last, now) is expect


def alert(node: str, phase: Phase = Phase.FIRING, severity: Severity = Severity.WARNING, rule: str = "r") -> Alert:
    finding = Finding(rule=rule, severity=severity, cause="x", labels={"node": node}, headline=Text(key="x"))
    return Alert(fingerprint=node, finding=finding, phase=phase, first_seen_at=1.0, seen_at=1.0)


def test_what_a_summary_says() -> None:
    events = [
        AlertEvent(at=150.0, what=AlertEventKind.FIRED, alert=alert("a")),
        AlertEvent(at=160.0, what=AlertEventKind.RESOLVED, alert=alert("a")),
        AlertEvent(at=170.0, what=AlertEventKind.FIRED, alert=alert("b", rule="s")),
        AlertEvent(at=180.0, what=AlertEventKind.FIRED, alert=alert("c")),
        AlertEvent(at=50.0, what=AlertEventKind.FIRED, alert=alert("old")),
    ]
    alerts = [alert("b"), alert("c", severity=Severity.CRITICAL), alert("a", Phase.RESOLVED), alert("d", Phase.PENDING)]
    first, second = digest_notifications(DAILY, events, alerts, 100.0, 200.0)
    assert (first.receiver, second.receiver) == ("wecom", "mail")
    assert first.id != second.id
    summary = first.summary
    assert summary is not None
    assert (summary.fired, summary.resolved, summary.still_firing) == ({"r": 2, "s": 1}, {"r": 1}, 2)
    assert [subject.fingerprint for subject in first.subjects] == ["c", "b"]


def test_of_many_that_fire_the_worst_go_along() -> None:
    (told, _) = digest_notifications(DAILY, [], [alert(f"n{number:03d}") for number in range(100)], 0.0, 10.0)
    assert told.summary is not None
    assert (len(told.subjects), told.summary.still_firing) == (MAX_SUBJECTS, 100)
