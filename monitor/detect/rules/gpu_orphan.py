"""gpu-orphan: a process that belongs to no pod uses a GPU, outside of all accounting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.base.globs import matches_any_glob
from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib import gpus
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Evidence, Text, Value

CAUSES = ("host-process", "other-container", "unknown-owner")
HOST, CONTAINER, UNKNOWN = CAUSES
MAX_NAMED = 5


@dataclass(frozen=True)
class Limits:
    """How long such a process is tolerated, and which ones are expected. The kernel cuts names after 15 characters."""

    after: Seconds = 60.0
    allowed: tuple[str, ...] = ("nvidia-cuda-mps*", "nvidia-persist*", "nvidia-smi", "nv-hostengine", "Xorg")


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs with processes outside any pod. Nodes outside Kubernetes are exempt."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes", kube=("pods", "nodes"))
    orphaned = {} if blind.everything else _orphans(context)
    since = gpus.track_since(memory, {key: gpu.since for key, (gpu, _) in orphaned.items()}, blind, context.now)
    findings = []
    for key, (gpu, orphans) in orphaned.items():
        limits: Limits = context.limits.of(gpus.gpu_labels(gpu))
        if context.now - since[key] >= limits.after:
            findings.append(_finding(gpu, orphans, since[key], context.now, reports))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _orphans(context: RuleContext) -> dict[str, tuple[GpuView, list[Evidence]]]:
    nodes, orphaned = context.facts.view_of_node, {}
    for gpu in gpus.gpus_in_state(context, GpuState.ORPHAN):
        limits: Limits = context.limits.of(gpus.gpu_labels(gpu))
        orphans = [process for process in gpu.evidence if not _is_allowed(process, limits)]
        if orphans and nodes[gpu.node].in_kubernetes:
            orphaned[gpus.gpu_key(gpu)] = gpu, orphans
    return orphaned


def _is_allowed(process: Evidence, limits: Limits) -> bool:
    name = str(process.values.get("process", ""))
    return bool(name) and matches_any_glob(name, limits.allowed)


def _cause(process: Evidence) -> str:
    """Origin of a process; unknown if /proc gives neither name nor user."""
    if process.key == CONTAINER:
        return CONTAINER
    return HOST if process.values.get("process") or "uid" in process.values else UNKNOWN


def _finding(
    gpu: GpuView, orphans: list[Evidence], since: float, now: float, reports: Mapping[str, AgentFact]
) -> Finding:
    first = orphans[0]
    cause = _cause(first)
    values: dict[str, Value] = gpus.gpu_values(gpu) | {
        "pid": first.values.get("pid", 0),
        "process": first.values.get("process") or "?",
        "container": _container_name(str(first.values.get("container", "")), reports.get(gpu.node)),
        "seconds": now - since,
    }
    evidence = [*gpus.memory_evidence(gpu)]
    if "uid" in first.values:
        evidence.insert(0, Text(key="gpu-orphan.uid", values={"uid": first.values["uid"]}))
    if others := orphans[1 : MAX_NAMED + 1]:
        pids = ", ".join(str(process.values.get("pid", "?")) for process in others)
        evidence.append(Text(key="gpu-orphan.others", values={"count": len(orphans) - 1, "pids": pids}))
    return Finding(
        rule="gpu-orphan",
        severity=Severity.WARNING,
        cause=cause,
        labels=gpus.gpu_labels(gpu),
        headline=Text(key=f"gpu-orphan.{cause}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"gpu-orphan.{cause}.advice", values=values),),
        since=since,
    )


def _container_name(container_id: str, agent: AgentFact | None) -> str:
    """Name of a container, or else its short ID."""
    snapshot = agent.snapshot if agent else None
    matching = (
        (container for container in (snapshot.containers or ()) if container.id == container_id)
        if snapshot
        else iter(())
    )
    known = next(matching, None)
    return (known.name if known else None) or container_id[:12]


RULE = Rule("gpu-orphan", Limits, CAUSES, whole_cluster(detect), SubjectKind.CLUSTER, suppressed_by=("node-down",))
