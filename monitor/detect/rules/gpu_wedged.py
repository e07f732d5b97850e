"""gpu-wedged: a process holds a card and can neither work nor end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib import gpus
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("d-state", "zombie-process", "vanished")
STATES = {"D": "d-state", "Z": "zombie-process", "gone": "vanished"}


@dataclass(frozen=True)
class Limits:
    """How long a process may be stuck before it is said: reading from a slow NAS looks the same for a while."""

    after: Seconds = 300.0


@dataclass(frozen=True)
class _Stuck:
    """A process that is stuck on a card."""

    gpu: GpuView
    cause: str
    pid: int
    process: str
    known_since: float | None

    @property
    def key(self) -> str:
        return f"{gpus.gpu_key(self.gpu)}/{self.pid}/{self.cause}"


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the cards whose holder is stuck: one finding a card, about the process that has been so the longest."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes")
    stuck = list(_stuck(context, reports))
    since = gpus.track_since(memory, {each.key: each.known_since for each in stuck}, blind, context.now)
    longest: dict[str, _Stuck] = {}
    for each in sorted(stuck, key=lambda each: (since[each.key], each.pid)):
        longest.setdefault(gpus.gpu_key(each.gpu), each)
    findings = []
    for each in longest.values():
        limits: Limits = context.limits.of(gpus.gpu_labels(each.gpu))
        if context.now - since[each.key] > limits.after:
            findings.append(_finding(each, since[each.key], context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _stuck(context: RuleContext, reports: Mapping[str, AgentFact]) -> Iterator[_Stuck]:
    """Yield the processes that are stuck, with the node's times on our clock."""
    for gpu in gpus.gpus_in_state(context, GpuState.WEDGED):
        skew = gpus.clock_skew(reports.get(gpu.node))
        for each in gpu.evidence:
            values = each.values
            cause, pid, began = STATES.get(str(values.get("state"))), values.get("pid"), values.get("since")
            if cause is not None and isinstance(pid, int):
                known = began + skew if isinstance(began, int | float) else gpu.since
                yield _Stuck(gpu, cause, pid, str(values.get("process") or "?"), known)


def _finding(stuck: _Stuck, since: float, now: float) -> Finding:
    gpu = stuck.gpu
    holder = gpus.sole_holder(gpu) or next(iter(gpu.holders), None)
    values: dict[str, Value] = gpus.gpu_values(gpu)
    values |= {"pid": stuck.pid, "process": stuck.process, "seconds": now - since}
    return Finding(
        rule="gpu-wedged",
        severity=Severity.WARNING,
        cause=stuck.cause,
        labels=gpus.gpu_labels(gpu, holder),
        headline=Text(key=f"gpu-wedged.{stuck.cause}", values=values),
        evidence=(*gpus.memory_evidence(gpu), *gpus.owner_evidence(holder)),
        advice=(Text(key=f"gpu-wedged.{stuck.cause}.advice", values=values),),
        since=since,
    )


RULE = Rule("gpu-wedged", Limits, CAUSES, detect, suppressed_by=("node-down",), latency={ANY_CAUSE: Latency("after")})
