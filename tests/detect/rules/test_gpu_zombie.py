"""gpu-zombie: GPUs held by pods that have ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from monitor.cluster.view import ViewMemory
from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_zombie import RULE
from monitor.facts import CollectorFact, RowRemapFact
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import make_cluster_facts
from tests.cluster.builders import NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, remembered, rule_context, run, said
from tests.detect.running import history_of

LIVE = pod("live")
DONE = pod("done", phase="Succeeded")
LEAVING = pod("leaving", deletion_at=NOW - 600)
LATE = pod("late", deletion_at=NOW - 599)
GONE = pod("gone")
MISSING = ViewMemory(missing={GONE.uid: NOW - 300})
LONG = {"n1 0": {"team/done": NOW - 60, "uid-gone": NOW - 60}}
SHORT = {"n1 0": {"team/done": NOW - 59, "uid-gone": NOW - 59}}


def of(owner: Any, **fields: Any) -> Any:
    """Process of a pod."""
    return process(pod_uid=owner.uid, container_id="c" * 64, **fields)


@dataclass(frozen=True)
class Case:
    name: str
    agent: AgentFact
    expect: tuple[str, ...]
    memory: Any = field(default_factory=lambda: LONG)
    before: ViewMemory = MISSING


CASES = (
    Case("the pod finished a minute ago", agent(card(), processes=(of(DONE),)), ("pod-finished",)),
    Case("just below the limit", agent(card(), processes=(of(DONE),)), (), memory=SHORT),
    Case("seen for the first time", agent(card(), processes=(of(DONE),)), (), memory=None),
    Case("the view has reported it already", agent(card(), processes=(of(DONE),)), ("pod-finished",),
         memory=None, before=remembered("zombie", 61)),
    Case("the pod was deleted", agent(card(), processes=(of(GONE),)), ("pod-deleted",)),
    Case("terminating for ten minutes", agent(card(), processes=(of(LEAVING),)), ("pod-terminating",)),
    Case("terminating, just below", agent(card(), processes=(of(LATE),)), ()),
    Case("terminating, no process, still allocated", agent(card(), devices=(device(LEAVING),)), ("pod-terminating",)),
    Case("finished, no process, still allocated: the kubelet frees it on demand",
         agent(card(), devices=(device(DONE),)), ()),
    Case("a live pod", agent(card(), processes=(of(LIVE),), devices=(device(LIVE),)), ()),
    Case("on a faulty GPU", agent(card(row_remaps=RowRemapFact(corrected=0, uncorrected=1, pending=True,
         failed=False)), processes=(of(DONE),)), ("pod-finished",)),
    Case("two pods on a shared GPU", agent(card(), processes=(of(DONE), of(GONE, pid=101))),
         ("pod-finished", "pod-deleted")),
    Case("garbage in the memory", agent(card(), processes=(of(DONE),)), (),
         memory={"n1 0": {"team/done": "x", "y": []}}),
    Case("other garbage", agent(card(), processes=(of(DONE),)), (), memory={"n1 0": "x"}),
)  # fmt: skip
PODS = (LIVE, DONE, LEAVING, LATE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_zombie(case: Case) -> None:
    found = run(RULE, rule_context(case.agent, pods=PODS, memory=case.before), case.memory)
    assert sorted(cause for _, cause in causes(found)) == sorted(case.expect)


def test_the_dead_pod_is_named_not_the_live_one_beside_it() -> None:
    shared = agent(
        card(),
        processes=(of(LIVE, pid=7), of(DONE, pid=8)),
        devices=(device(LIVE, replica=0), device(DONE, replica=1)),
    )
    (finding,) = run(RULE, rule_context(shared, pods=PODS), LONG).findings
    assert finding.labels["pod"] == "done"
    assert "gpuwarden cleanup release" in said(finding)


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(agent(card(), processes=(of(DONE),)), pods=PODS), LONG).findings
    assert finding.labels == {
        "node": "n1", "gpu": "0", "pod": "done", "namespace": "team", "user": "alice", "job": "bert", "queue": "vc1",
    }  # fmt: skip
    assert finding.since == NOW - 60
    assert "Pod team/done finished" in said(finding)
    assert "alice" in said(finding)
    assert "前结束" in said(finding, "zh")


FINISHED = rule_context(agent(card(), processes=(of(DONE),)), pods=PODS)
HUNG = CollectorFact(name="gpu_processes", outcome="ok", interval_seconds=15, hung_since=NOW - 90)
HIDDEN = {
    "the agent is silent": rule_context(agent(card(), processes=(of(DONE),), received_at=NOW - 90), pods=PODS),
    "Kubernetes is out of reach": rule_context(agent(card(), processes=(of(DONE),)), pods=PODS, pods_known=False),
    "processes cannot be read": rule_context(agent(card(), processes=None, collectors=(HUNG,)), pods=PODS),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_held_while_nothing_is_known(name: str) -> None:
    (finding,) = after_silence(RULE, FINISHED, HIDDEN[name], LONG)
    assert (finding.held, finding.cause) == (True, "pod-finished")
    assert run(RULE, HIDDEN[name], LONG).memory == LONG


def test_what_became_of_the_pod_is_known_as_soon_as_kubernetes_says_it() -> None:
    """The view of the GPU stays the same: the pod has ended either way."""
    leaving = msgspec.structs.replace(LEAVING, uid=DONE.uid, name="done")
    before = rule_context(agent(card(), processes=(of(DONE),)), pods=(leaving,))
    engine = Engine((RULE,), {}, history_of(RULE, LONG))
    assert [finding.cause for finding in engine.evaluate(before)] == ["pod-terminating"]
    (heard,) = before.facts.agents
    facts = make_cluster_facts(pods=(DONE,), nodes=before.facts.nodes, agents=(heard,), view=before.view)
    after = replace(before, facts=facts)
    assert [finding.cause for finding in engine.evaluate(after)] == ["pod-finished"]


def test_gone_when_the_process_is_gone() -> None:
    assert after_silence(RULE, FINISHED, rule_context(agent(card()), pods=PODS), LONG) == ()


def test_words() -> None:
    assert catalog_problems(RULE) == []


def test_what_a_node_said_before_the_pod_ended_proves_nothing() -> None:
    """An agent that falls silent as a pod ends is trusted for a minute, but its last report is older than the end."""
    heard = agent(card(), processes=(of(DONE),))
    noticed = (heard.received_at or NOW) + 1
    later = noticed + 60
    early = replace(rule_context(heard, pods=PODS, now=noticed), now=later)  # joined before the agent counts as silent
    memory = {"n1 0": {"team/done": noticed}}
    engine = Engine((RULE,), {}, history_of(RULE, memory))
    assert engine.evaluate(early) == ()
    assert engine.next_at is not None  # a report alone does not count as a change
    assert later < engine.next_at <= later + 10
    again = msgspec.structs.replace(heard, received_at=later - 5)
    spoken = rule_context(again, pods=PODS, now=later)
    assert causes(run(RULE, spoken, memory)) == [("warning", "pod-finished")]
