from __future__ import annotations

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from monitor.alert import notify
from monitor.alert.model import Alert, AlertState, NotificationLogEntry, NotificationReason, Phase
from monitor.alert.needs_update import needs_update
from monitor.alert.notify import decide
from monitor.alert.routes import Route
from monitor.facts.findings import Severity
from tests.alert.scenario import CRITICAL, INFO, N1, N2, N3, NOON, WARNING, Scenario, finding, policy, worse


def firing(*severities: Severity, fired_at: float = NOON) -> dict[str, Alert]:
    """Firing alerts n0, n1 … with these severities."""
    found = [finding(f"n{number}", severity) for number, severity in enumerate(severities)]
    return {
        each.labels["node"]: Alert(
            fingerprint=each.labels["node"],
            finding=each,
            phase=Phase.FIRING,
            first_seen_at=fired_at,
            seen_at=fired_at,
            fired_at=fired_at,
        )
        for each in found
    }


def told(**severities: Severity) -> NotificationLogEntry:
    return NotificationLogEntry(receiver="wecom", group="g", at=NOON, firing=severities)


ROUTE = Route(("wecom",), group_wait=5.0, group_interval=30.0, repeat=600.0)


@pytest.mark.parametrize(
    ("before", "now_firing", "over", "after", "reason"),
    [
        pytest.param(None, [], [], 99, None, id="nothing"),
        pytest.param(None, [WARNING], [], 4, None, id="others of the group are waited for"),
        pytest.param(None, [WARNING], [], 5, NotificationReason.NEW, id="new"),
        pytest.param(told(n0=WARNING), [WARNING], [], 599, None, id="known"),
        pytest.param(told(n0=WARNING), [WARNING], [], 600, NotificationReason.REPEAT, id="still there"),
        pytest.param(told(n0=WARNING), [CRITICAL], [], 0, NotificationReason.WORSE, id="worse, at once"),
        pytest.param(told(n0=CRITICAL), [WARNING], [], 60, None, id="milder is no reason"),
        pytest.param(told(n0=INFO), [WARNING], [], 0, NotificationReason.WORSE, id="a little worse"),
        pytest.param(told(n0=WARNING), [WARNING, WARNING], [], 29, None, id="more, but not yet"),
        pytest.param(told(n0=WARNING), [WARNING, WARNING], [], 30, NotificationReason.MORE, id="more"),
        pytest.param(told(n0=WARNING), [WARNING, CRITICAL], [], 0, NotificationReason.WORSE, id="a critical one joins"),
        pytest.param(told(n0=CRITICAL), [CRITICAL, CRITICAL], [], 0, None, id="one as bad joins"),
        pytest.param(
            told(n1=CRITICAL, n9=INFO), [CRITICAL], ["n1"], 0, NotificationReason.MORE, id="a critical one takes over"
        ),
        pytest.param(told(n0=WARNING), [], ["n0"], 0, NotificationReason.RESOLVED, id="all over, at once"),
        pytest.param(told(n0=WARNING, n1=INFO), [], ["n0"], 29, None, id="some over, not yet"),
        pytest.param(told(n0=WARNING, n1=INFO), [], ["n0"], 30, NotificationReason.RESOLVED, id="some over"),
        pytest.param(told(n0=WARNING, n1=INFO), [WARNING], ["n1"], 29, None, id="some over, others fire"),
        pytest.param(told(n1=WARNING), [WARNING], ["n1"], 29, None, id="over, but another began"),
        pytest.param(
            told(n1=WARNING), [WARNING], ["n1"], 30, NotificationReason.MORE, id="over and more in one message"
        ),
        pytest.param(told(n0=WARNING), [], [], 9999, None, id="nothing may be said, so nothing is repeated"),
        pytest.param(told(), [WARNING], [], 5, NotificationReason.NEW, id="nothing was left"),
    ],
)
def test_there_is_one_reason_or_none(
    before: NotificationLogEntry | None,
    now_firing: list[Severity],
    over: list[str],
    after: float,
    reason: NotificationReason | None,
) -> None:
    assert needs_update(before, firing(*now_firing), over, ROUTE, NOON + after) is reason


