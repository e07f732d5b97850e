"""gpu-wedged: a process holds a GPU but can neither run nor exit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.lib import gpu_cost, gpus
from monitor.detect.subjects import GpuSubject
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding
from monitor.facts.text import Value

CAUSES = ("d-state", "zombie-process", "vanished")
STATES = {"D": "d-state", "Z": "zombie-process", "gone": "vanished"}


@dataclass(frozen=True)
class Limits:
    """How long a process may be stuck: reading from a slow NAS looks the same for a while."""

    after: Seconds = 300.0


@dataclass(frozen=True)
class _Stuck:
    """A process stuck on a GPU."""

    cause: str
    pid: int
    process: str
    known_since: float | None


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU with stuck processes; the finding is about the one stuck longest."""
    stuck = {f"{process.pid}/{process.cause}": process for process in _stuck(gpu)}
    if not stuck:
        return NOTHING
    since = gpus.track_since(memory, {key: process.known_since for key, process in stuck.items()}, now)
    longest = min(stuck, key=lambda key: (since[key], stuck[key].pid))
    limits: Limits = gpus.gpu_limits(context, gpu.view)
    if now - since[longest] < limits.after:
        return RuleResult(memory=since, next_at=since[longest] + limits.after)
    return RuleResult((_finding(gpu.view, stuck[longest], since[longest], context),), since)


def _stuck(gpu: GpuSubject) -> Iterator[_Stuck]:
    """Stuck processes, with the node's times in our clock."""
    view = gpu.view
    for item in view.evidence if view.state is GpuState.WEDGED else ():
        values = item.values
        cause, pid, began = STATES.get(str(values.get("state"))), values.get("pid"), values.get("since")
        if cause is not None and isinstance(pid, int):
            known = began + gpu.node.report.skew if isinstance(began, int | float) else view.since
            yield _Stuck(cause, pid, str(values.get("process") or "?"), known)


def _finding(gpu: GpuView, stuck: _Stuck, since: float, context: RuleContext) -> Finding:
    holder = gpus.sole_holder(gpu) or next(iter(gpu.holders), None)
    values: dict[str, Value] = {"pid": stuck.pid, "process": stuck.process}
    cost = gpu_cost.cost_so_far(context.prices, [gpu_cost.WastedGpu(gpu, since)])
    evidence = (*gpus.memory_evidence(gpu), *cost)
    return gpus.gpu_finding("gpu-wedged", stuck.cause, gpu, holder, values, evidence=evidence, since=since)


RULE = Rule(
    "gpu-wedged", Limits, CAUSES, evaluate, SubjectKind.GPU, needs=("gpu", "gpu_processes"), refines=("gpus",),
    suppressed_by=("node-down",), latency=Latency("after"),
)  # fmt: skip
