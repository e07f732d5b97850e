"""Queues and quotas that decide whether a job would fit."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.fits.answer import would_fit
from monitor.explain.fits.model import FitsRequest
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.queues import QueueFact, QuotaFact
from monitor.queries.fits import localize_fits
from tests.explain.builders import GPU, NOW, holding, node

NODES = [node("gpu-01"), node("gpu-02")]
RUNS = holding("big", "gpu-01", 6)
OTHER = holding("cv", "gpu-02", 2)
IN_NLP = {"uid-big": Identity(queue="nlp", user="zhang"), "uid-cv": Identity(queue="cv")}


def volcano(name: str = "nlp", **more: Any) -> QueueFact:
    return QueueFact(**({"uid": name, "kind": "VolcanoQueue", "name": name, "state": "open"} | more))


def local(**more: Any) -> QueueFact:
    fields = {"uid": "l", "kind": "LocalQueue", "name": "nlp", "namespace": "team-a", "parent": "gpus", "state": "open"}
    return QueueFact(**(fields | more))


def cluster(name: str = "gpus", **more: Any) -> QueueFact:
    fields: dict[str, Any] = {"uid": name, "kind": "ClusterQueue", "name": name, "state": "open"}
    return QueueFact(**(fields | {"guarantee": {GPU: 8.0}, "capacity": {GPU: 8.0}} | more))


def quota(hard: dict[str, float], used: dict[str, float], **more: Any) -> QuotaFact:
    return QuotaFact(**({"uid": "q", "name": "gpus", "namespace": "team-a", "hard": hard, "used": used} | more))


CASES: list[tuple[str, dict[str, Any], list[QueueFact], list[QuotaFact], str, tuple[str, ...]]] = [
    ("open queue without limits", {}, [volcano()], [], "now", ()),
    ("closed queue", {}, [volcano(state="closed")], [], "never", ("Its queue nlp is closed", "vcctl")),
    (
        "more than the queue ever has",
        {},
        [volcano(capacity={GPU: 6.0})],
        [],
        "never",
        ("It requests 8 of nvidia.com/gpu, but its queue nlp can never have more than 6.",),
    ),
    (
        "full queue",
        {},
        [volcano(capacity={GPU: 8.0}, allocated={GPU: 6.0})],
        [],
        "after",
        ("the limit is 8 of nvidia.com/gpu, 6 are in use", "team-a/big (zhang) holds 6 GPUs on gpu-01"),
    ),
    (
        "full parent",
        {},
        [volcano(parent="all"), volcano("all", capacity={GPU: 10.0}, allocated={GPU: 6.0})],
        [],
        "after",
        ("Its queue all is full",),
    ),
    (
        "CPU of the queue",
        {"cpu_millicores": 16000},
        [volcano(capacity={"cpu": 8.0})],
        [],
        "never",
        ("It requests 16 of cpu, but its queue nlp can never have more than 8.",),
    ),
    (
        "others wait in another queue",
        {},
        [volcano(), volcano("cv", pending=2)],
        [],
        "now",
        ("Jobs are also waiting in the queues cv, and Volcano may start those first.",),
    ),
    (
        "no such queue",
        {"queue": "llm"},
        [volcano()],
        [],
        "never",
        ("There is no queue llm. Queues of the cluster: nlp.",),
    ),
    ("queue of a platform", {}, [], [], "unknown", ("The limits of the queue nlp cannot be read.",)),
    (
        "Kueue: which nodes its flavor allows is not known",
        {},
        [local(), cluster()],
        [],
        "unknown",
        ("Nodes have room: gpu-03 (8).", "which nodes these are is not known"),
    ),
    ("Kueue: stopped", {}, [local(), cluster(state="closed")], [], "never", ("gpus is closed",)),
    (
        "Kueue: full",
        {},
        [local(), cluster(allocated={GPU: 6.0})],
        [],
        "after",
        ("the limit is 8 of nvidia.com/gpu", "team-a/big"),
    ),
    ("Kueue: never", {}, [local(), cluster(capacity={GPU: 4.0})], [], "never", ("can never have more than 4",)),
    (
        "Kueue: borrows",
        {},
        [local(), cluster(parent="all", capacity={}, allocated={GPU: 6.0})],
        [],
        "unknown",
        ("has 8 of nvidia.com/gpu, 6 are reserved, and the job needs 8: it depends on what other queues",),
    ),
    (
        "Kueue: others have borrowed its quota",
        {},
        [local(), cluster(parent="all", capacity={}), cluster("cv", parent="all", allocated={GPU: 12.0})],
        [],
        "unknown",
        ("it depends on what other queues of the cohort lend",),
    ),
    ("Kueue: CPU is not covered", {"cpu_millicores": 1000}, [local(), cluster()], [], "unknown", ("no quota for cpu",)),
    (
        "Kueue: several namespaces",
        {},
        [local(), local(uid="m", namespace="team-b", parent="others"), cluster()],
        [],
        "unknown",
        ("Several namespaces have a queue nlp; name the namespace.",),
    ),
    (
        "quota of the namespace",
        {"namespace": "team-a"},
        [volcano()],
        [quota({"requests.nvidia.com/gpu": 12.0}, {"requests.nvidia.com/gpu": 6.0})],
        "after",
        ("quota gpus is used up: requests.nvidia.com/gpu is limited to 12, 6 are in use", "team-a/big"),
    ),
    (
        "quota that is too small",
        {"namespace": "team-a"},
        [volcano()],
        [quota({"requests.nvidia.com/gpu": 4.0}, {})],
        "never",
        ("limited to 4",),
    ),
    (
        "pods of the quota",
        {"namespace": "team-a", "per_node": 4},
        [volcano()],
        [quota({"pods": 1.0}, {})],
        "never",
        ("pods is limited to 1",),
    ),
    (
        "quota with a scope",
        {"namespace": "team-a"},
        [volcano()],
        [quota({"pods": 0.0}, {}, scopes=("BestEffort",))],
        "unknown",
        ("quota gpus",),
    ),
    ("quota of another namespace", {"namespace": "team-b"}, [volcano()], [quota({"pods": 0.0}, {})], "now", ()),
]


@pytest.mark.parametrize(("name", "asked", "queues", "quotas", "verdict", "says"), CASES, ids=[c[0] for c in CASES])
def test_queues_and_quotas(
    name: str,
    asked: dict[str, Any],
    queues: list[QueueFact],
    quotas: list[QuotaFact],
    verdict: str,
    says: tuple[str, ...],
) -> None:
    nodes = [*NODES, node("gpu-03")]
    facts = make_cluster_facts(nodes=nodes, pods=[RUNS, OTHER], queues=queues, quotas=quotas, identities=IN_NLP)
    fields: dict[str, Any] = {"gpus": 8, "queue": "nlp"}
    result = would_fit(FitsRequest(**(fields | asked)), facts, NOW)
    text = "\n".join(localize_fits(result, "en").lines)
    assert result.verdict == verdict, text
    assert [part for part in says if part not in text] == [], text
    assert localize_fits(result, "zh").lines


@pytest.mark.parametrize(
    ("asked", "source", "verdict"),
    [
        ({"queue": "nlp"}, "queues.scheduling.volcano.sh", "unseen"),
        ({"queue": "nlp"}, "clusterqueues.kueue.x-k8s.io", "unseen"),
        ({"queue": "nlp"}, "resourcequotas", "now"),
        ({"namespace": "team-a"}, "resourcequotas", "unseen"),
        ({}, "queues.scheduling.volcano.sh", "now"),
        ({}, "events", "now"),
        ({}, "nodes", "unseen"),
        ({}, "kubernetes", "unseen"),
    ],
)
def test_what_cannot_be_read_matters_only_if_the_answer_depends_on_it(
    asked: dict[str, Any], source: str, verdict: str
) -> None:
    view = ClusterView(at=NOW, sources=(SourceView(name=source, ok=False, why="forbidden"),))
    facts = make_cluster_facts(nodes=NODES, queues=[volcano()], view=view)
    assert would_fit(FitsRequest(gpus=8, **asked), facts, NOW).verdict == verdict
