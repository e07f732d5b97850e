"""Facts that are kept from one moment to the next are those that indexing everything would give."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

import pytest

from monitor.facts.cluster import ClusterView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kept_facts import KeptFacts, Moment
from tests.detect.changing_world import World, complete_facts
from tests.detect.test_incremental import DISTURBANCES, RECIPES, Step


def stated(facts: ClusterFacts) -> dict[str, object]:
    return {field.name: getattr(facts, field.name) for field in fields(facts) if field.name != "group_members"}


def moments(steps: Iterable[Step]) -> Iterable[Moment]:
    world = World()
    yield world.moment()
    for step, *arguments in steps:
        getattr(world, step)(*arguments)
        yield world.moment()


@pytest.mark.parametrize("rule", RECIPES)
def test_facts_follow_each_change(rule: str) -> None:
    kept = KeptFacts("nvidia.com/gpu")
    for moment in moments((*(step for each in RECIPES[rule] for step in each), *DISTURBANCES)):
        assert stated(kept.at(moment)) == stated(complete_facts(moment))


def test_what_has_not_changed_is_not_indexed_again() -> None:
    kept = KeptFacts("nvidia.com/gpu")
    *_, moment = moments([("part", "n1", "pod_devices", "of a pod")])
    before = dict(kept.at(moment).bound)
    after = kept.at(replace(moment, events=())).bound
    assert before
    assert all(after[node] is pods for node, pods in before.items())


def test_everything_may_go_and_return() -> None:
    kept = KeptFacts("nvidia.com/gpu")
    *_, moment = moments([("part", "n1", "pod_devices", "of a pod"), ("event", "p0", "refused")])
    empty = Moment(ClusterView(at=moment.view.at))
    for each in (moment, empty, moment):
        assert stated(kept.at(each)) == stated(complete_facts(each))
