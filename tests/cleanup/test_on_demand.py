"""Plans for requests by a user: what a release of a GPU does, and why it does nothing."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from monitor.cleanup.model import Mode, PodWrite
from monitor.cleanup.on_demand import find_gpu, release_plan, release_policy
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.policy import Exempt, GpuPolicy, ImagePolicy
from monitor.facts.actions import KillProcess
from monitor.facts.cluster import SourceView
from tests.cleanup.builders import container, names, refused
from tests.cleanup.plan.test_gpus import DONE, alone, holding, left, scene, stranger
from tests.cluster.builders import NOW, agent, card, device, node, process, uuid
from tests.detect.builders_gpu import GpuContext, idle, remembered, rule_context


def released(given: GpuContext, *policies: GpuPolicy) -> GpuPlanContext:
    """Context of a release, as the service builds it."""
    return replace(scene(given), policy=release_policy(policies))


def test_the_policy_of_a_release_acts_at_once_with_the_exemptions_of_all() -> None:
    configured = (
        GpuPolicy(name="a", exempt=Exempt(namespaces=("ops",), users=("root",)), processes=("dcgm*",)),
        ImagePolicy(name="images"),
        GpuPolicy(name="b", exempt=Exempt(labels=("keep=yes",))),
    )
    policy = release_policy(configured)
    assert (policy.mode, policy.announce, policy.notice) == (Mode.ENFORCE, 0.0, 0.0)
    assert (policy.zombie_after, policy.idle_after, policy.orphan_after) == (0.0, 0.0, 0.0)
    exempt = policy.exempt
    assert (exempt.namespaces, exempt.users, exempt.labels) == (("ops",), ("root",), ("keep=yes",))
    assert {"dcgm*", *GpuPolicy(name="c").processes} == set(policy.processes)


@pytest.mark.parametrize("gpu", ["1", uuid(1)])
def test_a_gpu_is_named_by_index_or_uuid(gpu: str) -> None:
    context = released(holding(alone("a"), alone("b")))
    assert find_gpu(context, "n1", gpu).index == 1


def test_a_gpu_that_is_not_there() -> None:
    context = released(holding(alone("a"), alone("b")))
    with pytest.raises(ValueError, match=r"^n1 has no GPU 7; it has 0, 1$"):
        find_gpu(context, "n1", "7")
    with pytest.raises(ValueError, match=r"^n2 has no GPU 0; none of its GPUs is known$"):
        find_gpu(context, "n2", "0")


def test_only_the_holder_of_this_gpu_is_evicted() -> None:
    context = released(holding(alone("a"), alone("b")))
    plan = release_plan(context, find_gpu(context, "n1", "1"))
    assert [item.act for item in plan.items] == [PodWrite(namespace="team", name="b", uid="uid-b", how="evict")]
    assert (plan.node, plan.kept) == ("n1", ())


def test_only_processes_on_this_gpu_are_ended() -> None:
    strangers = tuple(process(pid, pid, name="python", started_at=NOW - 20_000) for pid in (0, 1))
    memory = remembered("orphan", 9000)
    memory.cards.update(remembered("orphan", 9000, index=1).cards)
    witness = agent(card(0), card(1), processes=strangers, containers=())
    context = released(rule_context(witness, nodes=(node("n1"),), memory=memory))
    plan = release_plan(context, find_gpu(context, "n1", "1"))
    assert [item.act for item in plan.items] == [KillProcess(pid=1, started_at=NOW - 20_000, gpu=uuid(1))]


def test_what_cannot_be_seen_is_not_released() -> None:
    context = released(holding(alone()))
    view = msgspec.structs.replace(context.view, sources=(SourceView(name="pods", ok=False),))
    plan = release_plan(replace(context, view=view), context.view.gpus[0])
    assert (refused(plan), names(plan)) == ("kubernetes-unseen", [])


@pytest.mark.parametrize(
    ("given", "policies", "why"),
    [
        (holding(alone()), (GpuPolicy(name="g", exempt=Exempt(users=("alice",))),),
         "^GPU 0 on n1 is held by team/p, which is protected: exempt alice$"),
        (stranger(name="nvidia-persiste"), (),
         "^GPU 0 on n1 is held by nvidia-persiste, which is protected: platform nvidia-persiste$"),
        (left(DONE, container("c"), started_at=None), (GpuPolicy(name="g", exempt=Exempt(namespaces=("team",))),),
         "^GPU 0 on n1 is held by team/p, which is protected: exempt team$"),
        (rule_context(agent(card(0), containers=())), (), "^GPU 0 on n1 is free; there is nothing to release$"),
    ],
    ids=["an exempt user", "a process of the platform", "an exempt namespace", "not held"],
)  # fmt: skip
def test_why_a_gpu_is_not_released(given: GpuContext, policies: tuple[GpuPolicy, ...], why: str) -> None:
    context = released(given, *policies)
    with pytest.raises(ValueError, match=why):
        release_plan(context, find_gpu(context, "n1", "0"))


def test_a_protected_holder_of_another_gpu_is_not_the_reason() -> None:
    """An exempt pod leaves GPU 0 idle; GPU 1 is free."""
    idle_pod = alone()
    witness = agent(card(0, power_watts=60.0), card(1), devices=(device(idle_pod),), containers=())
    given = rule_context(witness, pods=(idle_pod,), memory=idle(9000, 0))
    context = released(given, GpuPolicy(name="g", exempt=Exempt(users=("alice",))))
    with pytest.raises(ValueError, match=r"^GPU 1 on n1 is free; there is nothing to release$"):
        release_plan(context, find_gpu(context, "n1", "1"))
    with pytest.raises(ValueError, match="is held by team/p, which is protected"):
        release_plan(context, find_gpu(context, "n1", "0"))
