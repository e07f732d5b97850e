"""gpu-ghost: memory or utilization without a process."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.gpu_ghost import RULE
from monitor.facts import CollectorFact
from monitor.facts.agents import AgentFact
from tests.cluster.builders import GIB, NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, remembered, rule_context, run, said
from tests.detect.running import lasting_since

LEAK = agent(card(memory_used_bytes=40 * GIB))
SINCE = {"n1 0": lasting_since("ghost", NOW - 300)}
MUTE = CollectorFact(name="gpu_processes", outcome="ok", interval_seconds=15, message="not told by cards 0")
HUNG = CollectorFact(name="gpu_processes", outcome="ok", interval_seconds=15, hung_since=NOW - 90)

CASES: tuple[tuple[str, AgentFact, Any, list[str]], ...] = (
    ("memory and nobody on it", LEAK, SINCE, ["memory-leak"]),
    ("just below five minutes", LEAK, {"n1 0": lasting_since("ghost", NOW - 299)}, []),
    ("seen for the first time", LEAK, None, []),
    ("the counter is stuck", agent(card(utilization_ratio=1.0)), SINCE, ["latched-utilisation"]),
    ("both: the memory matters more", agent(card(utilization_ratio=1.0, memory_used_bytes=2 * GIB)), SINCE,
     ["memory-leak"]),
    ("what the driver itself needs", agent(card(memory_used_bytes=GIB // 2)), SINCE, []),
    ("somebody is on it", agent(card(memory_used_bytes=40 * GIB), processes=(process(),)), SINCE, []),
    ("the card does not tell its processes", agent(card(memory_used_bytes=40 * GIB), collectors=(MUTE,)), SINCE, []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_ghost(name: str, given: AgentFact, memory: Any, expect: list[str]) -> None:
    assert [cause for _, cause in causes(run(RULE, rule_context(given), memory))] == expect


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(LEAK, memory=remembered("ghost", 600))).findings
    assert "40 GiB of memory on GPU 0 of n1 has been allocated for 10 min although no process is on it." in said(
        finding
    )
    assert "nvidia-smi --gpu-reset -i 0" in said(finding, "zh")
    assert finding.labels == {"node": "n1", "gpu": "0"}


def test_the_pod_that_has_the_card_is_named() -> None:
    mine = pod("mine")
    held = agent(card(memory_used_bytes=40 * GIB), devices=(device(mine),))
    (finding,) = run(RULE, rule_context(held, pods=(mine,)), SINCE).findings
    assert (finding.labels["pod"], finding.labels["user"]) == ("mine", "alice")


@pytest.mark.parametrize(
    "blind", [agent(card(), received_at=NOW - 90), agent(card(), processes=None, collectors=(HUNG,))]
)
def test_held_while_nothing_is_known(blind: AgentFact) -> None:
    (finding,) = after_silence(RULE, rule_context(LEAK), rule_context(blind), SINCE)
    assert finding.held
    assert run(RULE, rule_context(blind), SINCE).memory == SINCE


def test_gone_when_the_memory_is_free() -> None:
    assert after_silence(RULE, rule_context(LEAK), rule_context(agent(card())), SINCE) == ()


def test_words() -> None:
    assert catalog_problems(RULE) == []
