from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.fit import fit, fit_all, gpu_resource, requested_gpus
from monitor.explain.placement import ObstacleKind, affinity_text
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import NodeRequirementFact, TaintFact, TolerationFact
from monitor.facts.placement import tolerates
from tests.explain.builders import GIB, GPU, holding, node, pod

GPU_TAINT = TaintFact(key="nvidia.com/gpu", value="present", effect="NoSchedule")


def wants(key: str, operator: str, *values: str, field: bool = False) -> NodeRequirementFact:
    return NodeRequirementFact(key=key, operator=operator, values=values, field=field)


TOLERATIONS: list[tuple[str, dict[str, Any], TaintFact, bool]] = [
    ("equal", {"key": "nvidia.com/gpu", "value": "present"}, GPU_TAINT, True),
    ("equal, another value", {"key": "nvidia.com/gpu", "value": "absent"}, GPU_TAINT, False),
    ("equal, another key", {"key": "gpu", "value": "present"}, GPU_TAINT, False),
    ("exists", {"key": "nvidia.com/gpu", "operator": "Exists"}, GPU_TAINT, True),
    ("no key exists: everything", {"operator": "Exists"}, GPU_TAINT, True),
    ("no key exists, another effect", {"operator": "Exists", "effect": "NoExecute"}, GPU_TAINT, False),
    ("same effect", {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, GPU_TAINT, True),
    ("no value equals no value", {"key": "k"}, TaintFact(key="k", effect="NoSchedule", value=""), True),
    ("an operator that is not known", {"key": "nvidia.com/gpu", "operator": "Gt", "value": "1"}, GPU_TAINT, False),
]


@pytest.mark.parametrize(("name", "toleration", "taint", "expect"), TOLERATIONS, ids=[t[0] for t in TOLERATIONS])
def test_toleration(name: str, toleration: dict[str, Any], taint: TaintFact, expect: bool) -> None:
    assert tolerates(TolerationFact(**toleration), taint) is expect


LABELS = {"gpu": "a100", "cards": "8", "zone": "east"}
SELECTION: list[tuple[str, dict[str, Any], bool]] = [
    ("nothing wanted", {}, True),
    ("selector matches", {"node_selector": {"gpu": "a100"}}, True),
    ("selector: one of two does not", {"node_selector": {"gpu": "a100", "zone": "west"}}, False),
    ("selector: no such label", {"node_selector": {"rack": "1"}}, False),
    ("In", {"node_affinity": ((wants("gpu", "In", "v100", "a100"),),)}, True),
    ("In, not there", {"node_affinity": ((wants("rack", "In", "1"),),)}, False),
    ("NotIn", {"node_affinity": ((wants("gpu", "NotIn", "v100"),),)}, True),
    ("NotIn holds where the label is absent", {"node_affinity": ((wants("rack", "NotIn", "1"),),)}, True),
    ("Exists", {"node_affinity": ((wants("gpu", "Exists"),),)}, True),
    ("DoesNotExist", {"node_affinity": ((wants("gpu", "DoesNotExist"),),)}, False),
    ("Gt", {"node_affinity": ((wants("cards", "Gt", "4"),),)}, True),
    ("Gt is not >=", {"node_affinity": ((wants("cards", "Gt", "8"),),)}, False),
    ("Lt", {"node_affinity": ((wants("cards", "Lt", "9"),),)}, True),
    ("Gt of no number", {"node_affinity": ((wants("gpu", "Gt", "4"),),)}, False),
    ("Gt without a value", {"node_affinity": ((wants("cards", "Gt"),),)}, False),
    ("all of a term", {"node_affinity": ((wants("gpu", "Exists"), wants("zone", "In", "west")),)}, False),
    ("any of the terms", {"node_affinity": ((wants("zone", "In", "west"),), (wants("gpu", "Exists"),))}, True),
    ("a term of nothing matches nothing", {"node_affinity": ((),)}, False),
    ("the node's name", {"node_affinity": ((wants("metadata.name", "In", "gpu-01", field=True),),)}, True),
    ("another node's name", {"node_affinity": ((wants("metadata.name", "In", "gpu-02", field=True),),)}, False),
    ("a label is no field", {"node_affinity": ((wants("gpu", "Exists", field=True),),)}, False),
    ("an operator that is not known", {"node_affinity": ((wants("gpu", "Like", "a*"),),)}, False),
]


@pytest.mark.parametrize(("name", "given", "expect"), SELECTION, ids=[s[0] for s in SELECTION])
def test_selection(name: str, given: dict[str, Any], expect: bool) -> None:
    result = fit(pod(**given), node("gpu-01", labels=LABELS), make_cluster_facts(), GPU)
    assert result.usable is expect
    assert [obstacle.kind for obstacle in result.obstacles] == ([] if expect else [ObstacleKind.SELECTOR])


VARIED_NODES = [
    node(f"gpu-{index:02}", **fields)
    for index, fields in enumerate(
        {"labels": labels} | state
        for labels in ({}, LABELS, *(LABELS | {key: other} for key in LABELS for other in ("v100", "9", "3", "west")))
        for state in ({}, {"ready": False}, {"unschedulable": True}, {"taints": (GPU_TAINT,)})
    )
]


@pytest.mark.parametrize(("name", "given", "expect"), SELECTION, ids=[s[0] for s in SELECTION])
def test_nodes_examined_together_fit_as_they_do_alone(name: str, given: dict[str, Any], expect: bool) -> None:
    facts, asking = make_cluster_facts(nodes=VARIED_NODES), pod(**given)
    assert fit_all(asking, facts) == tuple(fit(asking, each, facts, GPU) for each in facts.nodes)


STATES: list[tuple[str, dict[str, Any], dict[str, Any], list[ObstacleKind]]] = [
    ("well", {}, {}, []),
    ("not ready", {}, {"ready": False}, [ObstacleKind.NOT_READY]),
    ("its kubelet is silent", {}, {"ready": None}, [ObstacleKind.NOT_READY]),
    (
        "not ready is said once, not again as a taint",
        {},
        {"ready": None, "taints": (TaintFact(key="node.kubernetes.io/unreachable", effect="NoSchedule"),)},
        [ObstacleKind.NOT_READY],
    ),
    ("cordoned", {}, {"unschedulable": True}, [ObstacleKind.CORDONED]),
    (
        "cordoned is said once",
        {},
        {"unschedulable": True, "taints": (TaintFact(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),)},
        [ObstacleKind.CORDONED],
    ),
    ("cordoned, tolerated", {"tolerations": (TolerationFact(operator="Exists"),)}, {"unschedulable": True}, []),
    ("tainted", {}, {"taints": (GPU_TAINT,)}, [ObstacleKind.TAINT]),
    ("a preference does not block", {}, {"taints": (TaintFact(key="old", effect="PreferNoSchedule"),)}, []),
    (
        "tolerated",
        {"tolerations": (TolerationFact(key="nvidia.com/gpu", operator="Exists"),)},
        {"taints": (GPU_TAINT,)},
        [],
    ),
    (
        "all at once",
        {"node_selector": {"a": "b"}},
        {"ready": False, "taints": (GPU_TAINT,)},
        [ObstacleKind.NOT_READY, ObstacleKind.TAINT, ObstacleKind.SELECTOR],
    ),
]


@pytest.mark.parametrize(("name", "asks", "given", "expect"), STATES, ids=[s[0] for s in STATES])
def test_state_and_taints(name: str, asks: dict[str, Any], given: dict[str, Any], expect: list[ObstacleKind]) -> None:
    result = fit(pod(**asks), node("gpu-01", **given), make_cluster_facts(), GPU)
    assert [obstacle.kind for obstacle in result.obstacles] == expect


ROOM: list[tuple[str, dict[str, Any], list[Any], list[ObstacleKind]]] = [
    ("just enough", {"gpus": 4}, [holding("a", "gpu-01", 4)], []),
    ("one too many", {"gpus": 5}, [holding("a", "gpu-01", 4)], [ObstacleKind.GPU]),
    (
        "what has ended holds nothing",
        {"gpus": 8},
        [holding("a", "gpu-01", 8, phase="Succeeded"), holding("b", "gpu-01", 8, phase="Failed")],
        [],
    ),
    (
        "what is being deleted still holds",
        {"gpus": 8},
        [holding("a", "gpu-01", 8, deletion_at=1.0)],
        [ObstacleKind.GPU],
    ),
    ("what waits holds nothing", {"gpus": 8}, [pod("a", gpus=8)], []),
    ("pods elsewhere do not count", {"gpus": 8}, [holding("a", "gpu-02", 8)], []),
    ("CPU", {"gpus": 1, "cpu": 97}, [], [ObstacleKind.CPU]),
    ("memory", {"gpus": 1, "memory": 513 * GIB}, [], [ObstacleKind.MEMORY]),
    (
        "fractions add up",
        {"cpu": 0.1},
        [holding(f"p{i}", "gpu-01", 0, cpu=0.1) for i in range(9)] + [holding("q", "gpu-01", 0, cpu=95)],
        [],
    ),
    ("a pod count", {}, [holding(f"p{i}", "gpu-01", 0, cpu=0.1) for i in range(110)], [ObstacleKind.PODS]),
    ("something the node does not have", {"requests": {"rdma/hca": 1.0}}, [], [ObstacleKind.OTHER]),
]


@pytest.mark.parametrize(("name", "asks", "others", "expect"), ROOM, ids=[r[0] for r in ROOM])
def test_room(name: str, asks: dict[str, Any], others: list[Any], expect: list[ObstacleKind]) -> None:
    result = fit(pod(**asks), node("gpu-01"), make_cluster_facts(pods=others), GPU)
    assert [obstacle.kind for obstacle in result.obstacles] == expect


def test_requests_are_those_of_the_scheduler() -> None:
    """An init container's larger request counts: it is part of `requests`."""
    given = pod(requests={GPU: 8.0})
    assert requested_gpus(given, make_cluster_facts()) == 8


def test_other_names_for_gpus() -> None:
    requesting = pod(requests={"cpu": 1.0, "nvidia.com/mig-1g.10gb": 2.0})
    facts = make_cluster_facts()
    assert gpu_resource(requesting, facts) == "nvidia.com/mig-1g.10gb"
    assert requested_gpus(requesting, facts) == 2
    assert gpu_resource(pod(requests={"cpu": 1.0, "rdma/hca": 1.0}), facts) == GPU


def test_affinity_reads_like_a_sentence() -> None:
    terms = ((wants("gpu", "In", "a100", "v100"), wants("rack", "Exists")), (wants("zone", "In", "east"),))
    assert affinity_text(terms) == "gpu in (a100, v100) and rack exists or zone=east"
