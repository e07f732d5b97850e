from __future__ import annotations

from math import inf

import pytest
from msgspec.structs import replace

from monitor.alert.lifecycle import GROUP_BY, AlertTiming, AlertTimings, advance, group_of, next_change_at
from monitor.alert.model import Acknowledgement, Alert, Phase, fingerprint_of
from monitor.facts.findings import Finding
from tests.alert.scenario import CRITICAL, NOON, WARNING, finding

FIRING, PENDING, RESOLVED = Phase.FIRING, Phase.PENDING, Phase.RESOLVED
FOUND = finding()
FINGERPRINT = fingerprint_of(FOUND)


class Life:
    """Lifecycle of one alert, with times in seconds."""

    def __init__(self, timing: AlertTiming | None = None) -> None:
        self.timings = AlertTimings(timing or AlertTiming())
        self.alerts: dict[str, Alert] = {}

    def at(self, second: float, *findings: Finding) -> Phase | None:
        self.alerts = advance(self.alerts, findings, self.timings, GROUP_BY, NOON + second)
        return self.alerts[FINGERPRINT].phase if FINGERPRINT in self.alerts else None

    @property
    def alert(self) -> Alert:
        return self.alerts[FINGERPRINT]

    @property
    def next_change(self) -> float:
        return next_change_at(self.alerts.values(), self.timings) - NOON


@pytest.mark.parametrize(
    ("timing", "scenario"),
    [
        pytest.param(AlertTiming(), [(0, True, FIRING)], id="fires at once without a wait"),
        pytest.param(AlertTiming(wait=10), [(0, True, PENDING), (9, True, PENDING), (10, True, FIRING)], id="waits"),
        pytest.param(
            AlertTiming(wait=10),
            [(0, True, PENDING), (9, False, None), (10, True, PENDING), (19, True, PENDING), (20, True, FIRING)],
            id="a pending one that vanishes begins anew",
        ),
        pytest.param(
            AlertTiming(),
            [(0, True, FIRING), (1, False, FIRING), (30, False, FIRING), (31, False, RESOLVED)],
            id="is kept",
        ),
        pytest.param(
            AlertTiming(),
            [(0, True, FIRING), (1, False, FIRING), (30, True, FIRING), (31, False, FIRING), (60, False, FIRING)],
            id="presence breaks an absence",
        ),
        pytest.param(
            AlertTiming(keep=0), [(0, True, FIRING), (1, False, RESOLVED)], id="is over at once if nothing is kept"
        ),
        pytest.param(
            AlertTiming(wait=10, keep=0),
            [(0, True, PENDING), (10, True, FIRING), (11, False, RESOLVED), (12, True, PENDING), (22, True, FIRING)],
            id="waits again when it returns",
        ),
        pytest.param(
            AlertTiming(wait=10, keep=0),
            [(0, True, PENDING), (10, True, FIRING), (11, False, RESOLVED), (12, True, PENDING), (13, False, RESOLVED)],
            id="is over as before when it does not return for long",
        ),
    ],
)
def test_pending_firing_resolved(timing: AlertTiming, scenario: list[tuple[float, bool, Phase | None]]) -> None:
    life = Life(timing)
    assert [life.at(second, *([FOUND] if found else [])) for second, found, _ in scenario] == [
        each[2] for each in scenario
    ]


def test_each_rule_has_its_own_patience() -> None:
    timings = AlertTimings(AlertTiming(wait=5), {"image-pull": AlertTiming(wait=60)})
    assert (timings.of("image-pull").wait, timings.of("disk-full").wait) == (60, 5)


def test_what_is_held_does_not_begin_to_fire_and_goes_on_firing() -> None:
    held = replace(FOUND, held=True)
    life = Life(AlertTiming(wait=10))
    assert [life.at(0, FOUND), life.at(60, held), life.at(600, held)] == [PENDING] * 3
    assert life.at(601, FOUND) is FIRING
    assert [life.at(second, held) for second in (700, 7000, 70000)] == [FIRING] * 3
    assert life.alert.absent_since is None