def test_one_alert_is_told_once_and_once_again_when_it_is_over() -> None:
    scenario = Scenario()
    assert scenario.notifies(N1) == ["new n1"]
    assert [scenario.notifies(N1, after=5) for _ in range(100)] == [[]] * 100
    assert [scenario.notifies(after=5) for _ in range(7)] == [[]] * 6 + [["resolved -n1"]]
    assert [scenario.notifies(after=5) for _ in range(100)] == [[]] * 100
    assert scenario.log == {}


def test_a_group_grows_in_updates_and_shrinks_in_updates() -> None:
    scenario = Scenario()
    assert scenario.notifies(N1) == ["new n1"]
    assert scenario.notifies(N1, N2, after=10) == []
    assert scenario.notifies(N1, N2, N3, after=20) == ["more-subjects n2 n3 +n1"]
    assert scenario.notifies(N1, after=30) == []
    assert scenario.notifies(N1, after=30) == ["resolved -n2 -n3 +n1"]
    assert scenario.notifies(after=1) == []
    assert scenario.notifies(after=30) == ["resolved -n1"]


def test_group_wait_collects_what_begins_together() -> None:
    scenario = Scenario(policy(Route(("wecom",), group_wait=2.0)))
    assert scenario.notifies(N1) == []
    assert scenario.notifies(N1, N2, after=1) == []
    assert scenario.notifies(N1, N2, N3, after=1) == ["new n1 n2 n3"]


def test_getting_milder_and_worse_again_is_told_only_if_milder_was() -> None:
    scenario = Scenario()
    assert scenario.notifies(worse(N1)) == ["new n1"]
    assert scenario.notifies(N1, after=60) == []
    assert scenario.notifies(worse(N1), after=60) == []
    assert scenario.notifies(N1, N2, after=60) == ["more-subjects n2 +n1"]
    assert scenario.notifies(worse(N1), N2, after=1) == ["worse n1 +n2"]
    assert scenario.notifies(worse(N1), N2, after=1) == []


def test_a_change_of_cause_is_no_reason_and_moves_nobody_to_another_message() -> None:
    scenario = Scenario()
    scenario.evaluate(N1, N2)
    assert scenario.notifies(replace(N1, cause="other"), N2, after=60) == []
    assert scenario.notifies(N2, after=1) == []
    assert scenario.notifies(N2, after=60) == ["resolved -n1 +n2"]


def test_what_still_fires_is_repeated() -> None:
    scenario = Scenario(policy(Route(("wecom",), group_wait=0.0, repeat=600.0)))
    scenario.evaluate(N1, N2)
    assert [scenario.notifies(N1, N2, after=100) for _ in range(6)] == [[]] * 5 + [["repeat +n1 +n2"]]
    assert scenario.notifies(N1, N2, after=599) == []


def test_what_joins_with_a_repetition_is_news() -> None:
    scenario = Scenario(policy(Route(("wecom",), group_wait=0.0, group_interval=600.0, repeat=60.0)))
    scenario.evaluate(N1)
    assert scenario.notifies(N1, N2, after=60) == ["repeat n2 +n1"]


def test_what_comes_and_goes_just_now_is_not_told_and_not_repeated() -> None:
    scenario = Scenario(policy(Route(("wecom",), group_wait=2.0, repeat=600.0)))
    assert [scenario.notifies(N1), scenario.notifies(after=2)] == [[], []]
    assert scenario.notifies(N1, after=2) == ["new n1"]
    assert [scenario.notifies(after=590), scenario.notifies(after=20)] == [[], []]
    assert scenario.notifies(N1, after=1) == ["repeat +n1"]


