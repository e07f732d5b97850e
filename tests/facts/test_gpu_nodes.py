"""What one GPU of a request is, in clusters in which some nodes share theirs."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.cluster import NodeView, ShareView
from monitor.facts.gpu_nodes import MAX_ANSWERS, GpuNodes
from monitor.facts.gpu_resources import GPU_RESOURCE as GPU
from monitor.facts.gpu_resources import SHARED_GPU, WHOLE_OR_SHARED
from monitor.facts.kube import NodeFact, NodeRequirementFact, PodFact, TaintFact, TolerationFact

SLICED = {"nvidia.com/gpu.replicas": "10"}
DEDICATED = TaintFact(key="pool", value="train", effect="NoSchedule")
TOLERATED = TolerationFact(key="pool", operator="Exists")


def node(name: str, labels: dict[str, str] | None = None, **fields: Any) -> NodeFact:
    return NodeFact(uid=name, name=name, labels={"name": name} | (labels or {}), capacity={GPU: 8.0}, **fields)


def pod(on: str | None = None, amounts: dict[str, float] | None = None, **fields: Any) -> PodFact:
    return PodFact(uid="p", name="p", namespace="team", node=on, requests=amounts or {GPU: 1.0}, **fields)


def nodes(*known: NodeFact) -> GpuNodes:
    found = GpuNodes()
    for each in known:
        found.put(each.name, each, None)
    return found


def among(*names: str) -> tuple[tuple[NodeRequirementFact, ...], ...]:
    return ((NodeRequirementFact(key="metadata.name", operator="In", values=names, field=True),),)


WHOLE, SHARES = node("whole"), node("shares", SLICED)
MIXED = nodes(WHOLE, SHARES, node("shares2", SLICED), NodeFact(uid="cpu", name="cpu", labels={"name": "cpu"}))
RESERVED = nodes(node("whole", taints=(DEDICATED,)), SHARES)
CORDONED = nodes(
    node("whole", taints=(TaintFact(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),)), SHARES
)


@pytest.mark.parametrize(
    ("name", "cluster", "given", "expect"),
    [
        ("no nodes", nodes(), pod(), GPU),
        ("whole GPUs only", nodes(WHOLE), pod(), GPU),
        ("shares only", nodes(SHARES), pod(), SHARED_GPU),
        ("on a node that shares", MIXED, pod("shares"), SHARED_GPU),
        ("on one that does not", MIXED, pod("whole"), GPU),
        ("on one that is not known", MIXED, pod("gone"), GPU),
        ("may run on both", MIXED, pod(), WHOLE_OR_SHARED),
        ("selects one that shares", MIXED, pod(node_selector={"name": "shares"}), SHARED_GPU),
        ("selects one that does not", MIXED, pod(node_selector={"name": "whole"}), GPU),
        ("selects all that share", MIXED, pod(node_selector=SLICED), SHARED_GPU),
        ("affinity to two that share", MIXED, pod(node_affinity=among("shares", "shares2")), SHARED_GPU),
        ("affinity to both kinds", MIXED, pod(node_affinity=among("shares", "whole")), WHOLE_OR_SHARED),
        ("selects one without GPUs", MIXED, pod(node_selector={"name": "cpu"}), WHOLE_OR_SHARED),
        ("selects none", MIXED, pod(node_selector={"name": "typo"}), WHOLE_OR_SHARED),
        ("does not tolerate a taint", RESERVED, pod(), SHARED_GPU),
        ("tolerates the taint", RESERVED, pod(tolerations=(TOLERATED,)), WHOLE_OR_SHARED),
        ("a cordon passes", CORDONED, pod(), WHOLE_OR_SHARED),
        ("HAMi's", MIXED, pod(amounts={GPU: 1.0, "nvidia.com/gpumem": 3000.0}), SHARED_GPU),
        ("HAMi's, bound", nodes(WHOLE), pod("whole", annotations={"hami.io/bind-phase": "success"}), SHARED_GPU),
        ("no GPU", MIXED, pod(amounts={"cpu": 1.0}), GPU),
    ],
)
def test_a_gpu_is_what_it_is_where_the_pod_may_run(name: str, cluster: GpuNodes, given: PodFact, expect: str) -> None:
    assert cluster.counted_as(given) == expect, name


def test_a_limit_is_in_the_unit_of_all_nodes() -> None:
    assert [each.unit for each in (nodes(), nodes(WHOLE), nodes(SHARES), MIXED)] == [
        GPU, GPU, SHARED_GPU, WHOLE_OR_SHARED
    ]  # fmt: skip


def test_only_nodes_of_the_same_unit_are_compared() -> None:
    selects = {name: pod(node_selector={"name": name}) for name in ("whole", "shares")}
    names = ("whole", "shares", "cpu")
    assert [MIXED.counts_alike(selects["whole"], name) for name in names] == [True, False, True]
    assert [MIXED.counts_alike(selects["shares"], name) for name in names] == [False, True, True]
    assert all(MIXED.counts_alike(pod(), name) for name in names)
    assert nodes(WHOLE).counts_alike(pod(annotations={"hami.io/bind-phase": "success"}), "whole"), "HAMi may be new"


def test_sharing_that_only_the_view_knows() -> None:
    found, share = GpuNodes(), ShareView(resource=GPU, unit="slot", total=80.0, used=0.0)
    found.put("whole", WHOLE, NodeView(name="whole", shares=(share,)))
    assert found.counted_as(pod("whole")) == SHARED_GPU


def test_what_a_change_affects() -> None:
    found = nodes(WHOLE)
    assert found.take_changes() == (set(), False), "all count whole GPUs until nodes say otherwise"
    found.put("shares", SHARES, None)
    assert found.take_changes() == ({"shares"}, True)
    found.put("shares", node("shares", SLICED), None)
    assert found.take_changes() == (set(), False), "an equal node"
    found.put("whole", node("whole", {"zone": "b"}), None)
    assert found.take_changes() == (set(), True), "pending pods may fit other nodes now"
    found.put("whole", node("whole", SLICED), None)
    assert found.take_changes() == ({"whole"}, True)
    found.put("whole", node("whole", SLICED | {"zone": "b"}), None)
    assert found.take_changes() == (set(), False), "all share: where a pod runs does not matter"
    found.drop("whole")
    assert found.take_changes() == ({"whole"}, False)
    found.put("shares", None, None)
    assert found.take_changes() == ({"shares"}, True)
    assert found == GpuNodes()


def test_answers_are_bounded() -> None:
    found = nodes(WHOLE, SHARES)
    for number in range(MAX_ANSWERS + 10):
        assert found.counted_as(pod(node_selector={"name": "whole", "n": str(number)})) == WHOLE_OR_SHARED
    assert len(found._answers) <= MAX_ANSWERS