def test_the_times_of_a_life() -> None:
    life = Life(AlertTiming(wait=10, keep=30))
    for second, found in ((0, True), (10, True), (20, True), (25, False), (55, False)):
        life.at(second, *([FOUND] if found else []))
    first = life.alert
    assert (first.first_seen_at, first.seen_at, first.fired_at) == (NOON, NOON + 20, NOON + 10)
    assert (first.resolved_at, first.absent_since) == (NOON + 55, None)
    life.at(100, FOUND)
    assert (life.alert.phase, life.alert.first_seen_at, life.alert.resolved_at) == (PENDING, NOON + 100, NOON + 55)
    life.at(110, FOUND)
    assert (life.alert.fired_at, life.alert.resolved_at) == (NOON + 110, None)
    assert life.alert.firings == (NOON + 10, NOON + 110)


def test_a_return_that_does_not_last_leaves_no_trace_in_how_long_it_lasted() -> None:
    life = Life(AlertTiming(wait=10, keep=0))
    for second, found in ((0, True), (10, True), (20, False), (50, True), (52, False)):
        life.at(second, *([FOUND] if found else []))
    assert (life.alert.phase, life.alert.resolved_at) == (RESOLVED, NOON + 20)
    assert life.alert.since <= NOON + 10


def test_a_change_of_severity_or_cause_is_the_same_alert_getting_worse() -> None:
    life = Life()
    life.at(0, FOUND)
    before = life.alert
    life.at(5, replace(FOUND, severity=CRITICAL, cause="system"))
    assert len(life.alerts) == 1
    assert life.alert == replace(
        before, finding=replace(FOUND, severity=CRITICAL, cause="system"), seen_at=NOON + 5
    )  # fmt: skip
    assert life.alert.group == "DiskFull|cause=data"


def test_the_group_is_that_of_its_last_firing() -> None:
    life = Life(AlertTiming(keep=0))
    life.at(0, FOUND)
    life.at(1)
    assert life.alert.group == "DiskFull|cause=data"
    life.at(2, replace(FOUND, cause="system"))
    assert life.alert.group == "DiskFull|cause=system"


def test_what_was_said_about_the_last_firing_does_not_apply_to_the_next() -> None:
    life = Life(AlertTiming(keep=0))
    life.at(0, FOUND)
    said = Acknowledgement(by="operator", at=NOON, comment="looking")
    life.alerts = {FINGERPRINT: replace(life.alert, notified=("ops",), acknowledged=said)}
    life.at(1)
    assert (life.alert.notified, life.alert.acknowledged) == (("ops",), said)
    life.at(2, FOUND)
    assert (life.alert.notified, life.alert.acknowledged) == ((), None)


@pytest.mark.parametrize(
    ("group_by", "group"),
    [
        (GROUP_BY, "DiskFull|cause=data"),
        (("cause",), "DiskFull|cause=data"),
        ((), "DiskFull"),
        (("node", "severity"), "DiskFull|node=n1|severity=warning"),
        (("user",), "DiskFull"),
    ],
)
def test_groups(group_by: tuple[str, ...], group: str) -> None:
    assert group_of(FOUND, group_by) == group


def flap(life: Life, times: int, start: float = 0.0) -> float:
    """Let the alert be present for 10 s and absent for 40 s, `times` times; return its last end."""
    for turn in range(times):
        for second, found in ((0, True), (10, False), (40, False)):
            life.at(start + turn * 50 + second, *([FOUND] if found else []))
    return start + (times - 1) * 50 + 10


def test_what_comes_and_goes_too_often_is_flapping_and_held_for_longer() -> None:
    life = Life()
    flap(life, 3)
    assert (life.alert.phase, life.alert.flapping) == (RESOLVED, False)
    gone = flap(life, 1, start=150)
    assert (life.alert.phase, life.alert.flapping) == (FIRING, True)
    assert life.at(gone + 599) is FIRING
    assert life.at(gone + 600) is RESOLVED


