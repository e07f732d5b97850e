# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

import time
from typing import Any

import pytest

from monitor.detect.base import Limits as ConfiguredLimits
from monitor.detect.base import with_limits
from monitor.detect.rules.pod_pending import CAUSES, RULE, Limits
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.kube import ConditionFact, OwnerRef, PodFact, TaintFact
from monitor.facts.queues import PodGroupFact, QueueFact, WorkloadFact
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, rule_context, run, text
from tests.detect.running import evaluate
from tests.explain.builders import GPU, NOW, holding, node, owned, pod, unschedulable

BUSY = unschedulable("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
TAINTED = node("n1", taints=(TaintFact(key="team", value="b", effect="NoSchedule"),))
TWO = [node("n1"), node("n2")]
HALF = [holding("h1", "n1", 4), holding("h2", "n2", 4)]
FULL = [holding("h1", "n1", 8), holding("h2", "n2", 8)]
CLAIM = unschedulable('0/1 nodes are available: persistentvolumeclaim "data" not found.')
VOLCANO: dict[str, Any] = {"scheduler": "volcano", "annotations": {"scheduling.k8s.io/group-name": "g"}}


KUEUE: dict[str, Any] = {
    "owner": OwnerRef(kind="Job", name="bert-0", uid="j"),
    "scheduling_gates": ("kueue.x-k8s.io/admission",),
}
NO_DOMAIN = "couldn't assign flavors to pod set main: no topology domains at level: kubernetes.io/hostname"
WORKLOAD = WorkloadFact(
    uid="w", name="job-bert", namespace="team-a", owner=KUEUE["owner"], queue="nlp", phase="pending",
    conditions=(ConditionFact(type="QuotaReserved", status=False, reason="Pending", message=NO_DOMAIN),),
)  # fmt: skip


def late(**more: Any) -> PodFact:
    return pod(**({"gpus": 8, "age": 700} | more))


def queue(**more: Any) -> QueueFact:
    return QueueFact(uid="q", kind="VolcanoQueue", name="nlp", **more)


def group(members: int = 1) -> PodGroupFact:
    return PodGroupFact(uid="g", name="g", namespace="team-a", queue="nlp", min_member=members)


CASES: list[tuple[str, PodFact, dict[str, Any]]] = [
    ("no-single-node-fits", late(conditions=BUSY), {"nodes": TWO, "pods": HALF}),
    ("not-enough-gpus", late(conditions=BUSY), {"nodes": TWO, "pods": FULL}),
    ("quota", late(**VOLCANO), {"nodes": TWO, "pod_groups": [group()], "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 4.0})]}),
    ("queue-closed", late(**VOLCANO), {"nodes": TWO, "pod_groups": [group()], "queues": [queue(state="closed")]}),
    ("gang-incomplete", late(**VOLCANO), {"nodes": TWO, "pod_groups": [group(4)], "queues": [queue()]}),
    ("taint", late(), {"nodes": [TAINTED]}),
    ("selector", late(node_selector={"gpu": "h100"}), {"nodes": TWO}),
    ("volume", late(conditions=CLAIM), {"nodes": TWO}),
    ("vgpu", late(conditions=unschedulable("0/2 nodes are available: 2 NodeUnfitPod.")), {"nodes": TWO}),
    ("device-claim", late(conditions=unschedulable("0/2 nodes are available: 2 cannot allocate all claims.")), {"nodes": TWO}),
    ("topology", late(**KUEUE), {"nodes": TWO, "workloads": [WORKLOAD]}),
    ("priority", late(nominated_node="n1"), {"nodes": TWO}),
    ("overtaken", late(conditions=BUSY), {"nodes": TWO[:1], "pods": [holding("later", "n1", 8, age=60)]}),
    ("unschedulable-other", late(), {"nodes": [node("n1", unschedulable=True)]}),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "waits", "facts"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(cause: str, waits: PodFact, facts: dict[str, Any]) -> None:
    finding = one(RULE, **(facts | {"pods": [waits, *facts.get("pods", ())], "identities": owned(bert_0="li")}))
    assert finding.cause == cause, text(finding)
    assert (finding.labels["job"], finding.labels["user"]) == ("bert-0", "li")
    assert "11 min 40 s" in text(finding)
    assert "11 分钟 40 秒" in text(finding, "zh")
    assert "gpuwarden why -n team-a bert-0" in text(finding)


def test_every_cause_has_a_case() -> None:
    assert [cause for cause, _, _ in CASES] == list(CAUSES)


QUIET = [
    ("not yet", late(age=599)),
    ("being deleted", late(deletion_at=NOW)),
    ("ended", late(phase="Failed")),
    ("it has a node", late(node="n1")),
    ("nobody knows since when", late(created_at=None)),
]


@pytest.mark.parametrize(("name", "given"), QUIET, ids=[case[0] for case in QUIET])
def test_not_waiting_too_long(name: str, given: PodFact) -> None:
    assert none(RULE, pods=[given], nodes=TWO)


def test_a_limit_of_its_own() -> None:
    assert one(RULE, limits=Limits(waiting=60), pods=[late(age=61)], nodes=TWO)


def of_job(job: str, count: int, **more: Any) -> tuple[list[PodFact], dict[str, Identity]]:
    pods = [late(name=f"{job}-{index}", **more) for index in range(count)]
    return pods, {each.uid: Identity(job=job, user="li") for each in pods}


def test_one_finding_for_a_job_with_the_count() -> None:
    pods, identities = of_job("train", 32, conditions=BUSY)
    finding = one(RULE, pods=[*pods, *FULL], nodes=TWO, identities=identities)
    assert finding.labels["job"] == "train"
    assert "Job train (li) has had 32 pods waiting" in text(finding)
    assert "32 个 Pod" in text(finding, "zh")


def test_a_job_is_known_by_its_namespace_too() -> None:
    one_, two = late(name="a"), late(name="b", namespace="team-b")
    same = {each.uid: Identity(job="train") for each in (one_, two)}
    assert len(run(RULE, pods=[one_, two], nodes=TWO, identities=same).findings) == 2


def test_who_came_after_the_overtaker_was_not_overtaken() -> None:
    """Both are alike and explained once; what is true for the older is not all true for the younger."""
    older, younger = late(name="older", age=5000, conditions=BUSY), late(name="younger", age=700, conditions=BUSY)
    between = holding("between", "n1", 8, age=1000)
    found = run(RULE, pods=[older, younger, between], nodes=TWO[:1]).findings
    assert {each.labels["job"]: each.cause for each in found} == {"older": "overtaken", "younger": "not-enough-gpus"}
    assert "between" not in "".join(text(each) for each in found if each.labels["job"] == "younger")


def test_held_while_pods_cannot_be_seen() -> None:
    before = {"pods": [late(), *FULL], "nodes": TWO}
    assert [left.held for left in held(RULE, before, {"view": PODS_UNSEEN, "nodes": TWO})] == [True]
    assert held(RULE, before, {"nodes": TWO}) == ()


def test_without_nodes_nothing_is_said_about_them() -> None:
    unseen = ClusterView(at=NOW, sources=(SourceView(name="nodes", ok=False),))
    assert none(RULE, pods=[late()], view=unseen)
    assert [left.held for left in held(RULE, {"pods": [late(), *FULL], "nodes": TWO}, {"view": unseen})] == [True]


def test_a_memory_of_another_version_is_forgotten() -> None:
    assert one(RULE, memory={"": {"x": 5}}, pods=[late(), *FULL], nodes=TWO)
    assert one(RULE, memory={"": ["?"]}, pods=[late(), *FULL], nodes=TWO)


def test_a_thousand_nodes_and_waiting_jobs_of_many_shapes() -> None:
    """Not all shapes can be explained at once: each gets its turn, and what was found stays."""
    nodes = [node(f"n{index}") for index in range(1000)]
    pods = [late(name=f"w{index}", gpus=1 + index % 8, priority=index % 8, age=700 + index) for index in range(800)]
    full = [holding(f"h{index}", f"n{index}", 8) for index in range(1000)]
    memory, counts = None, list[int]()
    for turn in range(9):
        context = rule_context(NOW + 2.5 * turn, pods=[*pods, *full], nodes=nodes, limits=Limits())
        began = time.process_time()
        found = evaluate(RULE, context, memory)
        assert time.process_time() - began < 20.0
        memory, counts = found.memory, [*counts, len(found.findings)]
    assert counts == [100, 200, 300, 400, 500, 600, 700, 800, 800]


def test_when_time_alone_changes_it() -> None:
    assert due(RULE, pods=[late(age=100), late(name="b", age=200)], nodes=TWO) == 400
    assert due(RULE, pods=[late(), *FULL], nodes=TWO) == 30
    assert due(RULE, pods=[late(), late(name="b", age=590)], nodes=TWO) == 10
    assert due(RULE, pods=FULL, nodes=TWO) is None


def test_shapes_that_are_not_explained_yet_are_soon() -> None:
    pods = [late(name=f"w{index}", priority=index) for index in range(4)]
    assert due(RULE, pods=pods, nodes=[node(f"n{index}") for index in range(1000)]) == 2.5
    assert due(RULE, pods=pods, nodes=[node(f"n{index}") for index in range(300)]) == 2


def test_no_shape_is_explained_during_the_pause_however_often_facts_change() -> None:
    nodes = [node(f"n{index}") for index in range(1000)]
    pods = [late(name=f"w{index}", priority=index, age=700 + index) for index in range(3)]
    memory, counts = None, list[int]()
    for seconds in (0.0, 0.5, 2.4, 2.5, 4.9, 5.0):
        found = evaluate(RULE, rule_context(NOW + seconds, pods=pods, nodes=nodes, limits=Limits()), memory)
        memory, counts = found.memory, [*counts, len(found.findings)]
    assert counts == [1, 1, 1, 2, 2, 3]


def test_a_new_shape_waits_for_the_end_of_the_pause() -> None:
    first = run(RULE, pods=[late(), *FULL], nodes=TWO)
    both = {"pods": [late(), late(name="b", priority=1), *FULL], "nodes": TWO, "limits": Limits()}
    soon, later = (evaluate(RULE, rule_context(NOW + seconds, **both), first.memory) for seconds in (1.9, 2.0))
    assert [found.labels["job"] for found in soon.findings] == ["bert-0"]
    assert {found.labels["job"] for found in later.findings} == {"b", "bert-0"}


def test_an_explanation_is_kept_for_a_while() -> None:
    first = run(RULE, pods=[late(), *FULL], nodes=TWO)
    soon, later = (
        evaluate(RULE, rule_context(NOW + seconds, pods=[late(), *HALF], nodes=TWO, limits=Limits()), first.memory)
        for seconds in (29, 30)
    )
    assert [found.findings[0].cause for found in (first, soon, later)] == [
        "not-enough-gpus",
        "not-enough-gpus",
        "no-single-node-fits",
    ]


def test_a_scheduled_job_is_resolved_at_once() -> None:
    before = {"pods": [late(), *FULL], "nodes": TWO}
    assert after_change(RULE, before, {"pods": [late(node="n1"), *FULL], "nodes": TWO}) == ()


def test_the_previous_finding_is_kept_until_the_explanation_whatever_the_queue_is_by_now() -> None:
    """A pod that joins a group has another queue, which is a label."""
    nodes, first, second = [node(f"n{index}") for index in range(1000)], late(**VOLCANO), late(name="w2", priority=1)
    (before,) = run(RULE, pods=[first], nodes=nodes).findings
    facts = {"pods": [late(name="w0", age=900, priority=2), first, second], "nodes": nodes}
    given = rule_context(NOW, pod_groups=[group()], queues=[queue()], **facts)
    later = RULE.evaluate(given.facts, with_limits(given, ConfiguredLimits(Limits())), None, NOW)
    assert [found.labels["job"] for found in later.findings] == ["w0"]
    assert [scope.covers(before) for scope in later.blind] == [True, False]
