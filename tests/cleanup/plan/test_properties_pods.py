"""Properties of pod and GPU plans in random worlds, with a second implementation of the protections."""

from __future__ import annotations

from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from monitor.cleanup.model import PodWrite
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.plan.pods import PodContext, plan_pods
from monitor.cleanup.policy import Caps, Exempt, GpuPolicy, PodPolicy
from monitor.cleanup.schedule import is_ready
from monitor.facts.actions import KillProcess
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, Identity, NodeView, PodView
from monitor.facts.gpu import GpuFact, GpuInventory, GpuProcessFact
from monitor.facts.kube import ContainerStatusFact, OwnerRef, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.workload import ContainerFact

NOW = 1_763_260_000.0
HOUR = 3600.0
OWNERS = (
    None,
    OwnerRef(kind="Job", name="j"),
    OwnerRef(kind="DaemonSet", name="d"),
    OwnerRef(kind="ReplicaSet", name="r"),
)
AGO = (2 * HOUR, 9 * HOUR, 5 * HOUR, 3 * HOUR, HOUR, HOUR - 1, 0.0, -HOUR)


def rarely(rng: Random) -> bool:
    """Protections are rare, so that most worlds have something to remove."""
    return rng.random() < 0.08


def some_time(rng: Random) -> float | None:
    return None if rarely(rng) else NOW - rng.choice(AGO)


def make_pod(rng: Random, uid: int, *, live: bool) -> PodFact:
    ended = some_time(rng)
    phases = ("Running",) * 8 + ("Succeeded", "Pending") if live else ("Succeeded", "Failed", "Running")
    ending = rarely(rng) if live else rng.random() < 0.5
    return PodFact(
        uid=f"u{uid}",
        name=f"p{uid}",
        namespace=rng.choice(("vip", "kube-system", "gpu-operator")) if rarely(rng) else "team",
        node=rng.choice(("n2", None)) if rarely(rng) else "n1",
        phase=rng.choice(phases),
        started_at=some_time(rng),
        deletion_at=some_time(rng) if ending else None,
        finalizers=("f",) if rarely(rng) else (),
        owner=rng.choice(OWNERS),
        statuses=(ContainerStatusFact(name="c", state="terminated", finished_at=ended),) if ended else (),
    )


def make_snapshot(rng: Random, *, crowded: bool) -> NodeSnapshot:
    """Snapshot of n1: containers and processes of pods u0 to u3, and processes without a pod."""
    containers = tuple(
        ContainerFact(id=f"c{n}", runtime="docker", state=rng.choice(("running", "exited", "unknown")), pod_uid=f"u{n}")
        for n in range(6)
        if rng.random() < (0.3 if crowded else 0.1)
    )
    processes = tuple(
        GpuProcessFact(
            gpu_uuid=f"g{rng.randrange(3)}", pid=n, kind="compute", state="S", started_at=some_time(rng),
            name=rng.choice(("nvidia-smi", None)) if rarely(rng) else "python",
            pod_uid=f"u{n}" if n < 4 else None, container_id=rng.choice((None, f"c{n}")),
        )
        for n in range(6)
        if rng.random() < (0.6 if crowded else 0.1)
    )  # fmt: skip
    gpus = tuple(
        GpuFact(index=n, uuid=f"g{n}", power_limit_watts=100.0, power_watts=90.0 if rarely(rng) else 10.0)
        for n in range(3)
    )
    return NodeSnapshot(
        node="n1", at=NOW, agent_version="0", gpu=GpuInventory(gpus=gpus),
        containers=None if rng.random() < 0.15 else containers, gpu_processes=None if rarely(rng) else processes,
    )  # fmt: skip


def make_gpu(rng: Random, index: int) -> GpuView:
    ends = (GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.BUSY, GpuState.UNKNOWN)
    state = GpuState.IDLE_HELD if rng.random() < 0.6 else rng.choice(ends)
    lives = (True, False) if state is GpuState.ZOMBIE else (True,) * 9 + (None,)
    holders = tuple(
        Holder(
            pod_uid=f"u{uid}", pod=f"p{uid}", namespace="team", live=rng.choice(lives), job=f"j{uid // 2}",
            user="root" if rarely(rng) else "zhang", by=("checkpoint",) if rarely(rng) else ("process",),
        )
        for uid in range(4)
        if rarely(rng) is not (uid == index)
    )  # fmt: skip
    return GpuView(
        node="n1", state=state, index=index, uuid=f"g{index}", holders=holders, since=some_time(rng),
        idle_since=some_time(rng),
    )  # fmt: skip


