"""Merging alerts of the same rule and subject that schema 1 stored."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.alert.merging import merged_alerts, merged_log
from monitor.alert.model import Acknowledgement, Alert, NotificationLogEntry, Phase, fingerprint_of_key, former_key
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import CRITICAL, INFO, WARNING, finding
from tests.alert.schema_1 import QUEUED

POD = finding(rule="shm-pressure", namespace="ml", pod="p")
LATER = replace(POD, labels=POD.labels | QUEUED)
LI = Acknowledgement(at=7.0, by="li")


def stored(found: Finding, phase: Phase, at: float, **more: object) -> Alert:
    """An alert as schema 1 stored it."""
    fired = {"fired_at": at} if phase is not Phase.PENDING else {}
    resolved = {"resolved_at": at + 60.0} if phase is Phase.RESOLVED else {}
    values = {"first_seen_at": at, "seen_at": at, **fired, **resolved, **more}
    fingerprint = fingerprint_of_key(former_key(found.rule, found.labels))
    return Alert(fingerprint=fingerprint, finding=found, phase=phase, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param((Phase.FIRING, 1.0), (Phase.FIRING, 2.0), 0, id="the older one"),
        pytest.param((Phase.PENDING, 2.0), (Phase.PENDING, 1.0), 1, id="the older pending one"),
        pytest.param((Phase.PENDING, 1.0), (Phase.PENDING, 2.0), 0, id="whichever it is"),
        pytest.param((Phase.FIRING, 2.0), (Phase.FIRING, 1.0), 1, id="whatever its labels"),
        pytest.param((Phase.RESOLVED, 1.0), (Phase.FIRING, 2.0), 1, id="firing before resolved"),
        pytest.param((Phase.PENDING, 1.0), (Phase.FIRING, 2.0), 1, id="firing before pending"),
        pytest.param((Phase.PENDING, 2.0), (Phase.RESOLVED, 1.0), 0, id="pending before resolved"),
    ],
)
def test_which_of_two_is_kept(first: tuple[Phase, float], second: tuple[Phase, float], kept: int) -> None:
    both = [stored(POD, *first), stored(LATER, *second)]
    (alert,), merged = merged_alerts(both, ())
    assert (alert.fingerprint, alert.phase) == (both[kept].fingerprint, both[kept].phase)
    assert merged == {both[1 - kept].fingerprint: both[kept].fingerprint}


def test_two_in_one_phase_are_one_with_all_that_is_known() -> None:
    first = stored(POD, Phase.FIRING, 5.0, absent_since=9.0, notified=("ops",), first_seen_at=4.0)
    second = stored(
        LATER, Phase.FIRING, 6.0, notified=("team", "ops"), first_seen_at=3.0, seen_at=12.0, acknowledged=LI
    )
    (alert,), _ = merged_alerts([second, first], ())
    assert (alert.first_seen_at, alert.fired_at, alert.seen_at, alert.absent_since) == (3.0, 5.0, 12.0, None)
    assert alert.notified == ("ops", "team")
    assert alert.acknowledged == LI


def test_each_of_several_subjects_is_merged() -> None:
    other, later = (replace(found, labels=found.labels | {"pod": "q"}) for found in (POD, LATER))
    alerts = [stored(found, Phase.FIRING, at) for at, found in enumerate((POD, LATER, other, later))]
    kept, merged = merged_alerts(alerts, ())
    assert [alert.fingerprint for alert in kept] == [alerts[0].fingerprint, alerts[2].fingerprint]
    assert merged == {alerts[1].fingerprint: alerts[0].fingerprint, alerts[3].fingerprint: alerts[2].fingerprint}


def test_two_absent_ones_resolve_when_the_later_one_would() -> None:
    both = [stored(POD, Phase.FIRING, 1.0, absent_since=9.0), stored(LATER, Phase.FIRING, 2.0, absent_since=7.0)]
    (alert,), _ = merged_alerts(both, ())
    assert alert.absent_since == 9.0


def test_different_subjects_stay_different() -> None:
    other = replace(POD, labels=POD.labels | {"pod": "q"})
    alerts, merged = merged_alerts([stored(POD, Phase.FIRING, 1.0), stored(other, Phase.FIRING, 1.0)], ())
    assert (len(alerts), merged) == (2, {})


@pytest.mark.parametrize(
    ("cause", "expect"),
    [
        pytest.param(former_key(LATER.rule, LATER.labels), LATER.key, id="its new key"),
        pytest.param("node-down|node=n9", "node-down|node=n9", id="an unknown one"),
        pytest.param(None, None, id="none"),
    ],
)
def test_the_cause_of_an_alert(cause: str | None, expect: str | None) -> None:
    symptom = replace(finding(), explained_by=cause)
    alerts, _ = merged_alerts([stored(LATER, Phase.FIRING, 1.0), stored(symptom, Phase.FIRING, 1.0)], ())
    assert alerts[1].finding.explained_by == expect


def test_receivers_are_those_of_the_alert_and_of_the_log() -> None:
    known = stored(POD, Phase.FIRING, 1.0, notified=("ops",))
    entries = [entry(receiver, "g", **{known.fingerprint: WARNING}) for receiver in ("ops", "team")]
    (alert,), _ = merged_alerts([known], [*entries, entry("others", "g", another=WARNING)])
    assert alert.notified == ("ops", "team")


def entry(receiver: str, group: str, **firing: Severity) -> NotificationLogEntry:
    return NotificationLogEntry(receiver=receiver, group=group, at=1.0, firing=firing)


@pytest.mark.parametrize(
    ("entries", "expect"),
    [
        pytest.param([entry("r", "g", old=WARNING)], [{"kept": WARNING}], id="is renamed"),
        pytest.param([entry("r", "g", old=CRITICAL, kept=WARNING)], [{"kept": CRITICAL}], id="the worse severity"),
        pytest.param([entry("r", "g", kept=CRITICAL, old=INFO)], [{"kept": CRITICAL}], id="whichever it is of"),
        pytest.param([entry("r", "g", old=INFO, kept=WARNING)], [{"kept": WARNING}], id="by rank"),
        pytest.param(
            [entry("r", "a", old=WARNING, kept=WARNING), entry("r", "g", kept=WARNING)],
            [None, {"kept": WARNING}],
            id="both in another group",
        ),
        pytest.param([entry("r", "g", kept=WARNING, x=WARNING)], [{"kept": WARNING, "x": WARNING}], id="stays"),
        pytest.param(
            [entry("r", "g", kept=WARNING), entry("r", "h", old=WARNING)], [{"kept": WARNING}, None], id="one group"
        ),
        pytest.param(
            [entry("r", "a", old=WARNING, x=WARNING), entry("r", "g", kept=WARNING)],
            [{"x": WARNING}, {"kept": WARNING}],
            id="the group of the alert that is kept",
        ),
        pytest.param([entry("r", "h", old=WARNING)], [{"kept": WARNING}], id="the only group"),
        pytest.param(
            [entry("r", "h", old=WARNING), entry("r", "b", kept=WARNING)], [None, {"kept": WARNING}], id="the first"
        ),
        pytest.param(
            [entry("r", "a", old=WARNING), entry("r", "h", kept=WARNING)], [{"kept": WARNING}, None], id="of both"
        ),
        pytest.param([entry("r", "g", x=INFO), entry("r", "h", x=INFO)], [{"x": INFO}, {"x": INFO}], id="others"),
        pytest.param(
            [entry("r", "g", kept=WARNING), entry("s", "h", old=WARNING)],
            [{"kept": WARNING}, {"kept": WARNING}],
            id="each receiver has its own",
        ),
    ],
)
def test_the_log_after_merging(entries: list[NotificationLogEntry], expect: list[dict[str, Severity] | None]) -> None:
    after = merged_log(entries, {"old": "kept"}, {"kept": "g"})
    assert [each.firing if each is not None else None for each in after] == expect