def test_what_goes_on_flapping_while_it_is_held_is_flapping_for_as_long() -> None:
    life = Life()
    flap(life, 4)
    for turn in range(4, 60):
        flap(life, 1, start=turn * 50)
        assert (life.alert.phase, life.alert.flapping) == (FIRING, True)
        assert len(life.alert.firings) <= 4
    assert life.at(3600, FOUND) is FIRING
    assert life.at(3600 + 1800, FOUND) is FIRING
    assert not life.alert.flapping


def test_an_alert_that_stopped_flapping_is_let_go_as_any_other() -> None:
    life = Life()
    flap(life, 4)
    for second in range(160, 2200, 20):
        life.at(second, FOUND)
    assert not life.alert.flapping
    life.at(2200)
    assert life.at(2230) is RESOLVED


@pytest.mark.parametrize("jump", [-31_536_000.0, -3600.0, -1.0, 1.0, 3600.0, 31_536_000.0])
def test_a_clock_that_jumps_resolves_nothing_that_is_there(jump: float) -> None:
    life = Life(AlertTiming(wait=10))
    for second in (0, 10):
        life.at(second, FOUND)
    assert life.at(10 + jump, FOUND) is FIRING
    assert life.at(11, FOUND) is FIRING


def test_a_clock_that_jumps_back_leaves_nothing_stuck() -> None:
    life = Life(AlertTiming(wait=10))
    life.at(0, FOUND)
    back = -86400.0
    assert [life.at(back + 1, FOUND), life.at(back + 11, FOUND)] == [PENDING, FIRING]
    life.at(0)
    assert [life.at(back + 12), life.at(back + 42)] == [FIRING, RESOLVED]


def test_what_was_noted_later_than_now_counts_as_of_now() -> None:
    life = Life()
    flap(life, 2)
    before = life.alert
    life.at(-100)
    times = (life.alert.first_seen_at, life.alert.seen_at, life.alert.fired_at, life.alert.resolved_at)
    assert times == (NOON - 100,) * 4
    assert life.alert.firings == (NOON - 100,) * len(before.firings)


CAUSE = finding(rule="node-down", cause="gone")
SYMPTOM = finding(explained_by=CAUSE)


@pytest.mark.parametrize(
    ("then", "explained"),
    [
        pytest.param([FOUND], True, id="the cause is over first"),
        pytest.param([FOUND, CAUSE], False, id="the cause is there and does not explain it any more"),
        pytest.param([finding(explained_by=finding(rule="other"))], True, id="it has another cause"),
    ],
)
def test_the_cause_is_remembered_while_it_is_not_found(then: list[Finding], explained: bool) -> None:
    life = Life()
    life.at(0, CAUSE, SYMPTOM)
    life.at(5, *then)
    assert (life.alert.finding.explained_by is not None) is explained
    if then[0].explained_by is not None:
        assert life.alert.finding.explained_by == then[0].explained_by


def test_an_alert_that_returns_has_the_cause_it_returns_with() -> None:
    life = Life(AlertTiming(keep=0))
    life.at(0, CAUSE, SYMPTOM)
    life.at(1)
    life.at(2, FOUND)
    assert life.alert.finding.explained_by is None


def test_one_fingerprint_is_one_alert_however_often_it_is_found() -> None:
    life = Life()
    life.at(0, FOUND, replace(FOUND, severity=CRITICAL))
    assert len(life.alerts) == 1
    assert finding("n2").key != FOUND.key
    life.at(1, FOUND, finding("n2", WARNING))
    assert len(life.alerts) == 2


def own_life(timing: AlertTiming) -> Life:
    """Lifecycle with a timing for its rule; the default, which must not apply, is impatient."""
    life = Life()
    life.timings = AlertTimings(AlertTiming(keep=0, flap_count=99), {FOUND.rule: timing})
    return life


def test_the_patience_of_its_own_rule_decides_when_it_is_over() -> None:
    life = own_life(AlertTiming(keep=30))
    assert [life.at(0, FOUND), life.at(1), life.at(30), life.at(31)] == [FIRING, FIRING, FIRING, RESOLVED]


FLAPPING = AlertTiming(keep=10, flap_count=2, flap_window=100, flap_hold=60)


