"""shm-pressure: the shared memory of a pod is nearly full, or too small for its data loaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Bytes,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.detect.lib.storage import container_owner, node_reports
from monitor.detect.subjects import NodeReport
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from monitor.facts.workload import ContainerFact, ShmFact

CAUSES = ("nearly-full", "default-size")
GIB = 1024**3
DEFAULT_BYTES = 64 * 1024**2  # default of Docker and containerd
_SIZES_GIB = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Limits:
    """How full it may be, and the size that counts as never configured."""

    nearly_full: Ratio = 0.85
    critical: Ratio = 0.95
    default_size: Bytes = DEFAULT_BYTES


@dataclass(frozen=True)
class _GpuUse:
    """GPU processes by pod or container of a node, and those that hold GPUs."""

    processes: Counter[str]
    holders: frozenset[str]


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Pods whose /dev/shm is too small."""
    reports, may_exceed = node_reports(context), _may_exceed(context)
    findings = []
    for report in reports.nodes.values():
        if not any(may_exceed(shm) for shm in report.snapshot.shm or ()):
            continue
        gpus = _gpu_use(report)
        for shm, container in _distinct_mounts(report):
            labels = _labels(report, container, context.facts)
            cause = _cause(shm, container, gpus, context.limits.of(labels))
            if cause is not None:
                findings.append(_finding(context, report, shm, container, cause, gpus))
    return RuleResult(findings=tuple(findings), blind=reports.blind_scopes("shm", "containers"))


def _may_exceed(context: RuleContext) -> Callable[[ShmFact], bool]:
    """Cheap check whether a /dev/shm could violate any limit; few need a closer one."""
    limits = [context.limits.default, *(override.limits for override in context.limits.overrides)]
    share, size = min(limit.nearly_full for limit in limits), max(limit.default_size for limit in limits)
    return lambda shm: shm.used_bytes >= share * shm.size_bytes or shm.size_bytes <= size


def _distinct_mounts(report: NodeReport) -> list[tuple[ShmFact, ContainerFact]]:
    """Each /dev/shm once, with one of the containers that share it; without the host's own."""
    facts = report.snapshot.shm or ()
    seen = {fact.device for fact in facts if fact.container_id is None}
    mounts = []
    for fact in facts:
        container = report.containers.get(fact.container_id or "")
        if container is not None and fact.device not in seen and fact.size_bytes > 0:
            seen.add(fact.device)
            mounts.append((fact, container))
    return mounts


def _subject(container: ContainerFact) -> str:
    return container.pod_uid or container.id


def _gpu_use(report: NodeReport) -> _GpuUse:
    processes: Counter[str] = Counter()
    for process in report.snapshot.gpu_processes or ():
        if subject := process.pod_uid or process.container_id:
            processes[subject] += 1
    devices = {device.pod_uid for device in report.snapshot.pod_devices or () if device.pod_uid}
    return _GpuUse(processes, frozenset(devices | processes.keys()))


def _cause(shm: ShmFact, container: ContainerFact, gpus: _GpuUse, limits: Limits) -> str | None:
    if shm.used_bytes / shm.size_bytes >= limits.nearly_full:
        return "nearly-full"
    subject = _subject(container)
    works = shm.used_bytes > 0 or gpus.processes[subject] > 1
    return "default-size" if subject in gpus.holders and shm.size_bytes <= limits.default_size and works else None


def _labels(report: NodeReport, container: ContainerFact, facts: ClusterFacts) -> dict[str, str]:
    identity = facts.identities.get(container.pod_uid or "")
    named = {
        "node": report.node,
        "pod": container.pod_name,
        "namespace": container.namespace,
        "container": None if container.pod_name else container.name or container.id,
        "user": facts.container_user(container),
        "job": identity.job if identity else None,
        "queue": identity.queue if identity else None,
    }
    return {name: label_value(value) for name, value in named.items() if value}


def _finding(
    context: RuleContext, report: NodeReport, shm: ShmFact, container: ContainerFact, cause: str, gpus: _GpuUse
) -> Finding:
    labels = _labels(report, container, context.facts)
    limits: Limits = context.limits.of(labels)
    pod, user = container_owner(container, context.facts)
    share = shm.used_bytes / shm.size_bytes
    size: dict[str, Value] = {"used": shm.used_bytes, "size": shm.size_bytes}
    processes = gpus.processes[_subject(container)]
    evidence = [Text(key="shm-pressure.used", values=size)]
    evidence += [Text(key="shm-pressure.processes", values={"count": processes})] if processes else []
    evidence += [Text(key="shm-pressure.owner", values={"user": user})] if user != "-" else []
    return Finding(
        rule="shm-pressure",
        severity=Severity.CRITICAL if share >= limits.critical else Severity.WARNING,
        cause=cause,
        labels=labels,
        headline=Text(key=f"shm-pressure.{cause}", values={"pod": pod, "node": report.node, "share": share, **size}),
        evidence=tuple(evidence),
        advice=(Text(key="shm-pressure.advice", values={"wanted": _suggested_size(shm.size_bytes)}),),
    )


def _suggested_size(size_bytes: int) -> str:
    """Size to configure, as a Kubernetes quantity: at least twice the current one and at least 8 GiB."""
    fitting = (size for size in _SIZES_GIB if size * GIB >= max(2 * size_bytes, 8 * GIB))
    return f"{next(fitting, _SIZES_GIB[-1])}Gi"


RULE = Rule(
    "shm-pressure",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={ANY_CAUSE: Latency(collector="shm")},
)
