from __future__ import annotations

from monitor.daemon.metrics.cluster import ClusterFamilies
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuState,
    GpuView,
    Holder,
    Identity,
    NodeView,
    PodView,
    QueueView,
    SourceView,
    UsageView,
)
from tests.daemon.metrics.support import lines

HOLDER = Holder(namespace="nlp", pod="bert-0", user="zhang", job="bert", queue="vc-nlp")
OTHER = Holder(namespace="cv", pod="vit-0", user="li")


def test_a_small_cluster() -> None:
    cards = (
        GpuView(
            node="n1", state=GpuState.BUSY, index=0, uuid="GPU-a", model="A100", since=5.0, holders=(HOLDER, OTHER)
        ),
        GpuView(node="n1", state=GpuState.FREE, index=1, uuid="GPU-b", model="A100"),
    )
    node = NodeView(name="n1", ready=True, schedulable=False, in_kubernetes=True, has_agent=True, requested=1, free=1)
    pod = PodView(
        uid="u", name="bert-0", namespace="nlp", phase="Running", node="n1", requested_gpus=1,
        identity=Identity(user="zhang", job="bert", queue="vc-nlp"),
    )  # fmt: skip
    view = ClusterView(
        at=1.0,
        nodes=(node,),
        gpus=cards,
        pods=(pod, PodView(uid="v", name="cpu-only", namespace="nlp", phase="Running", identity=Identity())),
        free=(FreeView(model="A100", total=2, free=1, largest_on_one_node=1),),
        queues=(QueueView(name="vc-nlp", used=1, waiting=2, capacity=4, free=3),),
        users={"zhang": UsageView(gpus=1, gpu_utilization_ratio=0.5, shm_bytes=7)},
        sources=(SourceView(name="pods", ok=True), SourceView(name="agents", ok=False)),
    )
    assert lines(ClusterFamilies()(view)) == [
        'gpuwarden_source_up{source="pods"} 1.0',
        'gpuwarden_source_up{source="agents"} 0.0',
        'gpuwarden_node_ready{node="n1"} 1.0',
        'gpuwarden_node_schedulable{node="n1"} 0.0',
        'gpuwarden_node_agent_silent{node="n1"} 0.0',
        'gpuwarden_node_requested_gpus{node="n1"} 1.0',
        'gpuwarden_node_free_gpus{node="n1"} 1.0',
        'gpuwarden_gpus{model="A100",node="n1",state="busy"} 1.0',
        'gpuwarden_gpus{model="A100",node="n1",state="free"} 1.0',
        (
            'gpuwarden_gpu_state{gpu="0",model="A100",namespace="nlp",node="n1",pod="bert-0",queue="vc-nlp",state="busy",'
            'user="zhang",uuid="GPU-a",workload="bert"} 1.0'
        ),
        'gpuwarden_gpu_state{gpu="1",model="A100",node="n1",state="free",uuid="GPU-b"} 1.0',
        'gpuwarden_gpu_state_since_seconds{gpu="0",node="n1",uuid="GPU-a"} 5.0',
        'gpuwarden_free_gpus{model="A100"} 1.0',
        'gpuwarden_free_gpus_largest_on_one_node{model="A100"} 1.0',
        'gpuwarden_queue_used_gpus{queue="vc-nlp"} 1.0',
        'gpuwarden_queue_waiting_gpus{queue="vc-nlp"} 2.0',
        'gpuwarden_queue_capacity_gpus{queue="vc-nlp"} 4.0',
        'gpuwarden_queue_free_gpus{queue="vc-nlp"} 3.0',
        'gpuwarden_user_gpus{user="zhang"} 1.0',
        'gpuwarden_user_gpu_utilization_ratio{user="zhang"} 0.5',
        'gpuwarden_user_shm_bytes{user="zhang"} 7.0',
        (
            'gpuwarden_pod_requested_gpus{namespace="nlp",node="n1",phase="Running",pod="bert-0",queue="vc-nlp",'
            'user="zhang",workload="bert"} 1.0'
        ),
    ]


