from __future__ import annotations

import pytest
from msgspec.structs import replace

from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.routes import Route
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import CRITICAL, NOON, QUIET, WARNING, Scenario, finding, night, policy, silence

CAUSE = finding("n0", CRITICAL, rule="node-down", cause="gone")


def symptom(node: str, severity: Severity = WARNING, rule: str = "image-pull") -> Finding:
    return finding(node, severity, rule=rule, cause="dns", explained_by=CAUSE)


def test_a_cause_is_told_with_its_symptoms_in_place_of_them() -> None:
    scenario = Scenario()
    symptoms = [symptom(f"p{number}") for number in range(7)]
    (new,) = scenario.evaluate(CAUSE, *symptoms, symptom("d", rule="disk-full"))
    assert [subject.finding.rule for subject in new.subjects] == ["node-down"]
    assert [(each.rule, each.count) for each in new.symptoms] == [("image-pull", 7), ("disk-full", 1)]
    assert new.symptoms[0].examples == tuple({"node": each.labels["node"]} for each in symptoms[:5])


def without_cause(found: Finding) -> Finding:
    return replace(found, explained_by=None)


def test_symptoms_are_given_time_after_their_cause_is_over() -> None:
    scenario = Scenario()
    scenario.evaluate(CAUSE, symptom("p1"), symptom("p2"))
    left = without_cause(symptom("p1")), without_cause(symptom("p2"))
    assert scenario.notifies(*left, after=5) == []
    assert scenario.notifies(*left, after=30) == ["resolved -n0"]
    assert scenario.notifies(*left, after=59) == []
    assert scenario.notifies(left[0], after=1) == ["new p1"]  # p2 is absent but not resolved yet
    assert scenario.notifies(left[0], after=60) == []


def test_a_pending_cause_holds_its_symptoms_back_unless_nothing_is_known_of_it() -> None:
    timings = AlertTimings(AlertTiming(), {"node-down": AlertTiming(wait=60)})
    scenario = Scenario(timings=timings)
    assert scenario.notifies(CAUSE, symptom("p1")) == []
    assert scenario.notifies(CAUSE, symptom("p1"), after=59) == []
    assert scenario.notifies(CAUSE, symptom("p1"), after=1) == ["new n0"]
    scenario = Scenario(timings=timings)
    scenario.evaluate(CAUSE, symptom("p1"))
    assert scenario.notifies(replace(CAUSE, held=True), symptom("p1"), after=30) == ["new p1"]
    scenario = Scenario(timings=timings)
    scenario.evaluate(CAUSE, symptom("p1"))
    assert scenario.notifies(without_cause(symptom("p1")), after=30) == ["new p1"]


def test_a_symptom_told_before_its_cause_was_found_is_told_over() -> None:
    scenario = Scenario()
    plain = without_cause(symptom("p1"))
    assert scenario.notifies(plain) == ["new p1"]
    assert scenario.notifies(symptom("p1", CRITICAL), CAUSE, after=60) == ["new n0"]
    assert scenario.notifies(CAUSE, after=60) == []
    assert scenario.notifies(CAUSE, after=60) == ["resolved -p1"]


def test_a_symptom_is_not_repeated_but_is_shown_with_the_rest_of_its_group() -> None:
    scenario = Scenario(policy(Route(("wecom",), group_wait=0.0, repeat=600.0)))
    one, two = without_cause(symptom("p1")), without_cause(symptom("p2"))
    scenario.evaluate(one)
    assert scenario.notifies(CAUSE, symptom("p1"), after=60) == ["new n0"]
    assert scenario.notifies(CAUSE, symptom("p1"), after=541) == []
    assert scenario.notifies(CAUSE, symptom("p1"), two, after=1) == ["more-subjects p2 +p1"]


def test_a_symptom_that_gets_worse_is_no_news_beside_others() -> None:
    scenario = Scenario()
    one, two = without_cause(symptom("p1")), without_cause(symptom("p2"))
    scenario.evaluate(one)
    scenario.evaluate(CAUSE, symptom("p1"), after=60)
    assert scenario.notifies(CAUSE, symptom("p1", CRITICAL), two, after=60) == ["more-subjects p2 +p1"]


def test_a_silenced_cause_silences_its_symptoms() -> None:
    scenario = Scenario(policy(silences=(silence("node=n0", until=NOON + 3600),)))
    assert scenario.notifies(CAUSE, symptom("p1"), after=60) == []


def test_a_mild_cause_of_something_critical_is_told_in_the_night() -> None:
    mild = replace(CAUSE, severity=WARNING)
    assert Scenario(policy(QUIET), now=night("19 23:00")).notifies(mild, symptom("p1")) == []
    assert Scenario(policy(QUIET), now=night("19 23:00")).notifies(mild, symptom("p1", CRITICAL)) == ["new n0"]


def test_a_chain_of_causes_is_told_by_its_first() -> None:
    middle = finding("m", rule="registry-down", explained_by=CAUSE)
    last = finding("p1", rule="image-pull", explained_by=middle)
    (new,) = Scenario().evaluate(CAUSE, middle, last)
    assert [subject.finding.rule for subject in new.subjects] == ["node-down"]
    assert {each.rule for each in new.symptoms} == {"registry-down", "image-pull"}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_of_what_explains_itself_in_a_circle_one_is_told(size: int) -> None:
    circle = [finding(f"n{number}", rule="a") for number in range(size)]
    outside = finding("p", rule="b", explained_by=circle[0])
    linked = [replace(each, explained_by=circle[number - 1].key) for number, each in enumerate(circle)]
    (new,) = Scenario().evaluate(*linked, outside)
    assert len(new.subjects) == 1
    assert sum(each.count for each in new.symptoms) == size
