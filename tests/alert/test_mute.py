from __future__ import annotations

from typing import Any

import pytest

from monitor.alert.matchers import parse_matcher
from monitor.alert.model import Phase
from monitor.alert.windows import MaintenanceWindow
from tests.alert.scenario import CRITICAL, N1, N2, NOON, QUIET, Scenario, finding, night, policy, silence, worse


@pytest.mark.parametrize(
    "mute",
    [
        {"silences": (silence("node=n1", until=NOON + 3600),)},
        {"windows": (MaintenanceWindow("0 12 * * *", 3600.0, matchers=(parse_matcher("node=n1"),)),)},
    ],
    ids=["silence", "maintenance"],
)
def test_what_is_muted_is_told_when_that_ends_if_it_still_fires(mute: dict[str, Any]) -> None:
    scenario = Scenario(policy(**mute))
    assert scenario.notifies(N1, N2) == ["new n2"]
    assert scenario.notifies(N1, N2, after=3599) == []
    assert scenario.notifies(N1, N2, after=1) == ["more-subjects n1 +n2"]


def test_what_began_and_ended_in_a_silence_is_never_told() -> None:
    scenario = Scenario(policy(silences=(silence("node=n1", until=NOON + 3600),)))
    assert [
        scenario.notifies(N1),
        scenario.notifies(after=60),
        scenario.notifies(after=60),
        scenario.notifies(after=4000),
    ] == [[]] * 4


def test_what_was_told_and_ended_in_a_silence_is_told_over_when_that_ends() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.policy = policy(silences=(silence("node=n1", until=NOON + 3600),))
    assert [scenario.notifies(worse(N1), after=60), scenario.notifies(after=60), scenario.notifies(after=60)] == [
        []
    ] * 3
    assert scenario.phase(N1) is Phase.RESOLVED
    assert scenario.notifies(after=2000) == []  # longer than a resolved alert is kept otherwise
    assert scenario.notifies(after=2000) == ["resolved -n1"]


def test_what_ended_and_returned_in_a_silence_is_not_told_again() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.policy = policy(silences=(silence("node=n1", until=NOON + 3600),))
    for found, after in ((), 60.0), ((), 60.0), ((N1,), 60.0):
        assert scenario.notifies(*found, after=after) == []
    scenario.policy = policy()
    assert scenario.notifies(N1, after=60) == []
    assert scenario.notifies(after=1) == []
    assert scenario.notifies(after=60) == ["resolved -n1"]


def test_a_silenced_part_of_a_group_keeps_quiet_about_itself_only() -> None:
    scenario = Scenario()
    scenario.evaluate(N1, N2)
    scenario.policy = policy(silences=(silence("node=n1", until=NOON + 3600),))
    assert scenario.notifies(N1, after=30) == []
    assert scenario.notifies(N1, after=30) == ["resolved -n2"]
    assert scenario.notifies(N1, after=36000) == ["repeat +n1"]


def test_in_quiet_hours_only_what_is_critical_is_told() -> None:
    scenario = Scenario(policy(QUIET), now=night("19 23:00"))
    assert scenario.notifies(N1, worse(N2)) == ["new n2"]
    assert scenario.notifies(worse(N1), worse(N2), after=60) == ["more-subjects n1 +n2"]
    scenario = Scenario(policy(QUIET), now=night("19 23:00"))
    assert scenario.notifies(N1) == []
    scenario.now = night("20 07:59")
    assert scenario.notifies(N1) == []
    assert scenario.notifies(N1, after=60) == ["new n1"]


def test_what_is_over_in_quiet_hours_is_told_in_the_morning_unless_it_was_critical() -> None:
    scenario = Scenario(policy(QUIET), now=night("19 21:59"))
    scenario.evaluate(N1, finding("n2", CRITICAL, cause="system"))
    scenario.now = night("19 22:00")
    assert scenario.notifies() == []
    assert scenario.notifies(after=60) == ["resolved -n2"]
    scenario.now = night("20 08:00")
    assert scenario.notifies() == ["resolved -n1"]


def test_what_gets_critical_in_the_night_is_told_and_told_over_though_it_got_milder() -> None:
    scenario = Scenario(policy(QUIET), now=night("19 21:00"))
    scenario.evaluate(N1)
    scenario.now = night("20 02:00")
    assert scenario.notifies(worse(N1)) == ["worse n1"]
    assert scenario.notifies(N1, after=60) == []
    assert scenario.notifies(worse(N1), after=60) == []
    assert scenario.notifies(N1, after=60) == []
    scenario.evaluate(after=60)
    assert scenario.notifies(after=60) == ["resolved -n1"]