def flapping() -> Life:
    """An alert that fired at 0 and at 20 and is flapping."""
    life = own_life(FLAPPING)
    for second, found in ((0, True), (5, False), (15, False), (20, True)):
        life.at(second, *([FOUND] if found else []))
    assert life.alert.flapping
    return life


@pytest.mark.parametrize(("back", "counts"), [(39, False), (40, True)])
def test_an_absence_counts_as_a_firing_when_it_would_have_been_the_end(back: float, counts: bool) -> None:
    life = flapping()
    life.at(30)
    life.at(back, FOUND)
    assert life.alert.firings == ((NOON + 20, NOON + back) if counts else (NOON, NOON + 20))


@pytest.mark.parametrize(("second", "is_flapping"), [(99, True), (100, False)])
def test_a_firing_counts_for_as_long_as_the_window(second: float, is_flapping: bool) -> None:
    life = flapping()
    life.at(second, FOUND)
    assert life.alert.flapping is is_flapping


def test_one_that_returns_is_seen_when_it_returns() -> None:
    life = Life(AlertTiming(wait=10, keep=0))
    for second, found in ((0, True), (10, True), (20, False)):
        life.at(second, *([FOUND] if found else []))
    assert life.at(50, FOUND) is PENDING
    assert life.alert.seen_at == NOON + 50


def test_an_absence_noted_later_than_now_counts_from_now() -> None:
    life = Life(AlertTiming(keep=30))
    life.at(0, FOUND)
    life.at(1000)
    assert life.at(10) is FIRING
    assert life.alert.absent_since == NOON + 10
    assert [life.at(39), life.at(40)] == [FIRING, RESOLVED]


def test_a_flapping_one_that_was_away_by_a_clock_that_jumped_back_was_away() -> None:
    life = own_life(AlertTiming(keep=0, flap_count=2, flap_window=100, flap_hold=60))
    for second, found in ((0, True), (1, False), (2, True), (10, False), (5, True)):
        life.at(second, *([FOUND] if found else []))
    assert life.alert.firings == (NOON + 2, NOON + 5)


def test_an_alert_knows_its_own_fingerprint() -> None:
    life = Life()
    life.at(0, FOUND)
    assert life.alert.fingerprint == FINGERPRINT


CALM = AlertTiming(wait=10, keep=30, flap_window=600, flap_count=2, flap_hold=120)


def test_time_alone_changes_a_pending_alert_when_its_wait_is_over() -> None:
    life = Life(CALM)
    assert life.next_change == inf
    life.at(0, FOUND)
    assert life.next_change == 10
    life.at(3, replace(FOUND, held=True))
    assert life.next_change == inf


def test_time_alone_changes_a_firing_alert_when_it_no_longer_counts_as_a_recent_firing() -> None:
    life = Life(CALM)
    life.at(0, FOUND)
    life.at(10, FOUND)
    assert life.next_change == 610


def test_time_alone_resolves_an_absent_alert_later_if_it_flaps() -> None:
    life = Life(CALM)
    life.at(0, FOUND)
    life.at(10, FOUND)
    life.at(20)
    assert life.next_change == 50
    life.at(50)
    assert (life.alert.phase, life.next_change) == (RESOLVED, inf)
    life.at(60, FOUND)
    life.at(70, FOUND)
    life.at(80)
    assert (life.alert.flapping, life.next_change) == (True, 200)


def test_the_first_of_all_alerts_decides_when_time_changes_one() -> None:
    timings = AlertTimings(CALM, {"image-pull": AlertTiming(wait=4)})
    late, soon = finding(), replace(finding(), rule="image-pull")
    alerts = advance({}, (late,), timings, GROUP_BY, NOON)
    alerts = advance(alerts, (late, soon), timings, GROUP_BY, NOON + 1)
    assert next_change_at(alerts.values(), timings) == NOON + 5
    resolved = {key: replace(alert, phase=RESOLVED) for key, alert in alerts.items()}
    assert next_change_at((*resolved.values(), *alerts.values()), timings) == NOON + 5
