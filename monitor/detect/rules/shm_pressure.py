"""shm-pressure: the shared memory of a pod is nearly full, or too small for its data loaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Bytes, Latency, Ratio, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value, label_values
from monitor.detect.lib.storage import container_owner
from monitor.detect.subjects import NodeReport, NodeSubject
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
class _SharedMemory:
    """A /dev/shm with one of the containers that share it, their GPU processes, and whether they hold GPUs."""

    fact: ShmFact
    container: ContainerFact
    processes: int
    holds_gpus: bool

    @property
    def used_share(self) -> float:
        return self.fact.used_bytes / self.fact.size_bytes


def evaluate(node: NodeSubject, context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    """Pods of a node whose /dev/shm is too small."""
    findings = []
    for shm in _distinct(node.report):
        limits = _limits(node.name, shm.container, context)
        cause = _cause(shm, limits)
        if cause is not None:
            labels = _labels(node.name, shm.container, context.facts)
            severity = Severity.CRITICAL if shm.used_share >= limits.critical else Severity.WARNING
            findings.append(_finding(context.facts, shm, cause, severity, labels))
    return RuleResult(tuple(findings))


def _distinct(report: NodeReport) -> Iterator[_SharedMemory]:
    """Each /dev/shm once, without the host's own."""
    facts, snapshot = report.snapshot.shm or (), report.snapshot
    processes = Counter(process.pod_uid or process.container_id for process in snapshot.gpu_processes or ())
    holders = {device.pod_uid for device in snapshot.pod_devices or ()} | processes.keys()
    seen = {fact.device for fact in facts if fact.container_id is None}
    for fact in facts:
        container = report.containers.get(fact.container_id or "")
        if container is not None and fact.device not in seen and fact.size_bytes > 0:
            seen.add(fact.device)
            owner = container.pod_uid or container.id
            yield _SharedMemory(fact, container, processes[owner], owner in holders)


def _cause(shm: _SharedMemory, limits: Limits) -> str | None:
    if shm.used_share >= limits.nearly_full:
        return "nearly-full"
    works = shm.fact.used_bytes > 0 or shm.processes > 1
    return "default-size" if shm.holds_gpus and shm.fact.size_bytes <= limits.default_size and works else None


def _limits(node: str, container: ContainerFact, context: RuleContext) -> Limits:
    """Limits for a container. Without overrides its labels are not needed."""
    limits: Limits = context.limits.default
    return context.limits.of(_labels(node, container, context.facts)) if context.limits.overrides else limits


def _labels(node: str, container: ContainerFact, facts: ClusterFacts) -> dict[str, str]:
    identity = facts.identities.get(container.pod_uid or "")
    named = {"node": node, "pod": container.pod_name, "namespace": container.namespace}
    named |= {"container": None if container.pod_name else container.name or container.id}
    named |= {"user": facts.container_user(container)}
    owner = {"job": identity.job, "queue": identity.queue} if identity else {}
    return label_values(named | owner)


def _finding(
    facts: ClusterFacts, shm: _SharedMemory, cause: str, severity: Severity, labels: dict[str, str]
) -> Finding:
    pod, _ = container_owner(shm.container, facts)
    user = facts.container_user(shm.container)
    size: dict[str, Value] = {"used": shm.fact.used_bytes, "size": shm.fact.size_bytes}
    values: dict[str, Value] = {"pod": pod, "node": labels["node"], "share": shm.used_share, **size}
    evidence = [Text("shm-pressure.used", size)]
    evidence += [Text("shm-pressure.processes", {"count": shm.processes})] if shm.processes else []
    evidence += [Text("shm-pressure.owner", {"user": label_value(user)})] if user is not None else []
    return make_finding(
        "shm-pressure", cause, labels, values, severity=severity, evidence=evidence,
        advice_key="shm-pressure.advice", advice_values={"wanted": _suggested_size(shm.fact.size_bytes)},
    )  # fmt: skip


def _suggested_size(size_bytes: int) -> str:
    """Size to configure, as a Kubernetes quantity: at least twice the current one and at least 8 GiB."""
    fitting = (size for size in _SIZES_GIB if size * GIB >= max(2 * size_bytes, 8 * GIB))
    return f"{next(fitting, _SIZES_GIB[-1])}Gi"


RULE = Rule(
    "shm-pressure", Limits, CAUSES, evaluate, SubjectKind.NODE,
    needs=("shm", "containers"), uses=("gpu_processes", "pod_devices", "pods"),
    suppressed_by=("node-down",), latency=Latency(collector="shm"),
)  # fmt: skip
