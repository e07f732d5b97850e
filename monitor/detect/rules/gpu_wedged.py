"""gpu-wedged: a process holds a GPU but can neither run nor exit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib import gpus
from monitor.detect.visibility import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("d-state", "zombie-process", "vanished")
STATES = {"D": "d-state", "Z": "zombie-process", "gone": "vanished"}


@dataclass(frozen=True)
class Limits:
    """How long a process may be stuck: reading from a slow NAS looks the same for a while."""

    after: Seconds = 300.0


@dataclass(frozen=True)
class _Stuck:
    """A process stuck on a GPU."""

    gpu: GpuView
    cause: str
    pid: int
    process: str
    known_since: float | None

    @property
    def key(self) -> str:
        return f"{gpus.gpu_key(self.gpu)}/{self.pid}/{self.cause}"


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs with a stuck process: one finding per GPU, about the process stuck longest."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes")
    stuck = list(_stuck(context, reports))
    since = gpus.track_since(memory, {process.key: process.known_since for process in stuck}, blind, context.now)
    longest: dict[str, _Stuck] = {}
    for process in sorted(stuck, key=lambda process: (since[process.key], process.pid)):
        longest.setdefault(gpus.gpu_key(process.gpu), process)
    findings = []
    for process in longest.values():
        limits: Limits = context.limits.of(gpus.gpu_labels(process.gpu))
        if context.now - since[process.key] > limits.after:
            findings.append(_finding(process, since[process.key], context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _stuck(context: RuleContext, reports: Mapping[str, AgentFact]) -> Iterator[_Stuck]:
    """Stuck processes, with the node's times in our clock."""
    for gpu in gpus.gpus_in_state(context, GpuState.WEDGED):
        skew = clock_skew(reports.get(gpu.node))
        for item in gpu.evidence:
            values = item.values
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


RULE = Rule(
    "gpu-wedged",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={ANY_CAUSE: Latency("after")},
)
