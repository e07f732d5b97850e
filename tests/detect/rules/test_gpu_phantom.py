"""gpu-phantom: GPUs allocated by the kubelet that no pod holds."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.cluster.view import ViewMemory
from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_phantom import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.kube import PodFact
from tests.cluster.builders import NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said
from tests.detect.running import history_of, lasting_since
from tests.support.resource_claims import claim_json, device_facts, gpu_json, slice_json

LIVE = pod("live")
DONE = pod("done", phase="Succeeded")
GONE = pod("gone")
MISSING = ViewMemory(missing={GONE.uid: NOW - 900})
REFUSED = pod("refused", phase="Failed", reason="UnexpectedAdmissionError", created_at=NOW - 60)
OLD = pod("old", phase="Failed", reason="UnexpectedAdmissionError", created_at=NOW - 3601)
ELSEWHERE = pod("elsewhere", node="n2", phase="Failed", reason="UnexpectedAdmissionError", created_at=NOW - 60)
LONG, LONG_TERMINAL = ({"n1 0": lasting_since(cause, NOW - 600)} for cause in RULE.causes)
SHORT, SHORT_TERMINAL = ({"n1 0": lasting_since(cause, NOW - 599)} for cause in RULE.causes)
STALE = agent(card(), devices=(device(GONE),))
TERMINAL = agent(card(), devices=(device(DONE),))

CASES: tuple[tuple[str, AgentFact, tuple[PodFact, ...], Any, list[str]], ...] = (
    ("a pod that does not exist", STALE, (), LONG, ["stale-allocation"]),
    ("just below", STALE, (), SHORT, []),
    ("a finished pod: the kubelet takes its time", TERMINAL, (DONE,), LONG_TERMINAL, []),
    ("a finished pod, and the node refuses others", TERMINAL, (DONE, REFUSED), LONG_TERMINAL, ["terminal-pod"]),
    ("just below, refusing", TERMINAL, (DONE, REFUSED), SHORT_TERMINAL, []),
    ("it refused one long ago", TERMINAL, (DONE, OLD), LONG_TERMINAL, []),
    ("another node refused one", TERMINAL, (DONE, ELSEWHERE), LONG_TERMINAL, []),
    ("a live pod", agent(card(), devices=(device(LIVE),)), (LIVE, REFUSED), LONG_TERMINAL, []),
    ("a process is there: that is a zombie", agent(card(), devices=(device(GONE),),
     processes=(process(pod_uid=GONE.uid),)), (), LONG, []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given", "pods", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_phantom(name: str, given: AgentFact, pods: tuple[PodFact, ...], memory: Any, expect: list[str]) -> None:
    found = run(RULE, rule_context(given, pods=pods, memory=MISSING), memory)
    assert [cause for _, cause in causes(found)] == expect


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(TERMINAL, pods=(DONE, REFUSED)), LONG_TERMINAL).findings
    assert "n1 has counted GPU 0 as used by pod team/done, which has finished" in said(finding)
    assert "team/refused" in said(finding)
    assert "systemctl restart kubelet" in said(finding, "zh")


def test_a_claim_of_a_deleted_pod_is_up_to_the_controller_manager() -> None:
    devices = device_facts([claim_json("train", "gpu-0", pods=["gone"])], [slice_json(gpu_json(0))])
    (gone,) = devices.claims[0].reserved_for
    memory = ViewMemory(missing={gone.uid: NOW - 900})
    (finding,) = run(RULE, rule_context(agent(card()), memory=memory, devices=devices), LONG).findings
    assert finding.cause == "stale-allocation"
    assert "pod team/gone, which no longer exists, has kept GPU 0 of n1 allocated" in said(finding)
    assert "kube-controller-manager" in said(finding)
    assert "systemctl" not in said(finding, "zh")


def test_a_refused_pod_counts_for_a_while() -> None:
    engine = Engine((RULE,), {}, history_of(RULE, LONG_TERMINAL))
    (finding,) = engine.evaluate(rule_context(TERMINAL, pods=(DONE, REFUSED)))
    assert (finding.cause, engine.next_at) == ("terminal-pod", NOW - 60 + 3600)
    later = NOW - 60 + 3600
    assert (
        engine.evaluate(
            rule_context(agent(card(), devices=(device(DONE),), received_at=later - 1), pods=(DONE, REFUSED), now=later)
        )
        == ()
    )


def test_it_is_over_when_the_refused_pod_is_deleted() -> None:
    engine = Engine((RULE,), {}, history_of(RULE, LONG_TERMINAL))
    assert len(engine.evaluate(rule_context(TERMINAL, pods=(DONE, REFUSED)))) == 1
    assert engine.evaluate(rule_context(TERMINAL, pods=(DONE,))) == ()


HIDDEN = {
    "the agent is silent": rule_context(agent(card(), received_at=NOW - 90), memory=MISSING),
    "Kubernetes cannot be asked": rule_context(STALE, memory=MISSING, pods_known=False),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_held_while_nothing_is_known(name: str) -> None:
    (finding,) = after_silence(RULE, rule_context(STALE, memory=MISSING), HIDDEN[name], LONG)
    assert finding.held
    assert run(RULE, HIDDEN[name], LONG).memory == LONG


def test_words() -> None:
    assert catalog_problems(RULE) == []