# One seed per world: cheap to draw, and often with something to remove.
worlds = st.integers(0, 2**64).map(Random)


@settings(max_examples=2000, deadline=None)
@given(worlds)
def test_no_pod_goes_that_a_protection_covers(rng: Random) -> None:
    given_pods = tuple(make_pod(rng, uid, live=False) for uid in range(4))
    snapshot, heard, silent = make_snapshot(rng, crowded=False), rng.choice((0.0, 30.0, 90.0)), rarely(rng)
    newest, cap, confirmed = rng.randrange(3), rng.randint(1, 3), frozenset({"u0"} if rarely(rng) else ())
    agent = AgentFact(
        target="n1", node="n1", snapshot=snapshot, received_at=NOW - heard, silent_since=NOW - 1 if silent else None
    )
    policy = PodPolicy(
        name="p", finished_after=HOUR, stuck_after=HOUR, keep_newest=newest, caps=Caps(items=cap),
        exempt=Exempt(namespaces=("vip",)),
    )  # fmt: skip
    plan = plan_pods(given_pods, PodContext(policy, NOW, {"n1": agent}, {}, confirmed))
    event(f"{len(plan.items)} pods go")
    assert len(plan.items) <= cap
    for item in plan.items:
        assert isinstance(item.act, PodWrite)
        pod = next(each for each in given_pods if each.uid == item.act.uid)
        assert pod.namespace in ("team", "gpu-operator")
        assert pod.owner is None or pod.owner.kind != "DaemonSet" or pod.namespace == "team"
        assert not pod.finalizers
        if item.act.how == "force":
            assert pod.deletion_at is not None
            assert pod.deletion_at <= NOW - HOUR
            if pod.uid not in confirmed:
                assert pod.node == "n1"
                assert not silent
                assert heard <= 60
                proven_gone(pod, snapshot)
            continue
        ended = [status.finished_at for status in pod.statuses if status.finished_at is not None]
        assert item.act.how == "delete"
        assert pod.phase in ("Succeeded", "Failed")
        assert pod.deletion_at is None
        assert ended
        assert max(ended) <= NOW - HOUR
        if pod.owner is not None:
            siblings = [each for each in given_pods if (each.namespace, each.owner) == (pod.namespace, pod.owner)]
            assert pod.owner.kind == "ReplicaSet" or all(each.phase in ("Succeeded", "Failed") for each in siblings)
            done = [each for each in siblings if each.phase in ("Succeeded", "Failed")]
            later = [each for each in done if end(each) >= end(pod) and each.uid != pod.uid]
            assert len(later) >= newest


def end(pod: PodFact) -> float:
    return max((status.finished_at or 0.0 for status in pod.statuses), default=0.0)


def proven_gone(pod: PodFact, snapshot: NodeSnapshot) -> None:
    assert snapshot.containers is not None
    assert snapshot.gpu_processes is not None
    assert [each for each in snapshot.containers if each.pod_uid == pod.uid and each.state != "exited"] == []
    assert [each for each in snapshot.gpu_processes if each.pod_uid == pod.uid] == []