def test_different_causes_are_different_messages() -> None:
    scenario = Scenario()
    found = scenario.evaluate(N1, replace(N2, cause="system"))
    assert {each.group for each in found} == {"DiskFull|cause=data", "DiskFull|cause=system"}


def test_what_is_told_holds_all_that_a_message_needs() -> None:
    scenario = Scenario()
    old = finding("n3", WARNING, since=NOON - 500, user="li")
    zhang, other = finding("n1", WARNING, user="zhang"), finding("n2", CRITICAL, user="li")
    (new,) = scenario.evaluate(zhang, other, old)
    assert (new.reason, new.severity, new.receiver, new.at) == (NotificationReason.NEW, CRITICAL, "wecom", NOON)
    assert [subject.finding.labels["node"] for subject in new.subjects] == ["n2", "n3", "n1"]  # worst, then oldest
    assert new.users == ("li", "zhang")
    assert not new.resolved
    scenario.evaluate(after=1)
    (over,) = scenario.evaluate(after=30)
    assert (over.resolved, over.severity, over.users) == (True, CRITICAL, ())
    assert {subject.resolved_at for subject in over.subjects} == {NOON + 31}


def test_ids_are_the_same_for_the_same_decision_only() -> None:
    scenario = Scenario(policy(Route(("wecom", "mail"), group_wait=0.0)))
    scenario.evaluate(N1)
    state = AlertState(scenario.alerts, {})
    first, again, later = (decide(state, scenario.policy, now).notifications for now in (NOON, NOON, NOON + 1))
    assert [each.id for each in first] == [each.id for each in again]
    assert len({each.id for each in first + later}) == 4


def test_an_alert_is_forgotten_when_it_is_over_for_long_and_nobody_waits_to_hear_of_it() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.evaluate(after=5)
    scenario.evaluate(after=30)
    assert scenario.phase(N1) is Phase.RESOLVED
    scenario.evaluate(after=1799)
    assert scenario.phase(N1) is Phase.RESOLVED
    scenario.evaluate(after=1)
    assert scenario.alerts == {}


def test_of_a_node_that_always_has_other_alerts_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "MAX_REMEMBERED_PER_NODE", 3)
    scenario = Scenario()
    scenario.evaluate(N2)
    for number in range(5):
        scenario.evaluate(finding("liar", mount=f"/{number}"), after=5)
        scenario.evaluate(after=5)
        scenario.evaluate(after=30)
    remembered = [alert.finding.labels.get("mount", "") for alert in scenario.alerts.values()]
    assert sorted(remembered) == ["", "/2", "/3", "/4"]


def test_what_was_told_about_an_alert_that_nobody_knows_is_forgotten() -> None:
    lost = NotificationLogEntry(receiver="wecom", group="DiskFull|cause=data", at=NOON, firing={"0123": CRITICAL})
    scenario = Scenario()
    scenario.log = {("wecom", lost.group): lost}
    assert scenario.notifies() == []
    assert scenario.log == {}
    scenario.log = {("wecom", lost.group): lost}
    assert scenario.notifies(N1) == ["new n1"]


@pytest.mark.parametrize("years", [-1, 1])
def test_a_clock_that_jumps_does_not_hold_messages_back(years: int) -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    jump = years * 31_536_000.0
    assert scenario.notifies(N1, after=jump) == ([] if years < 0 else ["repeat +n1"])
    assert scenario.notifies(N1, N2, after=30) == ["more-subjects n2 +n1"]
    scenario.evaluate(after=1)
    assert scenario.notifies(after=30) == ["resolved -n1 -n2"]


def test_only_what_changes_is_in_the_decision() -> None:
    scenario = Scenario()
    scenario.evaluate(N1)
    scenario.evaluate(N1, after=5)
    assert (scenario.decision.log_changes, scenario.decision.forgotten) == ({}, ())
    scenario.policy = changed(scenario.policy, cluster="b")
    scenario.evaluate(N1, after=5)
    assert scenario.decision.log_changes == {}
