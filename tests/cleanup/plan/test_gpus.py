"""Who has to let go of a card: told first, evicted then. The view is made by the real join."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from monitor.cleanup.model import CleanupPlan, PodWrite
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.policy import Exempt, GpuPolicy
from monitor.detect.base import RuleContext
from monitor.facts.actions import KillProcess
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, Holder, Identity, SourceView
from monitor.facts.kube import OwnerRef, PodFact
from monitor.facts.workload import ContainerFact
from tests.cleanup.builders import container, kept, names, refused
from tests.cluster.builders import NOW, agent, card, device, node, pod, process, uuid
from tests.detect.builders_gpu import GpuContext, idle, remembered, rule_context

HOUR = 3600.0


def scene(given: GpuContext, notices: dict[str, float] | None = None, **settings: Any) -> GpuPlanContext:
    world = given.facts
    tried = settings.pop("tried", {})
    fields: dict[str, Any] = {"name": "g", "notice": 0.0, "zombie_after": None}
    policy = GpuPolicy(**(fields | settings))
    snapshots = {each.node or "": each.snapshot for each in world.agents if each.snapshot is not None}
    pods = {each.uid: each for each in world.pods}
    return GpuPlanContext(policy, given.view, pods, snapshots, NOW, notices or {}, tried)


def plan(given: GpuContext, notices: dict[str, float] | None = None, **settings: Any) -> CleanupPlan:
    return plan_gpus(scene(given, notices, **settings))


# Live pods that do nothing


def holding(*pods: PodFact, seconds: float = 9000.0, watts: float = 60.0) -> GpuContext:
    """Each pod has one card, all idle for so long."""
    cards = [card(n, power_watts=watts, power_limit_watts=400.0) for n in range(len(pods))]
    devices = tuple(device(each, n) for n, each in enumerate(pods))
    witness = agent(*cards, devices=devices, containers=())
    return rule_context(witness, pods=pods, memory=idle(seconds, *range(len(pods))))


def alone(name: str = "p", **more: Any) -> PodFact:
    return pod(name, started_at=NOW - 20_000, **more)


def test_an_idle_pod_is_evicted() -> None:
    found = plan(holding(alone()), idle_after=HOUR)
    (item,) = found.items
    assert item.act == PodWrite(namespace="team", name="p", uid="uid-p", how="evict")
    assert (names(found), item.owner, item.last_used_at, item.risk) == (["team/p"], "alice", NOW - 9000, "high")
    assert names(plan(holding(alone()))) == []  # not asked for


def test_an_inference_service_may_wait_unless_the_policy_includes_it() -> None:
    given, service = holding(alone()), Identity(user="alice", job="chat", inference=True)
    pods = tuple(msgspec.structs.replace(each, identity=service) for each in given.view.pods)
    serving = dataclasses.replace(given, view=msgspec.structs.replace(given.view, pods=pods))
    assert kept(plan(serving, idle_after=HOUR)) == {"team/p": "inference"}
    assert names(plan(serving, idle_after=HOUR, inference=True)) == ["team/p"]


def test_told_then_waited_then_evicted_then_deleted_if_so_told() -> None:
    key, given = "gpu-pod/uid-p", holding(alone())
    cases: list[tuple[dict[str, float], float | None]] = [
        ({}, None),
        ({key: NOW - 10}, NOW - 10 + HOUR),
        ({key: NOW - HOUR}, NOW),
        ({key: NOW - 9001}, None),  # told before it last worked: that was about something else
    ]
    for notices, not_before in cases:
        (item,) = plan(given, notices, idle_after=HOUR, notice=HOUR).items
        assert (item.id, item.not_before) == (key, not_before)
    hows: list[tuple[dict[str, float], float | None, str]] = [
        ({}, 600.0, "evict"),
        ({key: NOW - 500}, 600.0, "evict"),
        ({key: NOW - 700}, 600.0, "delete"),
        ({key: NOW - 700}, None, "evict"),
        ({key: NOW - 9001}, 600.0, "evict"),
    ]
    for tried, delete_after, how in hows:
        act = plan(given, idle_after=HOUR, tried=tried, delete_after=delete_after).items[0].act
        assert isinstance(act, PodWrite)
        assert act.how == how


JOBLESS = OwnerRef(kind="DaemonSet", name="d")
SPARED: list[tuple[str, RuleContext, dict[str, Any], str]] = [
    ("not for long enough", holding(alone()), {"idle_after": 3 * HOUR}, "too-young"),
    ("started lately", holding(pod("p", started_at=NOW - 3000), seconds=9000), {}, "too-young"),
    ("the system's", holding(alone(namespace="kube-system")), {}, "exempt"),
    ("a DaemonSet's", holding(alone(owner=JOBLESS, namespace="gpu-operator")), {}, "exempt"),
    ("in a chosen one", holding(alone(owner=JOBLESS)), {"exempt": Exempt(system_namespaces=("te*",))}, "exempt"),
    ("a namespace", holding(alone()), {"exempt": Exempt(namespaces=("team",))}, "exempt"),
    ("a user", holding(alone()), {"exempt": Exempt(users=("ali*",))}, "exempt"),
    ("a label", holding(alone(labels={"keep": "yes"})), {"exempt": Exempt(labels=("keep=yes",))}, "exempt"),
    ("it is ending", holding(alone(deletion_at=NOW + 10)), {}, "terminating"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "settings", "protection"), [row[1:] for row in SPARED], ids=[r[0] for r in SPARED])
def test_what_keeps_an_idle_pod(given: GpuContext, settings: dict[str, Any], protection: str) -> None:
    found = plan(given, **({"idle_after": HOUR} | settings))
    assert (names(found), list(kept(found).values())) == ([], [protection])


def test_a_card_that_draws_power_works() -> None:
    assert kept(plan(holding(alone(), watts=150.0), idle_after=HOUR)) == {"team/p": "draws-power"}


def test_a_pod_with_one_working_card_keeps_all() -> None:
    p = alone(gpus=2)
    busy = card(1, utilization_ratio=0.9)
    works = process(9, 1, pod_uid=p.uid)
    witness = agent(card(0), busy, processes=(works,), devices=(device(p, 0), device(p, 1)), containers=())
    given = rule_context(witness, pods=(p,), memory=idle(9000, 0))
    assert kept(plan(given, idle_after=HOUR)) == {"team/p": "busy"}


def test_a_job_of_which_one_pod_works_keeps_all() -> None:
    a, b = alone("a"), alone("b")
    works = process(9, 1, pod_uid=b.uid)
    cards = (card(0), card(1, utilization_ratio=0.9))
    witness = agent(*cards, processes=(works,), devices=(device(a, 0), device(b, 1)), containers=())
    given = rule_context(witness, pods=(a, b), memory=idle(9000, 0))
    assert kept(plan(given, idle_after=HOUR)) == {"team/a": "job-busy"}
    both = holding(a, b)
    assert names(plan(both, idle_after=HOUR)) == ["team/a", "team/b"]
    waiting = rule_context(
        agent(card(0), devices=(device(a, 0),), containers=()), pods=(a, alone("b", node=None)), memory=idle(9000, 0)
    )
    assert kept(plan(waiting, idle_after=HOUR)) == {"team/a": "job-busy"}


def test_a_job_of_which_one_pod_cannot_be_seen_keeps_all() -> None:
    a, b = alone("a"), alone("b", node="n2")
    here = agent(card(0), devices=(device(a, 0),), containers=())
    for others, why in (((), "no agent there"), ((agent(node="n2", containers=()),), "its card is not seen")):
        given = rule_context(here, *others, pods=(a, b), nodes=(node("n1"), node("n2")), memory=idle(9000, 0))
        assert kept(plan(given, idle_after=HOUR)) == {"team/a": "unknown"}, why


# What dead pods left


def left(p: PodFact, *containers: ContainerFact, seconds: float = 9000.0, **facts: Any) -> GpuContext:
    """A process of a terminated pod, in a container."""
    fields: dict[str, Any] = {"pod_uid": "uid-p", "container_id": "id-c", "started_at": NOW - 20_000, "name": "python"}
    witness = agent(card(0), processes=(process(7, **(fields | facts)),), containers=containers)
    return rule_context(witness, pods=(p,), memory=remembered("zombie", seconds))


DONE = pod("p", phase="Succeeded")
OVERDUE = pod("p", deletion_at=NOW - 9000)


def test_a_process_of_a_dead_pod_is_ended_by_the_agent() -> None:
    for dead in (DONE, OVERDUE):
        found = plan(left(dead, container("c", state="exited")), zombie_after=600.0)
        (item,) = found.items
        assert item.act == KillProcess(pid=7, started_at=NOW - 20_000, gpu=uuid(0))
        assert (item.name, item.owner) == ("team/p", "alice")


def test_a_finished_pod_whose_container_lives_is_evicted_for_the_kubelet_to_end_it() -> None:
    found = plan(left(DONE, container("c")), zombie_after=600.0)
    assert found.items[0].act == PodWrite(namespace="team", name="p", uid="uid-p", how="evict")
    assert kept(plan(left(OVERDUE, container("c")), zombie_after=600.0)) == {"team/p": "terminating"}


LEFT: list[tuple[str, RuleContext, dict[str, Any], str]] = [
    ("not for long enough", left(DONE, seconds=100.0), {}, "too-young"),
    ("nobody knows when it was started", left(DONE, started_at=None), {}, "unknown"),
    ("the system's", left(pod("p", phase="Failed", namespace="kube-system")), {}, "exempt"),
    ("a user", left(DONE), {"exempt": Exempt(users=("alice",))}, "exempt"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "settings", "protection"), [row[1:] for row in LEFT], ids=[row[0] for row in LEFT])
def test_what_keeps_a_zombie(given: GpuContext, settings: dict[str, Any], protection: str) -> None:
    found = plan(given, zombie_after=600.0, **settings)
    assert (names(found), list(kept(found).values())) == ([], [protection])


def test_a_container_of_a_pod_that_is_gone_is_not_shot_at() -> None:
    given = left(DONE, container("c"))
    gone = scene(given, zombie_after=600.0)
    found = plan_gpus(GpuPlanContext(gone.policy, gone.view, {}, gone.snapshots, NOW))
    assert list(kept(found).values()) == ["container-left"]
    without = {name: msgspec.structs.replace(each, containers=None) for name, each in gone.snapshots.items()}
    assert list(kept(plan_gpus(GpuPlanContext(gone.policy, gone.view, {}, without, NOW))).values()) == ["unknown"]


def test_a_process_on_two_cards_goes_once_and_not_if_one_of_them_protects_it() -> None:
    two = (process(7, 0, pod_uid="uid-p", started_at=5.0), process(7, 1, pod_uid="uid-p", started_at=5.0))
    witness = agent(card(0), card(1), processes=two, containers=())
    memory = remembered("zombie", 9000)
    memory.cards.update(remembered("zombie", 9000, index=1).cards)
    assert len(plan(rule_context(witness, pods=(DONE,), memory=memory), zombie_after=600.0).items) == 1
    late = remembered("zombie", 9000)
    late.cards.update(remembered("zombie", 10, index=1).cards)
    assert names(plan(rule_context(witness, pods=(DONE,), memory=late), zombie_after=600.0)) == []


# Processes of no pod


def stranger(
    seconds: float = 9000.0, *containers: ContainerFact, in_kubernetes: bool = True, **facts: Any
) -> GpuContext:
    fields: dict[str, Any] = {"name": "python", "started_at": NOW - 20_000, "uid": 1001}
    witness = agent(card(0), processes=(process(7, **(fields | facts)),), containers=containers)
    nodes = (node("n1"),) if in_kubernetes else ()
    return rule_context(witness, nodes=nodes, memory=remembered("orphan", seconds))


def test_an_orphan_is_ended() -> None:
    (item,) = plan(stranger(), orphan_after=600.0).items
    assert item.act == KillProcess(pid=7, started_at=NOW - 20_000, gpu=uuid(0))
    assert (item.id, item.owner) == (f"process/n1/7/{NOW - 20_000}", None)
    assert plan(stranger(), orphan_after=600.0, notice=HOUR).items[0].not_before is None
    assert names(plan(stranger())) == []


ORPHANS: list[tuple[str, RuleContext, dict[str, Any], str]] = [
    ("the platform's", stranger(name="nvidia-persiste"), {}, "platform"),
    ("a name that is allowed", stranger(name="dcgm"), {"processes": ("dcgm*",)}, "platform"),
    ("a process without a name", stranger(name=None), {}, "unknown"),
    ("nobody knows when it was started", stranger(started_at=None), {}, "unknown"),
    ("not for long enough", stranger(seconds=100), {}, "too-young"),
    ("it came later than others", stranger(started_at=NOW - 100), {}, "too-young"),
    ("in a container", stranger(9000, container("c"), container_id="id-c"), {}, "container-left"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "settings", "protection"), [r[1:] for r in ORPHANS], ids=[r[0] for r in ORPHANS])
def test_what_keeps_an_orphan(given: GpuContext, settings: dict[str, Any], protection: str) -> None:
    found = plan(given, orphan_after=600.0, **settings)
    assert (names(found), list(kept(found).values())) == ([], [protection])


def test_outside_kubernetes_that_is_how_work_is_done() -> None:
    found = plan(stranger(in_kubernetes=False), orphan_after=600.0)
    assert (names(found), kept(found)) == ([], {})


def test_a_display_is_not_meant() -> None:
    assert names(plan(stranger(kind="graphics"), orphan_after=600.0)) == []


def test_a_display_or_an_ended_process_beside_a_stranger_is_left_alone() -> None:
    facts: dict[str, Any] = {"name": "python", "started_at": NOW - 20_000}
    processes = (process(7, **facts), process(8, kind="graphics", **facts), process(9, state="gone", **facts))
    for others in (processes[1:2], processes[2:]):
        fresh = msgspec.structs.replace(others[0], state_since=NOW - 2)  # or the GPU counts as wedged
        witness = agent(card(0), processes=(processes[0], fresh), containers=())
        given = rule_context(witness, nodes=(node("n1"),), memory=remembered("orphan", 9000))
        found = plan(given, orphan_after=600.0)
        assert [item.act for item in found.items] == [KillProcess(pid=7, started_at=NOW - 20_000, gpu=uuid(0))]
        assert kept(found) == {}


def test_a_zombie_of_unknown_uid_is_not_taken_for_processes_of_no_pod() -> None:
    given = scene(left(DONE, container("c", state="exited"), pod_uid=None), zombie_after=0.0)
    nameless = Holder(pod_uid=None, live=False, by=("process",))
    gpus = tuple(msgspec.structs.replace(gpu, state=GpuState.ZOMBIE, holders=(nameless,)) for gpu in given.view.gpus)
    found = plan_gpus(dataclasses.replace(given, view=msgspec.structs.replace(given.view, gpus=gpus)))
    assert (found.items, found.kept) == ((), ())


# What is not known


def test_what_is_not_known_is_no_permission() -> None:
    seen = scene(holding(alone()), idle_after=HOUR)
    for name in ("kubernetes", "pods"):
        view = msgspec.structs.replace(seen.view, sources=(SourceView(name=name, ok=False),))
        assert (
            refused(plan_gpus(GpuPlanContext(seen.policy, view, seen.pods, seen.snapshots, NOW))) == "kubernetes-unseen"
        )
    assert (
        refused(plan_gpus(GpuPlanContext(seen.policy, seen.view, seen.pods, seen.snapshots, NOW + 121))) == "view-old"
    )
    for pods, snapshots in (({}, seen.snapshots), (seen.pods, {})):
        found = plan_gpus(GpuPlanContext(seen.policy, seen.view, pods, snapshots, NOW))
        assert kept(found) == {"team/p": "unknown"}


def test_an_agent_that_is_silent_proves_nothing() -> None:
    (heard,) = holding(alone()).facts.agents
    quiet = msgspec.structs.replace(heard, silent_since=NOW - 300, received_at=NOW - 400)
    assert isinstance(quiet, AgentFact)
    given = rule_context(quiet, pods=(alone(),), memory=idle(9000, 0))
    assert names(plan(given, idle_after=HOUR)) == []
