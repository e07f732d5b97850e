from __future__ import annotations

from msgspec.structs import replace

from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.matchers import parse_matcher
from monitor.alert.model import NotificationReason
from monitor.alert.routes import NotifyPolicy, Route
from tests.alert.scenario import N1, N2, NOON, Scenario, finding, policy, silence, worse


def by_severity() -> NotifyPolicy:
    oncall = Route(("oncall",), (parse_matcher("severity=critical"),), group_wait=0.0)
    return policy(oncall, Route(("team",), group_wait=0.0))


def test_an_alert_that_takes_another_route_is_told_there_and_told_over_to_both() -> None:
    scenario = Scenario(by_severity())
    assert [each.receiver for each in scenario.evaluate(N1)] == ["team"]
    assert [(each.receiver, each.reason) for each in scenario.evaluate(worse(N1), after=5)] == [
        ("oncall", NotificationReason.NEW)
    ]
    assert [(each.receiver, each.reason) for each in scenario.evaluate(N1, after=36000)] == [
        ("team", NotificationReason.REPEAT)
    ]
    scenario.evaluate(after=5)
    over = scenario.evaluate(after=30)
    assert {(each.receiver, each.reason) for each in over} == {
        ("team", NotificationReason.RESOLVED),
        ("oncall", NotificationReason.RESOLVED),
    }
    assert scenario.log == {}


def test_a_route_that_changes_with_the_configuration_tells_the_new_and_ends_with_the_old() -> None:
    scenario = Scenario(policy(Route(("old",), group_wait=0.0)))
    scenario.evaluate(N1)
    moved = (Route(("new",), (parse_matcher("node=n1"),), group_wait=0.0), Route(("old",), group_wait=0.0))
    scenario.policy = policy(*moved)
    assert [each.receiver for each in scenario.evaluate(N1, after=5)] == ["new"]
    assert [each.receiver for each in scenario.evaluate(N1, after=20000)] == ["new"]  # repeated only where it goes
    scenario.evaluate(after=5)
    assert {each.receiver for each in scenario.evaluate(after=30)} == {"new", "old"}


def test_a_receiver_that_is_gone_is_forgotten_and_a_new_one_is_told_all() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.policy = policy(Route(("mail",), group_wait=0.0))
    (told_now,) = scenario.evaluate(N1, after=5)
    assert (told_now.receiver, told_now.reason) == ("mail", NotificationReason.NEW)
    assert {receiver for receiver, _ in scenario.log} == {"mail"}
    scenario.policy = policy()
    assert scenario.notifies(N1, after=5) == ["new n1"]


def test_nobody_to_tell_is_no_trouble() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.policy = NotifyPolicy(routes=())
    assert (scenario.notifies(N1, after=5), scenario.log) == ([], {})


def test_that_somebody_cannot_be_reached_is_told_to_others() -> None:
    scenario = Scenario(policy(Route(("wecom", "mail"), group_wait=0.0)))
    failing = finding(rule="receiver-failing", service="receiver/wecom")
    assert [each.receiver for each in scenario.evaluate(failing)] == ["mail"]
    scenario.evaluate(after=5)
    assert [each.receiver for each in scenario.evaluate(after=30)] == ["mail"]


def test_two_routes_to_one_receiver_tell_it_once() -> None:
    scenario = Scenario(
        policy(Route(("wecom", "wecom"), group_wait=0.0, continue_matching=True), Route(("wecom",), group_wait=0.0))
    )
    assert scenario.notifies(N1) == ["new n1"]


def test_what_an_alert_was_told_in_is_where_its_end_is_told() -> None:
    scenario = Scenario(timings=AlertTimings(AlertTiming(keep=0)))
    scenario.evaluate(N1)
    scenario.policy = policy(silences=(silence("node=n1", until=NOON + 60),))
    scenario.evaluate(after=5)
    other = replace(N1, cause="system")  # returns, with another cause, before its end could be sent
    assert scenario.notifies(other, after=5) == []
    assert scenario.notifies(other, after=60) == []
    (over,) = scenario.evaluate(after=5)
    assert (over.reason, over.group) == (NotificationReason.RESOLVED, "DiskFull|cause=data")


def test_a_return_before_the_end_was_told_is_not_told_at_all() -> None:
    scenario = Scenario(timings=AlertTimings(AlertTiming(keep=0, wait=10)))
    scenario.evaluate(N1, N2)
    assert scenario.notifies(N1, N2, after=10) == ["new n1 n2"]
    assert scenario.notifies(N2, after=5) == []  # n1 resolved; sent with the next message
    assert scenario.notifies(N1, N2, after=30) == []  # pending again: not resolved
    assert scenario.notifies(N1, N2, after=10) == []
    assert scenario.notifies(after=1) == ["resolved -n2 -n1"]
