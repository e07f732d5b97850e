"""gpu-fragmented: enough GPUs are free but not on one node; and the fewest moves that help."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from monitor.detect.base import Limits, RuleContext, with_limits
from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_fragmented import RULE
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import NodeFact, OwnerRef, PodFact, TaintFact, TolerationFact
from tests.detect.builders_gpu import after_silence, catalog_problems, run, said
from tests.explain.builders import GPU, NOW, holding, node, pod

WAITS = pod("big", gpus=8, age=600)


def tainted(name: str) -> NodeFact:
    return node(name, taints=(TaintFact(key="team", effect="NoSchedule", value="nlp"),))


def context(pods: tuple[PodFact, ...], nodes: tuple[NodeFact, ...], ok: bool = True, **who: Identity) -> RuleContext:
    view = ClusterView(at=NOW, sources=(SourceView(name="pods", ok=ok), SourceView(name="nodes", ok=ok)))
    identities = {f"uid-{name}": identity for name, identity in who.items()}
    return RuleContext(make_cluster_facts(pods=pods, nodes=nodes, view=view, identities=identities), NOW)


def moves(given: RuleContext) -> list[str]:
    """Moves that each finding proposes."""
    notes = [note for each in run(RULE, given).findings for note in each.evidence]
    return [str(note.values["moves"]) for note in notes]


@dataclass(frozen=True)
class Case:
    name: str
    pods: tuple[PodFact, ...]
    fires: bool
    nodes: tuple[NodeFact, ...] = field(default_factory=lambda: (node("n1"), node("n2")))


HALF = (holding("a", "n1", 4), holding("b", "n2", 4))
CASES = (
    Case("four and four", (WAITS, *HALF), True),
    Case("seven free in all", (WAITS, *HALF, holding("c", "n2", 1)), False),
    Case("not long enough", (pod("big", gpus=8, age=599), *HALF), False),
    Case("a node is free: something else keeps it", (WAITS, HALF[0]), False),
    Case("larger than any node: no move can help", (pod("big", gpus=16, age=900),), False, (node("n1"), node("n2"))),
    Case("what is free is not for it", (WAITS, *HALF), False, (node("n1"), tainted("n2"))),
    Case("a node is free and not for it", (WAITS, *HALF), True, (node("n1"), node("n2"), tainted("n3"))),
    Case("not ready does not count", (WAITS, *HALF), False, (node("n1"), node("n2", ready=False))),
    Case("held back by a queue", (pod("big", gpus=8, age=900, scheduling_gates=("kueue",)), *HALF), False),
    Case("wants no GPU", (pod("cpu", age=900), *HALF), False),
    Case("on its way out", (pod("big", gpus=8, age=900, deletion_at=NOW), *HALF), False),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fragmented(case: Case) -> None:
    assert bool(run(RULE, context(case.pods, case.nodes)).findings) is case.fires


PLANS: tuple[tuple[str, tuple[PodFact, ...], tuple[NodeFact, ...], list[str]], ...] = (
    ("one move, and to where", (WAITS, *HALF), (node("n1"), node("n2")), ["team-a/a (4) n1 -> n2"]),
    ("the smaller one", (WAITS, holding("a", "n1", 5), holding("b", "n2", 3)), (node("n1"), node("n2")),
     ["team-a/b (3) n2 -> n1"]),
    ("one large rather than two small ones", (WAITS, holding("a", "n1", 2), holding("b", "n1", 2),
     holding("c", "n2", 4)),
     (node("n1"), node("n2")), ["team-a/c (4) n2 -> n1"]),
    ("to the node that is nearly full", (WAITS, holding("a", "n1", 1), holding("b", "n2", 7), holding("c", "n3", 4)),
     (node("n1"), node("n2"), node("n3")), ["team-a/a (1) n1 -> n2"]),
    ("two to different places", (WAITS, holding("a", "n1", 2), holding("b", "n1", 2), holding("c", "n2", 6),
     holding("d", "n3", 6)), (node("n1"), node("n2"), node("n3")), ["team-a/a (2) n1 -> n2; team-a/b (2) n1 -> n3"]),
    ("not where it may not go", (WAITS, holding("a", "n1", 4, node_selector={"disk": "ssd"}), HALF[1]),
     (node("n1", labels={"disk": "ssd"}), node("n2")), ["team-a/b (4) n2 -> n1"]),
    ("not where there are no CPUs left", (WAITS, holding("a", "n1", 4, cpu=90), holding("b", "n2", 4, cpu=90)),
     (node("n1"), node("n2")), []),
    ("not where the one that waits lacks CPUs", (pod("big", gpus=8, cpu=90, age=900), *HALF,
     holding("c", "n1", 0, cpu=50)),
     (node("n1"), node("n2")), ["team-a/b (4) n2 -> n1"]),
    ("a daemon is on each node", (WAITS, holding("a", "n1", 4, owner=OwnerRef(kind="DaemonSet", name="d")), HALF[1]),
     (node("n1"), node("n2")), ["team-a/b (4) n2 -> n1"]),
    ("nothing may be moved", (WAITS, *(holding(name, at, 4, owner=OwnerRef(kind="DaemonSet", name="d"))
     for name, at in (("a", "n1"), ("b", "n2")))), (node("n1"), node("n2")), []),
    ("more moves than is worth it", (WAITS, *(holding(f"{at}-{i}", at, 1) for at in ("n1", "n2") for i in range(4))),
     (node("n1"), node("n2")), []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "pods", "nodes", "expect"), PLANS, ids=[case[0] for case in PLANS])
def test_moves(name: str, pods: tuple[PodFact, ...], nodes: tuple[NodeFact, ...], expect: list[str]) -> None:
    assert run(RULE, context(pods, nodes)).findings
    assert moves(context(pods, nodes)) == expect


def test_the_first_place_that_fits_may_be_the_only_one_for_another() -> None:
    """Pod a may go to n2 and n3, pod b to n2 only: whoever puts a onto n2 finds no place for b."""
    free = holding("a", "n1", 3, tolerations=(TolerationFact(operator="Exists"),))
    held = (holding("c", "n2", 5), holding("d", "n3", 5), holding("e", "n4", 6), holding("f", "n5", 6))
    nodes = (node("n1"), node("n2"), tainted("n3"), node("n4"), node("n5"))
    given = context((WAITS, free, holding("b", "n1", 3), *held), nodes)
    assert moves(given) == ["team-a/a (3) n1 -> n3; team-a/b (3) n1 -> n2"]


def test_a_job_is_one_finding_and_says_whose_it_is() -> None:
    who = Identity(user="alice", job="llm", queue="vc1")
    peers = (WAITS, pod("peer", gpus=8, age=900))
    (finding,) = run(RULE, context((*peers, *HALF), (node("n1"), node("n2")), big=who, peer=who)).findings
    assert finding.labels == {"namespace": "team-a", "job": "llm", "user": "alice", "queue": "vc1"}
    for part in ("Job llm (alice, team-a)", "15 min for 8 GPUs", "8 are free on 2 nodes, at most 4 on one", "1 move"):
        assert part in said(finding)
    assert "移动 1 个 Pod" in said(finding, "zh")


def test_without_a_plan_it_says_so() -> None:
    (finding,) = run(RULE, context(PLANS[-1][1], PLANS[-1][2])).findings
    assert "does not help" in said(finding)


def test_held_while_kubernetes_cannot_be_asked() -> None:
    nodes = (node("n1"), node("n2"))
    (finding,) = after_silence(RULE, context((WAITS, *HALF), nodes), context((), (), ok=False))
    assert finding.held


def test_many_kinds_of_pods_are_held_not_forgotten() -> None:
    many = tuple(pod(f"p{i}", gpus=8, age=900 - i, node_selector={"zone": str(i)}) for i in range(9))
    given = with_limits(context((*many, *HALF), (node("n1"), node("n2"))), Limits(RULE.limits()))
    found = RULE.evaluate(given.facts, given, None, NOW)
    assert [scope.labels["pod"] for scope in found.blind] == ["p6", "p7", "p8"]
    assert {name for scope in found.blind for name in scope.labels} == {"namespace", "pod"}  # the owner may change
    assert RULE.evaluate(given.facts, given, found.memory, NOW + 29).blind == found.blind


def test_it_is_decided_again_after_a_while_or_if_other_pods_wait() -> None:
    nodes = (node("n1"), node("n2"))
    engine = Engine((RULE,), {})
    (found,) = engine.evaluate(context((WAITS, *HALF), nodes))
    assert engine.next_at == NOW + 30
    room = replace(context((WAITS, HALF[0]), nodes), now=NOW + 29)
    (same,) = engine.evaluate(room)
    assert (same.key, same.held) == (found.key, False)
    assert engine.evaluate(replace(room, now=NOW + 30)) == ()
    assert engine.evaluate(replace(context((WAITS, *HALF), nodes), now=NOW + 60))
    assert engine.evaluate(replace(context(HALF, nodes), now=NOW + 61)) == ()


def test_when_a_pod_has_waited_long_enough() -> None:
    engine = Engine((RULE,), {})
    engine.evaluate(context((pod("big", gpus=8, age=500), *HALF), (node("n1"), node("n2"))))
    assert engine.next_at == NOW + 100


@pytest.mark.parametrize("memory", [["?"], {"at": "x"}, {"at": 1.0, "pods": [], "findings": [{}], "unknown": []}])
def test_a_memory_of_another_version_is_forgotten(memory: Any) -> None:
    assert run(RULE, context((WAITS, *HALF), (node("n1"), node("n2"))), {"": memory}).findings


def crowded(count: int) -> RuleContext:
    """Nodes with three pods that hold seven of their eight GPUs."""
    sizes: tuple[Any, ...] = (3, 2, 2)
    held = tuple(holding(f"h{i}-{size}-{j}", f"n{i}", size) for i in range(count) for j, size in enumerate(sizes))
    waiting = tuple(pod(f"w{i}", gpus=8, age=900) for i in range(50))
    return context((*waiting, *held), tuple(node(f"n{i}") for i in range(count)))


def test_a_thousand_nodes_cost_little() -> None:
    given = crowded(1000)
    begun = time.process_time()
    found = run(RULE, given)
    assert len(found.findings) == 50
    assert time.process_time() - begun < 20.0


def test_words() -> None:
    assert catalog_problems(RULE) == []
    assert GPU in WAITS.requests
