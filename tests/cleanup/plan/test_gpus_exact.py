"""Exact limits of GPU plans, to the second, and their texts for each holder."""

from __future__ import annotations

import pytest

from monitor.cleanup.model import KeptItem, PodWrite
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpu_holders import GpuHold
from monitor.cleanup.plan.gpus import _act, plan_gpus
from monitor.cleanup.policy import Exempt
from tests.cleanup.builders import names, refused
from tests.cleanup.plan.test_gpus import DONE, HOUR, alone, holding, left, plan, scene, stranger
from tests.cluster.builders import NOW, agent, card, device
from tests.detect.builders_gpu import idle, rule_context


@pytest.mark.parametrize(("age", "why"), [(120, None), (121, "view-old"), (-121, "view-old")])
def test_a_view_is_too_old_to_the_second(age: float, why: str | None) -> None:
    seen = scene(holding(alone()), idle_after=HOUR)
    found = plan_gpus(GpuPlanContext(seen.policy, seen.view, seen.pods, seen.snapshots, seen.view.at + age))
    assert (refused(found), found.at) == (why, seen.view.at + age)
    if found.refused is not None:
        assert found.refused.values == {"seconds": abs(age)}


@pytest.mark.parametrize(("ago", "how"), [(599, "evict"), (600, "delete"), (9000, "delete"), (9001, "evict")])
def test_a_pod_is_deleted_when_its_eviction_was_tried_for_long_enough_to_the_second(ago: float, how: str) -> None:
    found = plan(holding(alone()), idle_after=HOUR, tried={"gpu-pod/uid-p": NOW - ago}, delete_after=600.0)
    act = found.items[0].act
    assert isinstance(act, PodWrite)
    assert act.how == how


def test_the_longest_idle_first() -> None:
    pods = (alone("a"), alone("b"))
    cards = tuple(card(n, power_watts=60.0, power_limit_watts=400.0) for n in range(2))
    memory = idle(5000, 0)
    memory.cards.update(idle(9000, 1).cards)
    witness = agent(*cards, devices=(device(pods[0], 0), device(pods[1], 1)), containers=())
    assert names(plan(rule_context(witness, pods=pods, memory=memory), idle_after=HOUR)) == ["team/b", "team/a"]


def test_why_a_pod_has_to_let_go() -> None:
    (item,) = plan(holding(alone()), idle_after=HOUR).items
    values = {"node": "n1", "gpu": 0, "seconds": 9000.0, "process": "?", "pid": 0}
    assert (item.why.key, item.why.values, item.node) == ("cleanup.why.gpu-idle", values, "n1")


@pytest.mark.parametrize(("name", "said"), [("python", "python"), (None, "?")])
def test_why_a_process_has_to_go(name: str | None, said: str) -> None:
    (item,) = plan(left(DONE, name=name, seconds=0.0), zombie_after=0.0).items
    values = {"node": "n1", "gpu": 0, "seconds": 0.0, "process": said, "pid": 7}
    assert (item.why.key, item.why.values, item.node) == ("cleanup.why.gpu-zombie", values, "n1")
    (orphan,) = plan(stranger(), orphan_after=600.0).items
    assert (orphan.why.values["process"], orphan.why.values["seconds"]) == ("python", 9000.0)


def test_by_what_a_protection_is_known() -> None:
    (found,) = plan(holding(alone()), idle_after=HOUR, exempt=Exempt(users=("ali*",))).kept
    assert found == KeptItem(name="team/p", protection="exempt", node="n1", detail="alice")


def test_a_hold_of_nothing_cannot_be_acted_on() -> None:
    seen = scene(holding(alone()), idle_after=HOUR)
    with pytest.raises(ValueError, match="gpu-pod/None: neither a process nor a pod"):
        _act(GpuHold(seen.view.gpus[0], "idle", NOW, None), seen)