def test_what_nobody_knows_of_a_node_has_no_sample() -> None:
    """A node known only from its agent is neither ready nor not ready; a node without an agent is not silent."""
    alone, bare = NodeView(name="alone", has_agent=True, silent_since=3.0), NodeView(name="bare", in_kubernetes=True)
    assert lines(ClusterFamilies()(ClusterView(at=1.0, nodes=(alone, bare)))) == [
        'gpuwarden_node_schedulable{node="bare"} 1.0',
        'gpuwarden_node_agent_silent{node="alone"} 1.0',
        'gpuwarden_node_requested_gpus{node="bare"} 0.0',
    ]


def test_an_empty_cluster_has_no_samples() -> None:
    assert lines(ClusterFamilies()(ClusterView(at=1.0))) == []


def test_names_that_somebody_chose_to_break_a_scrape_with() -> None:
    users = {'a"} 1\nb\\': UsageView(gpus=1), "x" * 5000: UsageView(gpus=2), "\udcff中": UsageView(gpus=3)}
    assert lines(ClusterFamilies()(ClusterView(at=1.0, users=users))) == [
        'gpuwarden_user_gpus{user="a\\"} 1\\nb\\\\"} 1.0',
        f'gpuwarden_user_gpus{{user="{"x" * 252}…"}} 2.0',
        'gpuwarden_user_gpus{user="\\\\udcff中"} 3.0',
    ]


def test_names_that_are_cut_to_the_same_are_one_series() -> None:
    users = {"x" * 5000: UsageView(gpus=1), "x" * 6000: UsageView(gpus=2)}
    found = lines(ClusterFamilies()(ClusterView(at=1.0, users=users)))
    assert found == [f'gpuwarden_user_gpus{{user="{"x" * 252}…"}} 1.0']
    nodes = tuple(NodeView(name="x" * size, ready=size == 5000) for size in (5000, 6000))
    found = lines(ClusterFamilies()(ClusterView(at=1.0, nodes=nodes)))
    assert found == [f'gpuwarden_node_ready{{node="{"x" * 252}…"}} 1.0']
    gpus = tuple(GpuView(node="x" * size, index=0, state=GpuState.FREE) for size in (5000, 6000))
    found = lines(ClusterFamilies()(ClusterView(at=1.0, gpus=gpus)))
    assert found == [
        f'gpuwarden_gpus{{node="{"x" * 252}…",state="free"}} 1.0',
        f'gpuwarden_gpu_state{{gpu="0",node="{"x" * 252}…",state="free"}} 1.0',
    ]


def test_a_gpu_that_an_agent_reports_twice_is_one_series() -> None:
    gpus = tuple(GpuView(node="n1", index=0, state=state) for state in (GpuState.BUSY, GpuState.FREE))
    found = lines(ClusterFamilies()(ClusterView(at=1.0, gpus=gpus)))
    assert [line for line in found if line.startswith("gpuwarden_gpu_state")] == [
        'gpuwarden_gpu_state{gpu="0",node="n1",state="free"} 1.0'
    ]


def test_what_has_changed_is_rendered_again_and_what_is_gone_is_not() -> None:
    families = ClusterFamilies()

    def rendered(**states: GpuState) -> list[str]:
        gpus = [GpuView(node=name, index=0, state=state, since=1.0) for name, state in states.items()]
        return [line for line in lines(families(ClusterView(at=1.0, gpus=tuple(gpus)))) if "_since_" not in line]

    first = rendered(n1=GpuState.FREE, n2=GpuState.BUSY)
    assert rendered(n1=GpuState.FREE, n2=GpuState.BUSY) == first
    assert rendered(n2=GpuState.FREE) == [
        'gpuwarden_gpus{node="n2",state="free"} 1.0',
        'gpuwarden_gpu_state{gpu="0",node="n2",state="free"} 1.0',
    ]
