"""gpu-wedged: holders that can neither run nor exit."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.gpu_wedged import RULE
from monitor.facts.agents import AgentFact
from tests.cluster.builders import NOW, agent, card, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said

MINE = pod("mine")
OLD = {"n1 0": {"100/d-state": NOW - 400}}


def stuck(state: str, seconds: float, pid: int = 100) -> Any:
    return process(pid, pod_uid=MINE.uid, container_id="c" * 64, state=state, state_since=NOW - seconds, name="python")


def on(*processes: Any, **fields: Any) -> AgentFact:
    return agent(card(), processes=processes, **fields)


CASES: tuple[tuple[str, AgentFact, Any, list[str]], ...] = (
    ("in the kernel", on(stuck("D", 300)), None, ["d-state"]),
    ("just below five minutes", on(stuck("D", 299)), None, []),
    ("dead", on(stuck("Z", 301)), None, ["zombie-process"]),
    ("not in /proc", on(stuck("gone", 301)), None, ["vanished"]),
    ("asleep", on(stuck("S", 9000)), None, []),
    ("the longest of several", on(stuck("D", 301), stuck("Z", 900, 101)), None, ["zombie-process"]),
    ("the agent was restarted and counts anew", on(stuck("D", 40)), OLD, ["d-state"]),
    ("garbage in the memory", on(stuck("D", 40)), {"n1 0": {"100/d-state": "x"}}, []),
    ("another process than the one before", on(stuck("D", 40, 101)), OLD, []),
    ("the node's clock is an hour behind", on(stuck("D", 3700), at=NOW - 3601, received_at=NOW - 1), None, []),
    ("and now it is long enough", on(stuck("D", 3902), at=NOW - 3601, received_at=NOW - 1), None, ["d-state"]),
)


@pytest.mark.parametrize(("name", "given", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_wedged(name: str, given: AgentFact, memory: Any, expect: list[str]) -> None:
    found = run(RULE, rule_context(given, pods=(MINE,)), memory)
    assert [cause for _, cause in causes(found)] == expect


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(on(stuck("D", 600)), pods=(MINE,))).findings
    assert "Process 100 (python) on GPU 0 of n1 has been stuck in the kernel (state D) for 10 min." in said(finding)
    assert "/proc/100/stack" in said(finding, "zh")
    assert finding.labels["user"] == "alice"
    assert finding.since == NOW - 600


def test_held_while_nothing_is_known() -> None:
    before, blind = rule_context(on(stuck("D", 600))), rule_context(on(stuck("D", 600), received_at=NOW - 90))
    (finding,) = after_silence(RULE, before, blind)
    assert finding.held
    assert run(RULE, blind, OLD).memory == OLD


def test_gone_when_it_works_again() -> None:
    assert after_silence(RULE, rule_context(on(stuck("D", 600))), rule_context(on(stuck("R", 5)))) == ()


def test_words() -> None:
    assert catalog_problems(RULE) == []
