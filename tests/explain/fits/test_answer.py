"""Would a job fit: verdict and texts, by table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.explain.fits.answer import would_fit
from monitor.explain.fits.model import FitsRequest, FitsResult, Workers
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import OwnerRef, PodFact, TaintFact
from monitor.queries.fits import localize_fits
from tests.explain.builders import GIB, GPU, NOW, holding, node, pod, view

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
NLP = TaintFact(key="dedicated", value="nlp", effect="NoSchedule")
HAMI = "hami.io/node-nvidia-register"
MIG = "nvidia.com/mig-1g.10gb"


def blind(source: str) -> ClusterView:
    return ClusterView(at=NOW, sources=(SourceView(name=source, ok=False, why="forbidden."),))


def daemon(name: str, on: str, **more: Any) -> PodFact:
    return holding(name, on, 0, owner=OwnerRef(kind="DaemonSet", name="exporter", uid="d"), **more)


def amounts(gpus: float, **more: float) -> dict[str, float]:
    return {"cpu": 96.0, "memory": 512.0 * GIB, "pods": 110.0, GPU: gpus} | more


@dataclass(frozen=True)
class Row:
    """A request, and the verdict and texts that it must and must not have."""

    name: str
    asked: dict[str, Any]
    verdict: str
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


TWO = [node("gpu-01"), node("gpu-02")]
ROWS = [
    Row(
        "room on one node", {"gpus": 8}, "now", ("Fits now: 1 x 8 GPUs.", "Room on: gpu-01 (8)."), facts={"nodes": TWO}
    ),
    Row(
        "room on two nodes",
        {"gpus": 16, "per_node": 8},
        "now",
        ("Fits now: 2 x 8 GPUs.", "Room on: gpu-01 (8), gpu-02 (8)."),
        facts={"nodes": TWO},
    ),
    Row(
        "larger than any node, but several have room",
        {"gpus": 16, "cpu_millicores": 32000, "memory_bytes": 160 * GIB},
        "split",
        (
            "Does not fit as 1 x 16 GPUs, but it fits now if it is split differently.",
            "As 2 x 8: gpu-01 (8), gpu-02 (8).",
            "CPU of each pod: 2 per GPU.",
            "Memory of each pod: 10 GiB per GPU.",
        ),
        facts={"nodes": TWO},
    ),
    Row(
        "pods of two sizes",
        {"gpus": 16, "per_node": 8},
        "split",
        ("As 4 x 4:", "As 1 x 8 + 2 x 4: gpu-01 (8), gpu-02 (4), gpu-03 (4)."),
        facts={
            "nodes": [*TWO, node("gpu-03")],
            "pods": [holding("a", "gpu-02", 4), holding("b", "gpu-03", 4)],
        },
    ),
    Row(
        "after a job",
        {"gpus": 8},
        "after",
        (
            "Does not fit now. It fits as 1 x 8 once 1 job has finished.",
            "team-a/big (zhang) holds 8 GPUs on gpu-01 and has been running for 1 h",
            "No estimate of when: too few earlier runs of these jobs are known.",
        ),
        facts={
            "nodes": TWO[:1],
            "pods": [holding("big", "gpu-01", 8, started_at=NOW - 3600)],
            "identities": {"uid-big": Identity(user="zhang")},
        },
    ),
    Row(
        "after the smaller of two jobs",
        {"gpus": 6},
        "after",
        ("team-a/small (team-a) holds 6 GPUs on gpu-02.",),
        ("team-a/big",),
        facts={"nodes": TWO, "pods": [holding("big", "gpu-01", 8), holding("small", "gpu-02", 6)]},
    ),
    Row(
        "a service ends last",
        {"gpus": 8},
        "after",
        ("team-a/train",),
        ("team-a/serve",),
        facts={
            "nodes": TWO,
            "pods": [holding("serve", "gpu-01", 4), holding("train", "gpu-02", 8)],
            "identities": {"uid-serve": Identity(inference=True)},
        },
    ),
    Row(
        "only a service is in the way",
        {"gpus": 8},
        "after",
        ("serve is a service",),
        facts={
            "nodes": TWO[:1],
            "pods": [holding("serve", "gpu-01", 4)],
            "identities": {"uid-serve": Identity(inference=True)},
        },
    ),
    Row(
        "a terminating pod comes first",
        {"gpus": 8},
        "after",
        ("team-a/leaves", "leaves is terminating."),
        ("team-a/stays",),
        facts={
            "nodes": TWO,
            "pods": [holding("stays", "gpu-01", 8), holding("leaves", "gpu-02", 8, deletion_at=NOW)],
        },
    ),
    Row(
        "never as requested, later split",
        {"gpus": 16},
        "after",
        ("Never fits with 16 GPUs per pod. It fits as 2 x 8 once 1 job has finished.", "team-a/big"),
        facts={"nodes": TWO, "pods": [holding("big", "gpu-01", 8)]},
    ),
    Row(
        "more than the cluster has",
        {"gpus": 32, "per_node": 8},
        "never",
        (
            "Does not fit, and waiting for other jobs does not help.",
            "All nodes that it may use have room for at most 2 x 8 GPUs; it needs 4.",
        ),
        facts={"nodes": TWO},
    ),
    Row(
        "no GPUs at all",
        {"gpus": 1},
        "never",
        ("No node offers nvidia.com/gpu.",),
        facts={"nodes": [node("cpu-01", gpus=0)]},
    ),
    Row("no nodes", {"gpus": 1}, "never", ("No node",), facts={}),
    Row(
        "taint",
        {"gpus": 8},
        "never",
        ("dedicated=nlp:NoSchedule",),
        facts={"nodes": [node("gpu-01", taints=(NLP,))]},
    ),
    Row(
        "tolerated taint",
        {"gpus": 8, "tolerations": ("dedicated=nlp",)},
        "now",
        facts={"nodes": [node("gpu-01", taints=(NLP,))]},
    ),
    Row("cordon", {"gpus": 8}, "never", ("cordoned",), facts={"nodes": [node("gpu-01", unschedulable=True)]}),
    Row("not ready", {"gpus": 8}, "never", ("not ready",), facts={"nodes": [node("gpu-01", ready=False)]}),
    Row(
        "after a job, but a cordoned node has room",
        {"gpus": 8},
        "after",
        ("team-a/big", "Has room but accepts no new pods (cordoned): gpu-02 (8)."),
        facts={"nodes": [TWO[0], node("gpu-02", unschedulable=True)], "pods": [holding("big", "gpu-01", 8)]},
    ),
    Row(
        "more memory than any node",
        {"gpus": 1, "memory_bytes": 600 * GIB},
        "never",
        ("memory",),
        facts={"nodes": TWO},
    ),
    Row(
        "a daemon set keeps its CPU",
        {"gpus": 1, "cpu_millicores": 96000},
        "never",
        facts={"nodes": TWO[:1], "pods": [daemon("exporter-1", "gpu-01", cpu=1)]},
    ),
    Row(
        "model",
        {"gpus": 8, "model": "h100"},
        "now",
        ("Room on: gpu-02 (8).", "Select the model in the job's node affinity: nvidia.com/gpu.product in (NVIDIA-H100"),
        facts={"nodes": [node("gpu-01", labels=A100), node("gpu-02", labels=H100)]},
    ),
    Row(
        "no such model",
        {"gpus": 8, "model": "B200"},
        "never",
        ("No node has GPUs of the model B200. Models of the cluster: NVIDIA-A100-SXM4-80GB.",),
        facts={"nodes": [node("gpu-01", labels=A100)]},
    ),
    Row(
        "model that only an agent reports",
        {"gpus": 8, "model": "A100"},
        "now",
        ("metadata.name in (gpu-02)",),
        facts={"nodes": TWO, "view": view(free={"gpu-02": 8}, models={"gpu-02": "A100"})},
    ),
    Row(
        "models that are not known",
        {"gpus": 8, "model": "A100"},
        "unknown",
        ("The GPU model of these nodes is not known: gpu-01, gpu-02.",),
        facts={"nodes": TWO},
    ),
    Row(
        "no room on nodes of the model, and one node does not say its model",
        {"gpus": 8, "model": "A100"},
        "unknown",
        ("The GPU model of these nodes is not known: gpu-02.",),
        facts={"nodes": [node("gpu-01", labels=A100), TWO[1]], "pods": [holding("big", "gpu-01", 8)]},
    ),
    Row(
        "slices",
        {"gpus": 3, "per_node": 1, "resource": MIG},
        "now",
        facts={"nodes": [node("gpu-01", allocatable=amounts(0, **{MIG: 7.0}))]},
    ),
    Row(
        "memory of GPUs is assigned card by card",
        {"gpus": 8, "resource": "nvidia.com/gpumem"},
        "unknown",
        ("nvidia.com/gpumem is assigned card by card",),
        facts={"nodes": TWO},
    ),
    Row(
        "a node of HAMi",
        {"gpus": 8},
        "unknown",
        ("gpu-01",),
        facts={"nodes": [node("gpu-01", annotations={HAMI: "GPU-1,10,8000,100,A100,0,true:"})]},
    ),
    Row(
        "faulty GPUs that the scheduler counts",
        {"gpus": 8},
        "now",
        ("faulty, or in use by leftovers of earlier pods: gpu-01 (2)",),
        facts={"nodes": TWO[:1], "view": view(free={"gpu-01": 6})},
    ),
    Row(
        "room is kept for a pod that preempted others",
        {"gpus": 8},
        "after",
        facts={"nodes": TWO[:1], "pods": [pod("vip", gpus=4, nominated_node="gpu-01")]},
    ),
    Row(
        "pods cannot be read",
        {"gpus": 8},
        "unseen",
        ("The cluster cannot be read: pods: forbidden.",),
        facts={
            "nodes": TWO,
            "view": blind("pods"),
        },
    ),
    Row(
        "quotas matter only with a namespace",
        {"gpus": 8},
        "now",
        facts={
            "nodes": TWO,
            "view": blind("resourcequotas"),
        },
    ),
    Row(
        "a pod slot is missing",
        {"gpus": 2, "per_node": 1},
        "split",
        ("As 1 x 2",),
        facts={"nodes": [node("gpu-01", allocatable=amounts(8, pods=1.0))]},
    ),
]


def ask(row: Row) -> FitsResult:
    return would_fit(FitsRequest(**row.asked), make_cluster_facts(**row.facts), NOW)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_answers(row: Row) -> None:
    result = ask(row)
    text, chinese = ("\n".join(localize_fits(result, lang).lines) for lang in ("en", "zh"))
    assert result.verdict == row.verdict, text
    assert [part for part in row.says if part not in text] == [], text
    assert [part for part in row.silent if part in text] == [], text
    assert len(text.splitlines()) == len(chinese.splitlines())
    assert any("一" <= letter <= "鿿" for letter in chinese)
    assert (result.verdict == "after") == bool(result.waits_for) or row.name.startswith("room is kept")


HELD = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 8)), max_size=8)


@settings(max_examples=200, deadline=None)
@given(HELD, st.integers(1, 8), st.integers(1, 4))
def test_after_the_jobs_it_fits_and_none_of_them_can_be_left_out(
    held: list[tuple[int, int]], per_node: int, pods: int
) -> None:
    nodes = [node(f"n{index}") for index in range(3)]
    free = {each.name: 8 for each in nodes}
    running = []
    for number, (index, gpus) in enumerate(held):
        if free[f"n{index}"] >= gpus:
            free[f"n{index}"] -= gpus
            running.append(holding(f"j{number}", f"n{index}", gpus))
    request = FitsRequest(gpus=per_node * pods, per_node=per_node)
    result = would_fit(request, make_cluster_facts(nodes=nodes, pods=running), NOW)
    assert (result.verdict == "now") == (sum(left // per_node for left in free.values()) >= pods)
    if result.verdict != "after":
        return
    assert result.layout is not None
    wanted = _request(result.layout.workers)
    waits = {job.job for job in result.waits_for}
    assert _fits(wanted, nodes, [each for each in running if each.name not in waits])
    for job in waits:
        assert not _fits(wanted, nodes, [each for each in running if each.name not in waits - {job}])


def _request(workers: tuple[Workers, ...]) -> FitsRequest:
    (only,) = workers
    return FitsRequest(gpus=only.pods * only.gpus, per_node=only.gpus)


def _fits(request: FitsRequest, nodes: list[Any], pods: list[PodFact]) -> bool:
    return would_fit(request, make_cluster_facts(nodes=nodes, pods=pods), NOW).verdict == "now"
