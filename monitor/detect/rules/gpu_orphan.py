"""gpu-orphan: a process that belongs to no pod uses a GPU, outside of all accounting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.base.globs import matches_any_glob
from monitor.detect.base import NOTHING, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.lib import gpu_cost, gpus
from monitor.detect.subjects import GpuSubject, NodeReport
from monitor.facts.cluster import GpuState
from monitor.facts.findings import Finding
from monitor.facts.text import Evidence, Text, Value

CAUSES = ("host-process", "other-container", "unknown-owner")
HOST, CONTAINER, UNKNOWN = CAUSES
MAX_NAMED = 5


@dataclass(frozen=True)
class Limits:
    """How long such a process is tolerated, and which ones are expected. The kernel cuts names after 15 characters."""

    after: Seconds = 60.0
    allowed: tuple[str, ...] = ("nvidia-cuda-mps*", "nvidia-persist*", "nvidia-smi", "nv-hostengine", "Xorg")


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU with processes outside any pod. Nodes outside Kubernetes are exempt."""
    view, node = gpu.view, gpu.node.view
    if view.state is not GpuState.ORPHAN or node is None or not node.in_kubernetes:
        return NOTHING
    limits: Limits = gpus.gpu_limits(context, view)
    orphans = [process for process in view.evidence if not _is_allowed(process, limits)]
    if not orphans:
        return NOTHING
    return lasting(
        "orphan", limits.after, memory, now, lambda since: _finding(gpu, orphans, since, context), view.since
    )


def _is_allowed(process: Evidence, limits: Limits) -> bool:
    name = str(process.values.get("process", ""))
    return bool(name) and matches_any_glob(name, limits.allowed)


def _cause(process: Evidence) -> str:
    """Origin of a process; unknown if /proc gives neither name nor user."""
    if process.key == CONTAINER:
        return CONTAINER
    return HOST if process.values.get("process") or "uid" in process.values else UNKNOWN


def _finding(subject: GpuSubject, orphans: list[Evidence], since: float, context: RuleContext) -> Finding:
    gpu, first = subject.view, orphans[0]
    values: dict[str, Value] = {"pid": first.values.get("pid", 0), "process": first.values.get("process") or "?"}
    values["container"] = _container_name(str(first.values.get("container", "")), subject.node.report)
    evidence = [*gpus.memory_evidence(gpu)]
    if "uid" in first.values:
        evidence.insert(0, Text("gpu-orphan.uid", {"uid": first.values["uid"]}))
    if others := orphans[1 : MAX_NAMED + 1]:
        pids = ", ".join(str(process.values.get("pid", "?")) for process in others)
        evidence.append(Text("gpu-orphan.others", {"count": len(orphans) - 1, "pids": pids}))
    evidence += gpu_cost.cost_so_far(context.prices, [gpu_cost.WastedGpu(gpu, since)])
    return gpus.gpu_finding("gpu-orphan", _cause(first), gpu, None, values, evidence=evidence, since=since)


def _container_name(container_id: str, report: NodeReport) -> str:
    """Name of a container, or else its short ID."""
    known = report.containers.get(container_id)
    return (known.name if known else None) or container_id[:12]


RULE = Rule(
    "gpu-orphan", Limits, CAUSES, evaluate, SubjectKind.GPU,
    needs=("gpu", "gpu_processes"), uses=("containers",), refines=("gpus",),
    kube=("pods", "nodes"), suppressed_by=("node-down",),
)  # fmt: skip