@settings(max_examples=4000, deadline=None)
@given(worlds)
def test_no_holder_goes_that_a_protection_covers(rng: Random) -> None:
    given_pods = tuple(make_pod(rng, uid, live=True) for uid in range(4))
    snapshot, gpus = make_snapshot(rng, crowded=True), tuple(make_gpu(rng, index) for index in range(3))
    silent, in_kubernetes = rarely(rng), not rarely(rng)
    notices = {f"gpu-pod/u{uid}": NOW - rng.choice(AGO) for uid in range(4) if rng.random() < 0.5}
    node = NodeView(name="n1", in_kubernetes=in_kubernetes, silent_since=NOW - 100 if silent else None)
    views = tuple(
        PodView(
            uid=pod.uid, name=pod.name, namespace="team", phase=pod.phase, node=pod.node, requested_gpus=number < 3,
            identity=Identity(job=f"j{number // 2}"),
        )
        for number, pod in enumerate(given_pods)
    )  # fmt: skip
    view = ClusterView(at=NOW, nodes=(node,), gpus=gpus, pods=views)
    policy = GpuPolicy(
        name="g",
        zombie_after=HOUR,
        idle_after=HOUR,
        orphan_after=HOUR,
        notice=HOUR,
        exempt=Exempt(("vip",), (), ("root",)),
    )
    by_uid = {pod.uid: pod for pod in given_pods}
    plan = plan_gpus(GpuPlanContext(policy, view, by_uid, {"n1": snapshot}, NOW, notices))
    event(f"{len(plan.items)} holders go")
    for item in plan.items:
        assert not silent
        if isinstance(item.act, KillProcess):
            may_be_killed(item.act, snapshot, gpus, by_uid, in_kubernetes)
            continue
        assert isinstance(item.act, PodWrite)
        assert item.act.how == "evict"
        pod = by_uid[item.act.uid]
        assert pod.namespace in ("team", "gpu-operator")
        assert pod.owner is None or pod.owner.kind != "DaemonSet" or pod.namespace == "team"
        assert pod.deletion_at is None
        pod_gpus = [gpu for gpu in gpus if any(each.pod_uid == pod.uid for each in gpu.holders)]
        # In a real view all GPUs of a pod have the same user; here one of them is enough.
        assert any(each.user != "root" for gpu in pod_gpus for each in gpu.holders if each.pod_uid == pod.uid)
        notified_at = notices.get(item.id)
        assert not is_ready(item, NOW) or (notified_at is not None and notified_at <= NOW - HOUR)
        worked = [gpu.idle_since or 0.0 for gpu in held(pod, gpus) if pod.phase == "Running"]
        assert (
            not is_ready(item, NOW) or notified_at is None or notified_at >= max(worked, default=0.0)
        )  # and idle since
        if any(each.live for gpu in pod_gpus for each in gpu.holders if each.pod_uid == pod.uid):
            does_nothing(pod, by_uid, snapshot, gpus)


def held(pod: PodFact, gpus: tuple[GpuView, ...]) -> list[GpuView]:
    return [gpu for gpu in gpus if any(each.pod_uid == pod.uid and each.live for each in gpu.holders)]


def does_nothing(pod: PodFact, by_uid: dict[str, PodFact], snapshot: NodeSnapshot, gpus: tuple[GpuView, ...]) -> None:
    """All GPUs of all pods of the job were idle for an hour; a finished pod with a zombie process is exempt."""
    if pod.phase in ("Succeeded", "Failed"):
        return
    assert pod.started_at is not None
    assert pod.started_at <= NOW - HOUR
    facts = {each.index: each for each in snapshot.gpu.gpus} if snapshot.gpu else {}
    number = int(pod.uid[1:])
    mate = by_uid[f"u{number ^ 1}"]
    assert mate.phase in ("Succeeded", "Failed") or (mate.node == "n1" and mate.phase == "Running")
    for each in (pod, mate):
        if each is mate and mate.phase in ("Succeeded", "Failed"):
            continue
        gpus_of_pod = held(each, gpus)
        assert gpus_of_pod or each.uid == "u3"  # the only pod without a GPU request
        for gpu in gpus_of_pod:
            assert gpu.state is GpuState.IDLE_HELD
            assert gpu.idle_since is not None
            assert (facts[gpu.index].power_watts or 0) < 35
            assert each is mate or gpu.idle_since <= NOW - HOUR


def may_be_killed(
    act: KillProcess,
    snapshot: NodeSnapshot,
    gpus: tuple[GpuView, ...],
    by_uid: dict[str, PodFact],
    in_kubernetes: bool,
) -> None:
    """The process exists, is the same, belongs to no live container, and its pod is dead or missing."""
    process = next(each for each in snapshot.gpu_processes or () if (each.pid, each.gpu_uuid) == (act.pid, act.gpu))
    assert process.started_at == act.started_at
    if process.container_id is not None:
        assert snapshot.containers is not None
        alive = [each.id for each in snapshot.containers if each.state != "exited"]
        assert process.container_id not in alive
    gpu = next(each for each in gpus if each.uuid == act.gpu)
    assert gpu.since is not None
    assert gpu.since <= NOW - HOUR
    if process.pod_uid is None:
        assert in_kubernetes
        assert gpu.state is GpuState.ORPHAN
        assert process.name == "python"
        assert act.started_at <= NOW - HOUR
        return
    assert gpu.state is GpuState.ZOMBIE
    (holder,) = (each for each in gpu.holders if each.pod_uid == process.pod_uid)
    pod = by_uid[process.pod_uid]
    assert holder.live is False
    assert holder.user != "root"
    assert pod.namespace in ("team", "gpu-operator")
    assert pod.owner is None or pod.owner.kind != "DaemonSet" or pod.namespace == "team"
