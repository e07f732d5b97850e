"""The view as a whole: its figures are consistent and do not depend on the order of events."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.view import ViewBuilder, ViewMemory
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.facts import ContainerFact, ContainerUsageFact, LogFact, RuntimeUsageFact, ShmFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, Identity
from monitor.facts.kube import PodFact
from monitor.facts.queues import QueueFact
from tests.cluster.builders import GIB, GPU, NOW, agent, card, device, node, pod, process

KNOWN = ClusterContext(pods_known=True)


def by_label(item: PodFact) -> Identity:
    return Identity(user=item.labels.get("userName"), queue=item.labels.get("queue"))


def build(inputs: ViewInputs, now: float = NOW, memory: ViewMemory | None = None) -> ClusterView:
    return ViewBuilder(identify=by_label, memory=memory or ViewMemory()).build(inputs, now).view()


def two_nodes(*pods: PodFact, queues: tuple[QueueFact, ...] = ()) -> ViewInputs:
    agents = (agent(*(card(i) for i in range(8))), agent(*(card(i, "n2") for i in range(8)), node="n2"))
    around = ClusterContext(queues=queues, pods_known=True)
    return ViewInputs(agents=agents, nodes=(node("n1"), node("n2")), pods=pods, around=around)


def free_of(view: ClusterView) -> dict[str, int | None]:
    return {n.name: n.free for n in view.nodes}


def test_free_is_what_the_scheduler_would_give() -> None:
    view = build(two_nodes(pod("a", "n1", 4), pod("b", "n2", 1), pod("waits", None, 8)))
    (model,) = view.free
    assert free_of(view) == {"n1": 4, "n2": 7}
    assert (model.model, model.total, model.free, model.largest_on_one_node) == ("A100", 16, 11, 7)


@pytest.mark.parametrize(
    ("name", "change", "free", "largest"),
    [
        ("finished pods hold no GPU", {"pods": (pod("a", "n1", 8, phase="Failed"),)}, 16, 8),
        ("a cordoned node has no free GPU", {"nodes": (node("n1", unschedulable=True), node("n2"))}, 8, 8),
        ("nor does a node that is not ready", {"nodes": (node("n1", ready=False), node("n2"))}, 8, 8),
        ("nor a node with a silent kubelet", {"nodes": (node("n1", ready=None), node("n2"))}, 8, 8),
        ("unhealthy devices are not allocatable", {"nodes": (node("n1", allocatable={GPU: 6}), node("n2"))}, 14, 8),
        ("without agents the scheduler's count stands", {"agents": ()}, 16, 8),
    ],
)
def test_free(name: str, change: dict[str, Any], free: int, largest: int) -> None:
    base = two_nodes()
    fields = {f: getattr(base, f) for f in ("agents", "nodes", "pods", "around")} | change
    view = build(ViewInputs(**fields))
    assert (sum(m.free for m in view.free), max(m.largest_on_one_node for m in view.free)) == (free, largest), name


@pytest.mark.parametrize(
    ("name", "change", "free"),
    [
        ("all is known", {}, 8),
        ("a node that is down", {"nodes": (node("n1", ready=False), node("n2"))}, None),
        ("a node whose kubelet is silent", {"nodes": (node("n1", ready=None), node("n2"))}, None),
        ("a silent agent", {"agents": (AgentFact(target="a", node="n1", silent_since=NOW - 60, failures=9),)}, None),
        ("no agent was ever there", {"agents": ()}, 8),
    ],
)
def test_unknown_is_not_free(name: str, change: dict[str, Any], free: int | None) -> None:
    base = two_nodes()
    fields = {f: getattr(base, f) for f in ("agents", "nodes", "pods", "around")} | change
    assert free_of(build(ViewInputs(**fields)))["n1"] == free, name


def test_a_card_somebody_sits_on_unseen_is_not_free() -> None:
    """Seven of eight GPUs are free for the scheduler, but two of them have a host process."""
    report = agent(*(card(i) for i in range(8)), processes=(process(1, 3), process(2, 4)))
    view = build(ViewInputs(agents=(report,), nodes=(node(),), pods=(pod("a"),), around=KNOWN))
    assert free_of(view) == {"n1": 5}


def test_time_sliced_cards_are_counted_in_shares() -> None:
    sliced = node(gpus=4, labels={"nvidia.com/gpu.replicas": "4"})
    view = build(ViewInputs(agents=(agent(card()),), nodes=(sliced,), pods=(pod("a"), pod("b")), around=KNOWN))
    (seen,) = view.nodes
    assert (seen.capacity, seen.allocatable, seen.requested, seen.cards, seen.free) == (None, None, 0, 1, 1)
    assert [(share.resource, share.unit, share.total, share.free) for share in seen.shares] == [(GPU, "slot", 4.0, 2.0)]
    assert [(pod.requested_gpus, pod.gpu_shares) for pod in view.pods] == [(0.0, {f"{GPU}.shared": 1.0})] * 2


def test_without_kubernetes_nodes_are_still_seen() -> None:
    view = build(ViewInputs(agents=(agent(card(0), card(1), processes=(process(1, 0),)),)))
    assert [gpu.state.value for gpu in view.gpus] == ["orphan", "free"]
    assert (free_of(view), view.nodes[0].in_kubernetes) == ({"n1": 1}, False)


def test_without_agents_pods_are_still_seen() -> None:
    view = build(ViewInputs(nodes=(node(),), pods=(pod("a", labels={"userName": "li"}),), around=KNOWN))
    assert (view.pods[0].identity.user, len(view.gpus), view.gpus[0].state) == ("li", 8, GpuState.UNKNOWN)
    assert view.nodes[0].has_agent is False


@pytest.mark.parametrize(
    ("name", "inputs", "expect"),
    [
        ("all agree", two_nodes(), ()),
        ("a GPU is missing", ViewInputs(agents=(agent(card()),), nodes=(node(gpus=2),)), ("capacity-above-cards",)),
        ("a device is unhealthy", ViewInputs(agents=(agent(card()),), nodes=(node(gpus=1, allocatable={GPU: 0}),)),
         ("allocatable-below-capacity",)),
        ("requested but not held", two_nodes(pod("a")), ("requested-above-held",)),
    ],
)  # fmt: skip
def test_counts_that_disagree_are_kept(name: str, inputs: ViewInputs, expect: tuple[str, ...]) -> None:
    assert build(inputs).nodes[0].disagreements == expect, name


def test_queues_come_from_labels_and_from_the_queue_itself() -> None:
    pods = (pod("a", "n1", 3, labels={"queue": "nlp"}), pod("b", None, 2, labels={"queue": "nlp"}),
            pod("c", "n1", 1, labels={"queue": "vision"}))  # fmt: skip
    queues = (QueueFact(uid="q", kind="VolcanoQueue", name="nlp", capacity={GPU: 4.0}, state="open"),)
    view = build(two_nodes(*pods, queues=queues))
    assert [(q.name, q.used, q.waiting, q.free) for q in view.queues] == [("nlp", 3, 2, 1), ("vision", 1, 0, None)]


def test_local_queues_of_one_name_are_told_apart() -> None:
    pods = (pod("a", "n1", 3, labels={"queue": "main"}), pod("b", "n1", 1, labels={"queue": "main"}, namespace="other"))
    queues = tuple(
        QueueFact(uid=ns, kind="LocalQueue", name="main", namespace=ns, capacity={GPU: 4.0}) for ns in ("team", "other")
    )
    view = build(two_nodes(*pods, queues=queues))
    assert [(q.name, q.used, q.free) for q in view.queues] == [("other/main", 1, 3), ("team/main", 3, 1)]


def test_use_by_pod_and_user() -> None:
    a, b = pod("a", labels={"userName": "li"}), pod("b", labels={"userName": "li"})
    containers = tuple(
        ContainerFact(id=c, runtime="docker", state="running", pod_uid=p.uid) for c, p in (("1", a), ("2", a), ("3", b))
    )
    report = agent(
        card(0, utilization_ratio=0.5), card(1, utilization_ratio=1.0),
        processes=(process(1, 0, pod_uid=a.uid), process(2, 1, pod_uid=a.uid), process(3, 1, pod_uid=a.uid)),
        containers=containers,
        container_usage=tuple(ContainerUsageFact(container_id=c, cpu_cores=1.5, memory_bytes=GIB) for c in "123"),
        # the containers of pod a share one /dev/shm; the container of pod b uses that of the host
        shm=(ShmFact(size_bytes=GIB, used_bytes=7, device=1),
             ShmFact(size_bytes=GIB, used_bytes=5, device=2, container_id="1"),
             ShmFact(size_bytes=GIB, used_bytes=5, device=2, container_id="2"),
             ShmFact(size_bytes=GIB, used_bytes=7, device=1, container_id="3")),
        logs=(LogFact(container_id="1", size_bytes=100), LogFact(container_id="2", error="unreadable")),
        runtime_usage=(RuntimeUsageFact(runtime="docker", writable={"1": 1000}),),
    )  # fmt: skip
    view = build(ViewInputs(agents=(report,), nodes=(node(),), pods=(a, b), around=KNOWN))
    use = {p.name: p.usage for p in view.pods}
    assert (use["a"].gpu_memory_bytes, use["a"].gpu_utilization_ratio) == (3 * GIB, 0.75)
    assert (use["a"].cpu_cores, use["a"].memory_bytes, use["a"].shm_bytes, use["a"].disk_bytes) == (
        3.0,
        2 * GIB,
        5,
        1100,
    )
    assert (use["b"].gpu_memory_bytes, use["b"].shm_bytes) == (None, None)
    assert (view.users["li"].gpus, view.users["li"].cpu_cores) == (2, 4.5)


def test_since_is_kept_while_the_state_lasts_and_idleness_through_blindness() -> None:
    builder = ViewBuilder(identify=by_label)
    p = pod("a")

    def at(now: float, heard: float) -> Any:
        report = agent(card(), devices=(device(p),), received_at=heard)
        return (
            builder.build(ViewInputs(agents=(report,), pods=(p,), nodes=(node(gpus=1),), around=KNOWN), now)
            .view()
            .gpus[0]
        )

    assert (at(NOW, NOW).since, at(NOW + 60, NOW + 60).since) == (NOW, NOW)
    blind = at(NOW + 200, NOW + 60)
    assert (blind.state, blind.since, blind.idle_since) == (GpuState.UNKNOWN, NOW + 200, None)
    idle = at(NOW + 1900, NOW + 1900)
    assert (idle.state, idle.idle_since) == (GpuState.IDLE_HELD, NOW)


def test_a_clock_that_is_set_back_leaves_nothing_that_began_in_the_future() -> None:
    builder, deleted = ViewBuilder(identify=by_label), pod("b")

    def at(now: float) -> Any:
        report = agent(card(), devices=(device(deleted),), received_at=now)
        return builder.build(ViewInputs(agents=(report,), nodes=(node(gpus=1),), around=KNOWN), now).view().gpus[0]

    at(NOW + 600)
    gpu = at(NOW)
    assert (gpu.since, gpu.idle_since) == (NOW, NOW)
    assert set(builder.memory.missing.values()) == {NOW}


def test_an_agent_goes_by_its_address_until_it_has_told_its_name() -> None:
    builder = ViewBuilder(identify=by_label)
    unheard = AgentFact(target="n1:9835", silent_since=NOW, failures=1)
    assert [n.name for n in builder.build(ViewInputs(agents=(unheard,)), NOW).view().nodes] == ["n1:9835"]
    assert [n.name for n in builder.update(ViewChanges(agents=(agent(card()),)), NOW).view().nodes] == ["n1"]


def test_memory_survives_a_restart() -> None:
    builder = ViewBuilder(identify=by_label)
    builder.build(two_nodes(pod("a")), NOW)
    saved = msgspec.json.encode(builder.memory)
    assert msgspec.json.decode(saved, type=ViewMemory) == builder.memory


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), repeats=st.integers(1, 3))
def test_the_order_in_which_things_arrive_does_not_show(seed: int, repeats: int) -> None:
    """The same facts, shuffled, delayed and repeated, result in the same view."""
    shuffle = random.Random(seed)
    pods = [pod(f"p{i}", shuffle.choice(["n1", "n2", None]), i % 3) for i in range(12)]
    base = two_nodes(*pods)
    straight = build(base)
    builder = ViewBuilder(identify=by_label)
    for step in range(repeats):  # incomplete facts
        some = ViewInputs(agents=base.agents[: step + 1], nodes=base.nodes, pods=tuple(pods[: 4 * step]), around=KNOWN)
        builder.build(some, NOW)
    agents, nodes = list(base.agents), list(base.nodes)
    for part in (agents, nodes, pods):
        shuffle.shuffle(part)
    end = builder.build(
        ViewInputs(agents=tuple(agents), pods=tuple(pods), nodes=tuple(nodes), around=KNOWN), NOW
    ).view()
    assert msgspec.structs.replace(end, gpus=()) == msgspec.structs.replace(straight, gpus=())
    assert [(g.uuid, g.state, g.holders) for g in end.gpus] == [(g.uuid, g.state, g.holders) for g in straight.gpus]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 30))
def test_updates_end_in_the_view_that_building_anew_would_give(seed: int, steps: int) -> None:
    """Pods appear, move, finish and disappear, agents answer and fall silent, one change at a time."""
    rng = random.Random(seed)
    base = two_nodes()
    builder = ViewBuilder(identify=by_label)
    builder.build(base, NOW)
    pods: dict[str, PodFact] = {}
    agents = {report.target: report for report in base.agents}
    for _ in range(steps):
        name = f"p{rng.randrange(6)}"
        on_node, labels = (
            rng.choice(["n1", "n2", None]),
            {"userName": rng.choice("ab"), "queue": rng.choice("xy")},
        )
        changed = pod(
            name, on_node, rng.randrange(3), labels=labels, phase=rng.choice(["Running", "Failed", "Pending"])
        )
        gone = rng.random() < 0.3
        pods.pop(changed.uid, None) if gone else pods.update({changed.uid: changed})
        n = rng.choice(["n1", "n2"])
        holder = process(1, rng.randrange(8), n, pod_uid=rng.choice(["uid-p1", "uid-p2", None]))
        report = agent(*(card(i, n) for i in range(8)), node=n, processes=(holder,))
        agents[report.target] = report
        updated = builder.update(
            ViewChanges(pods={changed.uid: None if gone else changed}, agents=(report,)), NOW
        ).view()
    anew = build(inputs_of(base, agents, pods), memory=builder.memory)
    assert updated == anew
    waiting = tuple(each for each in anew.pods if each.waiting)
    assert builder.overview() == msgspec.structs.replace(anew, pods=waiting)
    assert updated.gpus_by_node == msgspec.structs.replace(anew, at=0.0).gpus_by_node, "found by a search"


def inputs_of(base: ViewInputs, agents: dict[str, Any], pods: dict[str, PodFact]) -> ViewInputs:
    return ViewInputs(agents=tuple(agents.values()), pods=tuple(pods.values()), nodes=base.nodes, around=KNOWN)
