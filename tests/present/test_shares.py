"""No amount of a share is called a number of GPUs: in explanations, status, pages, metrics and report."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.daemon.metrics.cluster import ClusterFamilies
from monitor.explain.pod import explain_pod
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.gpu_resources import (
    KAI_FRACTION,
    RESOURCES,
    SHARED_GPU,
    WHOLE_OR_SHARED,
    Family,
    Unit,
    resource_kind,
)
from monitor.facts.kube import ConditionFact, ContainerStatusFact, NodeFact, PodFact
from monitor.facts.queues import QueueFact
from monitor.i18n import LANGUAGES
from monitor.present.cluster import tables
from monitor.present.explanation import render_explanation
from monitor.present.rows import user_rows
from monitor.report.buckets import GpuTimeTotals
from monitor.web.context import PageData, PageDeps
from tests.cluster.builders import GPU, NOW, agent, card
from tests.daemon.metrics.support import lines
from tests.web.test_pages import Visitor

WANTED, HELD, TOTAL, CARDS = 37.0, 41.0, 53.0, 3  # amounts that nothing else has; together more than there is
FREE = TOTAL - HELD
OTHERS = (
    "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "huawei.com/Ascend910", "huawei.com/Ascend910B-memory",
    "amd.com/gpu", "cambricon.com/mlu", "hygon.com/dcunum", "example.com/gpu-memory", "aws.amazon.com/neuroncore",
)  # fmt: skip
# What nodes list. KAI's shares exist in annotations only.
NOT_LISTED = (GPU, WHOLE_OR_SHARED)
NAMES = [name for name, kind in RESOURCES.items() if name not in NOT_LISTED and not kind.annotated] + list(OTHERS)
LIMIT = 97.0  # of the queue
PATHS = ("/", "/nodes", "/nodes/n1", "/pods", "/pods?what=all", "/pods/team/waits", "/pods/team/runs", "/users",
         "/users/li", "/queues", "/queues/q")  # fmt: skip
# A number of GPUs in either language; "41 shared GPUs" and "12 vGPUs" are none.
COUNTS = re.compile(r"(\d+(?:\.\d+)?) (?:free |busy )?GPUs?\b|(\d+(?:\.\d+)?) 张(?:空闲)? ?(?:GPU)?")
UNITS = {
    Unit.GPU: "37 GPUs", Unit.DEVICE: "37 {name}", Unit.SLOT: "37 (v|shared )GPUs", Unit.SLICE: "37 MIG slices",
    Unit.PERCENT: "37%", Unit.HUNDREDTH: "37%", Unit.BYTE: "0 MiB", Unit.MIB: "37 MiB", Unit.MIB_128: "4736 MiB",
    Unit.MIB_256: "9472 MiB", Unit.GIB: "37 GiB", Unit.UNKNOWN: "37 of {name}",
}  # fmt: skip


class Scene(NamedTuple):
    """A cluster in which a pod waits for a resource that is short."""

    view: ClusterView
    pods: tuple[PodFact, ...]
    nodes: tuple[NodeFact, ...]


def pod(name: str, amounts: dict[str, float], node: str | None = None, **fields: Any) -> PodFact:
    given: dict[str, Any] = {"created_at": NOW - 9000, "phase": "Running" if node else "Pending"}
    if node is not None:
        given["statuses"] = (ContainerStatusFact(name="c", state="running", started_at=NOW - 9000),)
    return PodFact(uid=name, name=name, namespace="team", node=node, requests=amounts, **(given | fields))


def scene(name: str, labels: dict[str, str] | None = None) -> Scene:
    amounts = {name: TOTAL, "cpu": 64.0}
    node = NodeFact(uid="n", name="n1", ready=True, capacity=amounts, allocatable=amounts, labels=labels or {})
    pods = (
        pod("waits", {name: WANTED}),
        pod("runs", {name: HELD - 1}, "n1", created_at=NOW - 100),
        pod("ends", {name: 1.0}, "n1", deletion_at=NOW - 600),
    )
    queue = QueueFact(uid="q", kind="VolcanoQueue", name="q", capacity={name: LIMIT, "cpu": 9})
    builder = ViewBuilder(lambda _pod: Identity(user="li", queue="q"))
    inputs = ViewInputs(
        agents=(agent(*(card(index) for index in range(CARDS))),), nodes=(node,), pods=pods,
        around=ClusterContext(pods_known=True, queues=(queue,)),
    )  # fmt: skip
    return Scene(builder.build(inputs, NOW).view(), pods, (node,))


def mixed(wanted: float, selector: dict[str, str]) -> Scene:
    """A cluster in which n1 shares its GPUs and n2 does not, and in which a pod waits."""
    slots, cards = {GPU: TOTAL, "cpu": 64.0}, {GPU: 61.0, "cpu": 64.0}
    labels = {"nvidia.com/gpu.replicas": "10", "kind": "shares"}
    nodes = (
        NodeFact(uid="n1", name="n1", ready=True, capacity=slots, allocatable=slots, labels=labels),
        NodeFact(uid="n2", name="n2", ready=True, capacity=cards, allocatable=cards, labels={"kind": "whole"}),
    )
    pods = (
        pod("waits", {GPU: wanted}, node_selector=selector),
        pod("runs", {GPU: HELD}, "n1"),
        pod("trains", {GPU: 43.0}, "n2"),
    )
    queue = QueueFact(uid="q", kind="VolcanoQueue", name="q", capacity={GPU: LIMIT})
    inputs = ViewInputs(
        agents=(agent(*(card(index) for index in range(CARDS))),), nodes=nodes, pods=pods,
        around=ClusterContext(pods_known=True, queues=(queue,)),
    )  # fmt: skip
    return Scene(ViewBuilder(lambda _pod: Identity(user="li", queue="q")).build(inputs, NOW).view(), pods, nodes)


def explanations(given: Scene, lang: str) -> str:
    facts = make_cluster_facts(pods=given.pods, nodes=given.nodes, view=given.view)
    return "\n".join(line for pod in given.pods for line in render_explanation(explain_pod(pod, facts, NOW), lang))


def status(given: Scene) -> str:
    return "\n".join(" ".join(str(cell) for cell in row) for table in tables(given.view) for row in table.rows)


class Cluster:
    """The view as pages read it."""

    def __init__(self, given: Scene) -> None:
        self._given = given

    def view(self) -> ClusterView:
        return self._given.view

    def overview(self) -> ClusterView:
        return self._given.view

    def findings(self, _lang: str) -> None:
        return None

    def why(self, *_asked: object) -> Any:
        raise LookupError

    def fits(self, *_asked: object) -> Any:
        raise LookupError


def pages(given: Scene, lang: str) -> str:
    return "\n".join(page(given, path, lang) for path in PATHS if "/pods/" not in path)


def page(given: Scene, path: str, lang: str) -> str:
    """The text of a page."""
    visitor = Visitor(PageDeps(Cluster(given), PageData(agents=tuple)))
    return re.sub(r"<[^>]*>", "", visitor.text(path, accept_language=lang))


def counted(text: str) -> set[float]:
    """Amounts of the scene that a text calls GPUs."""
    said = {float(one or other) for one, other in COUNTS.findall(text)}
    return said & {WANTED, HELD, HELD - 1, TOTAL, FREE, WANTED + HELD, LIMIT, LIMIT - HELD}


def gpu_samples(given: Scene) -> dict[str, float]:
    """Metrics that count GPUs, by sample."""
    samples = (line.rsplit(" ", 1) for line in lines(ClusterFamilies()(given.view)))
    return {name: float(value) for name, value in samples if re.match(r"gpuwarden_\w*gpus(?:_largest_\w+)?\{", name)}


@pytest.mark.parametrize("name", NAMES)
def test_no_share_is_called_a_gpu(name: str) -> None:
    given, kind = scene(name), resource_kind(name)
    assert kind is not None
    for lang in LANGUAGES:
        for text in (explanations(given, lang), pages(given, lang)):
            assert counted(text) <= (
                set() if not kind.whole else {WANTED, HELD - 1, TOTAL, FREE, HELD, LIMIT, LIMIT - HELD}
            )
    (node,) = given.view.nodes
    assert (node.capacity, node.allocatable, node.free, node.cards) == (None, None, CARDS, CARDS)
    assert [(share.resource, share.unit, share.total, share.used) for share in node.shares] == [
        (name, kind.unit.value, TOTAL, HELD)
    ]
    assert [(each.total, each.free) for each in given.view.free] == [(CARDS, CARDS)]
    assert {pod.name: (pod.requested_gpus, pod.gpu_shares) for pod in given.view.pods} == {
        "waits": (0, {name: WANTED}), "runs": (0, {name: HELD - 1}), "ends": (0, {name: 1.0})
    }  # fmt: skip
    assert given.view.users["li"].gpus == 0
    assert [(row.name, row.waiting) for row in user_rows(given.view)] == [("li", (0, {name: WANTED}))]
    (queue,) = given.view.queues
    assert (queue.used, queue.waiting, queue.capacity, queue.free) == (0, 0, None, None)
    assert (queue.used_shares, queue.waiting_shares) == ({name: HELD}, {name: WANTED})
    assert (queue.capacity_shares, queue.free_shares) == ({name: LIMIT}, {name: LIMIT - HELD})
    assert set(gpu_samples(given).values()) <= {0.0, float(CARDS)}


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_is_named(name: str) -> None:
    given, kind = scene(name), resource_kind(name)
    assert kind is not None
    unit = UNITS[kind.unit]
    if kind.family is Family.OTHER and kind.unit not in (Unit.DEVICE, Unit.UNKNOWN):
        unit += " of {name}"
    unit = unit.replace("{name}", re.escape(name))
    for text in (explanations(given, "en"), status(given), pages(given, "en")):
        assert re.search(rf"(?<![\d.]){unit}", text), text
    samples = lines(ClusterFamilies()(given.view))
    labels = f'resource="{name}",unit="{kind.unit.value}"'
    assert [line for line in samples if line.startswith("gpuwarden_node_gpu_shares")] == [
        f'gpuwarden_node_gpu_shares{{node="n1",{labels}}} {TOTAL}'
    ]
    assert f'gpuwarden_node_requested_gpu_shares{{node="n1",{labels}}} {HELD}' in samples
    assert f'gpuwarden_pod_requested_gpu_shares{{namespace="team",pod="waits",{labels}}} {WANTED}' in samples
    assert [line for line in samples if line.startswith("gpuwarden_queue_") and "shares" in line] == [
        f'gpuwarden_queue_used_gpu_shares{{queue="q",{labels}}} {HELD}',
        f'gpuwarden_queue_waiting_gpu_shares{{queue="q",{labels}}} {WANTED}',
        f'gpuwarden_queue_capacity_gpu_shares{{queue="q",{labels}}} {LIMIT}',
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_report_counts_cards(name: str) -> None:
    totals, view = GpuTimeTotals(60.0), scene(name).view
    totals.add(view, NOW, 0.0)
    totals.add(view, NOW + 60.0, 60.0)
    seconds = sum(bucket.allocated + bucket.free + bucket.unknown for bucket in totals.buckets())
    assert seconds == pytest.approx(60.0 * CARDS)


def test_time_slices_are_shares() -> None:
    given = scene(GPU, {"nvidia.com/gpu.replicas": "10"})
    for lang in LANGUAGES:
        assert counted(explanations(given, lang) + pages(given, lang)) == set()
    assert "it needs 37 shared GPUs, but only 12 of 53 are free" in explanations(given, "en")
    assert "需要 37 个共享 GPU" in explanations(given, "zh")
    assert "nvidia.com/gpu 41 of 53 shared GPUs used" in status(given)
    assert "q  41 shared GPUs 37 shared GPUs 56 shared GPUs" in status(given)


def test_whole_gpus_stay_gpus() -> None:
    given = scene(GPU)
    assert "q  41 37 56" in status(given)
    assert "it needs 37 GPUs, but only 12 of 53 are free" in explanations(given, "en")
    assert "需要 37 张 GPU" in explanations(given, "zh")


UNIT_OF = {
    "GPUs": "(?:free |busy )?GPUs?", "shared GPUs": "shared GPUs?", "whole or shared GPUs": "whole or shared GPUs?",
}  # fmt: skip
UNIT_OF_ZH = {"GPUs": "张(?:空闲)? ?GPU", "shared GPUs": "个共享 GPU", "whole or shared GPUs": "个整卡或共享 GPU"}
# What each figure of a mixed cluster counts. 61, 43 and 18 are of n2, 53, 41 and 12 of n1.
FIGURES = {
    "GPUs": {61.0, 43.0, 18.0, 29.0}, "shared GPUs": {TOTAL, HELD, FREE, WANTED},
    "whole or shared GPUs": {23.0, LIMIT, LIMIT - HELD - 43.0},
}  # fmt: skip
ALL_FIGURES = set[float]().union(*FIGURES.values())
MIXED = [
    ("it selects nodes that share", WANTED, {"kind": "shares"}, "needs 37 shared GPUs, but only 12 of 53 are free"),
    ("it selects nodes that do not", 29.0, {"kind": "whole"}, "needs 29 GPUs, but only 18 of 61 are free"),
    ("it may run on both", 23.0, {}, "23 whole or shared GPUs"),
    ("it selects no node", 23.0, {"kind": "typo"}, "label"),
    ("no node that it selects has as many", 71.0, {"kind": "whole"}, "the largest node (n2) has 61"),
    ("other nodes have as many", 53.0, {"kind": "shares"}, "needs 53 shared GPUs, but only 12 of 53"),
]


@pytest.mark.parametrize(("name", "wanted", "selector", "expect"), MIXED, ids=[row[0] for row in MIXED])
def test_in_a_mixed_cluster_the_nodes_decide_the_unit(
    name: str, wanted: float, selector: dict[str, str], expect: str
) -> None:
    given = mixed(wanted, selector)
    assert expect in explanations(given, "en"), explanations(given, "en")
    wrong = {
        (lang, figure, unit)
        for lang, units in (("en", UNIT_OF), ("zh", UNIT_OF_ZH))
        for text in (explanations(given, lang), pages(given, lang), status(given) if lang == "en" else "")
        for unit, words in units.items()
        for figure in (float(number) for number in re.findall(rf"(\d+(?:\.\d+)?) {words}(?! GPU)", text))
        if figure in ALL_FIGURES - FIGURES[unit]
    }
    assert wrong == set()
    assert set(gpu_samples(given).values()) <= {0.0, float(CARDS), *FIGURES["GPUs"], 71.0}
    (queue,) = given.view.queues
    assert (queue.used, queue.used_shares) == (43.0, {SHARED_GPU: HELD})
    assert (queue.capacity, queue.free) == (None, None)
    assert (queue.capacity_shares, queue.free_shares) == ({WHOLE_OR_SHARED: LIMIT}, {WHOLE_OR_SHARED: 13.0})


def test_in_a_mixed_cluster_each_table_names_the_units() -> None:
    given = mixed(23.0, {})
    assert "q  43 GPUs and 41 shared GPUs 23 whole or shared GPUs 13 whole or shared GPUs" in status(given)
    assert "23 个整卡或共享 GPU" in explanations(given, "zh")
    assert "li 43 GPUs and 41 shared GPUs 23 whole or shared GPUs" in status(given)
    assert "23 whole or shared GPUs" in page(given, "/users", "en")
    assert "23 个整卡或共享 GPU" in page(given, "/users", "zh")
    labels = f'resource="{WHOLE_OR_SHARED}",unit="gpu-or-slot"'
    assert f'gpuwarden_queue_waiting_gpu_shares{{queue="q",{labels}}} 23.0' in lines(ClusterFamilies()(given.view))


def test_a_request_is_told_as_a_whole() -> None:
    amounts = {"volcano.sh/vgpu-number": 1.0, "volcano.sh/vgpu-memory": 8000.0, "volcano.sh/vgpu-cores": 50.0}
    offered = {"volcano.sh/vgpu-number": 10.0, "volcano.sh/vgpu-memory": 24000.0, "volcano.sh/vgpu-cores": 100.0}
    node = NodeFact(uid="n", name="n1", ready=True, capacity=offered, allocatable=offered)
    pods = (pod("p", amounts, "n1"),)
    given = Scene(ClusterView(at=NOW), pods, (node,))
    assert "running on n1 with 1 vGPU (8000 MiB, 50% of the cores)" in explanations(given, "en")
    assert "1 个 vGPU（8000 MiB 显存，50% 算力）" in explanations(given, "zh")


KAI_SAYS = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs."


def test_what_kai_reads_from_annotations_is_a_part_of_a_gpu() -> None:
    """No node lists it: a pod holds the GPU for those that share it."""
    node = NodeFact(uid="n", name="n1", ready=True, capacity={GPU: 3.0}, allocatable={GPU: 3.0})
    refused = ConditionFact(type="PodScheduled", status=False, reason="Unschedulable", message=KAI_SAYS)
    asks = {"scheduler": "kai-scheduler"}
    pods = (
        pod("holds", {GPU: 1.0}, "n1"),
        pod("runs", {KAI_FRACTION: 40.0}, "n1", **asks),
        pod("waits", {KAI_FRACTION: 37.0}, conditions=(refused,), **asks),
    )
    inputs = ViewInputs(
        agents=(agent(*(card(index) for index in range(CARDS))),), nodes=(node,), pods=pods,
        around=ClusterContext(pods_known=True),
    )  # fmt: skip
    view = ViewBuilder(lambda _pod: Identity(user="li", queue="q")).build(inputs, NOW).view()
    given = Scene(view, pods[1:], (node,))
    assert "running on n1 with 40% of a GPU" in explanations(given, "en")
    assert "No node has GPUs that satisfy its shared GPU request" in explanations(given, "en")
    assert "It requests 37% of a GPU." in explanations(given, "en")
    assert "一张 GPU 的 40%" in explanations(given, "zh")
    assert "kai.scheduler" not in explanations(given, "en"), "it is not called a resource that no node offers"
    assert view.nodes[0].shares == ()
    assert (view.nodes[0].requested, view.nodes[0].free) == (1, 2)
    assert "q  1 GPU and 40% of a GPU 37% of a GPU" in status(given)
