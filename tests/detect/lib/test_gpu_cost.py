"""Alerts about GPUs that are held without use state what they cost so far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.cluster.view import ViewMemory
from monitor.detect.base import Rule, RuleContext
from monitor.detect.correlation import aged
from monitor.detect.findings import make_finding
from monitor.detect.lib.gpu_cost import WastedGpu, cost_of_window, cost_so_far, idle_gpu, zombie_gpu
from monitor.detect.rules import gpu_ghost, gpu_idle, gpu_orphan, gpu_phantom, gpu_wedged, gpu_zombie
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.prices import GpuPrices
from tests.cluster.builders import NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import idle, remembered, rule_context, run, said

A100 = "NVIDIA A100-SXM4-80GB"
PRICES = GpuPrices("CNY", (("NVIDIA A100*", 12.0), ("NVIDIA H20*", 6.0)))
HOUR = 3600.0


def held(*ratios: float | None, model: str | None = A100, live: bool = True) -> GpuView:
    holders = tuple(Holder(pod_uid=str(number), live=live, device_ratio=ratio) for number, ratio in enumerate(ratios))
    return GpuView(node="n1", index=0, state=GpuState.IDLE_HELD, model=model, holders=holders)


COSTS: list[tuple[str, list[WastedGpu], str | None]] = [
    ("an hour", [idle_gpu(held(1.0), NOW - HOUR)], "12.00 CNY"),
    ("two GPUs, each since its own time", [idle_gpu(held(1.0), NOW - 2 * HOUR), idle_gpu(held(1.0), NOW - HOUR)],
     "36.00 CNY"),
    ("a slice", [idle_gpu(held(0.25), NOW - HOUR)], "3.00 CNY"),
    ("two pods hold it together", [idle_gpu(held(1.0, 1.0), NOW - HOUR)], "12.00 CNY"),
    ("one of two zombies", [zombie_gpu(held(1.0, 1.0, live=False), NOW - HOUR, Holder(live=False))], "6.00 CNY"),
    ("without a holder", [WastedGpu(held(), NOW - HOUR)], "12.00 CNY"),
    ("a share of unknown size", [idle_gpu(held(None), NOW - HOUR)], None),
    ("no price for the model", [idle_gpu(held(1.0, model="Tesla T4"), NOW - HOUR)], None),
    ("no price for one of them", [idle_gpu(held(1.0), NOW - HOUR), idle_gpu(held(1.0, model=None), NOW)], None),
    ("nothing", [], None),
]  # fmt: skip


def at(gpus: list[WastedGpu], prices: GpuPrices | None) -> list[str]:
    """Costs that a finding about GPUs states now."""
    since = min((wasted.since for wasted in gpus), default=NOW)
    finding = make_finding("gpu-ghost", "memory-leak", {}, {}, evidence=cost_so_far(prices, gpus), since=since)
    (found,) = aged([finding], NOW)
    return [str(text.values["cost"]) for text in found.evidence]


JOB = pod("job", statuses=(ContainerStatusFact(name="c", state="running", started_at=NOW - 9000),))


def one() -> AgentFact:
    return agent(card(model=A100), devices=(device(JOB),))


def context(given: AgentFact, who: PodFact, memory: ViewMemory, prices: GpuPrices | None = PRICES) -> RuleContext:
    return replace(rule_context(given, pods=(who,), memory=memory), prices=prices)


@pytest.mark.parametrize(("name", "gpus", "expect"), COSTS, ids=[row[0] for row in COSTS])
def test_cost_so_far(name: str, gpus: list[WastedGpu], expect: str | None) -> None:
    assert at(gpus, PRICES) == ([expect] if expect is not None else [])
    assert at(gpus, None) == []


def test_cost_of_a_window() -> None:
    (text,) = cost_of_window(PRICES, [held(1.0), held(1.0, model="NVIDIA H20")], 2 * HOUR)
    assert text.values == {"cost": "36.00 CNY", "window": 2 * HOUR}
    assert cost_of_window(PRICES, [held(1.0), held(1.0, model="Tesla T4")], HOUR) == ()
    assert cost_of_window(None, [held(1.0)], HOUR) == ()


DONE, GONE = pod("done", phase="Succeeded"), pod("gone")
ORPHAN = process(pod_uid=None, name="python", uid=1000)
RULES: list[tuple[str, Rule, AgentFact, PodFact, ViewMemory, Any]] = [
    ("idle", gpu_idle.RULE, one(), JOB, idle(1800, 0), None),
    ("zombie", gpu_zombie.RULE, agent(card(model=A100), processes=(process(pod_uid=DONE.uid),)), DONE,
     remembered("zombie", 1800), None),
    ("orphan", gpu_orphan.RULE, agent(card(model=A100), processes=(ORPHAN,)), DONE, remembered("orphan", 1800), None),
    ("ghost", gpu_ghost.RULE, agent(card(model=A100, memory_used_bytes=10 << 30)), DONE, remembered("ghost", 1800),
     None),
    ("phantom", gpu_phantom.RULE, agent(card(model=A100), devices=(device(GONE),)), DONE,
     ViewMemory(missing={GONE.uid: NOW - 1800}, cards=remembered("phantom", 1800).cards), None),
    ("wedged", gpu_wedged.RULE,
     agent(card(model=A100), processes=(process(pod_uid=DONE.uid, state="D", state_since=NOW - 1800),)), DONE,
     remembered("wedged", 1800), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rule", "given", "who", "memory", "before"), RULES, ids=[row[0] for row in RULES])
def test_alerts_state_the_cost_in_both_languages(
    name: str, rule: Rule, given: AgentFact, who: PodFact, memory: ViewMemory, before: Any
) -> None:
    (finding,) = aged(run(rule, context(given, who, memory), before).findings, NOW)
    assert finding.since == NOW - 1800
    assert "Cost so far: 6.00 CNY (12.00 CNY per hour)." in said(finding)
    assert "到目前为止的费用：6.00 CNY（每小时 12.00 CNY）。" in said(finding, "zh")
    (later,) = aged([finding], NOW + 1800)
    assert "Cost so far: 12.00 CNY" in said(later)
    (unpriced,) = run(rule, context(given, who, memory, None), before).findings
    assert "Cost" not in said(unpriced)
