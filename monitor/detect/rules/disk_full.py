"""disk-full: a disk or its inodes are nearly used up, or the kernel remounted it read-only; with what fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Latency, Ratio, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.disk_contents import CAUSES, DiskContents, disk_contents
from monitor.detect.lib.node_conditions import same_fault
from monitor.detect.lib.pods import pod_identity
from monitor.detect.lib.pulls import classified
from monitor.detect.lib.storage import disk_values, space_evidence, used_ratio
from monitor.detect.subjects import ClusterDisk
from monitor.explain.error_chain.causes import PullFailureCause
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text

NEEDED_BY_NODE = frozenset({"system", "runtime", "kubelet"})
START_RULES = ("image-pull", "pod-start-failed", "pod-stuck-creating")
_BOOT = "/boot"  # often 80 % full after updates, and does not grow
_HYSTERESIS_RATIO = 0.01  # keeps an alert from flapping at the limit
_MAX_EXPLAINED_PODS = 100


@dataclass(frozen=True)
class Limits:
    """Used share, as df counts, at which a disk counts as full; the same for inodes."""

    warning: Ratio = 0.80
    critical: Ratio = 0.90


def evaluate(disk: ClusterDisk, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A full disk. The memory holds whether it was seen writable, and since when it has been full."""
    if disk.fact.mount.startswith(_BOOT):
        return NOTHING
    before: dict[str, Any] = memory if isinstance(memory, dict) else {}
    writable = not disk.shared and (disk.fact.read_only is False or "writable" in before)
    remembered: dict[str, Any] = {"writable": True} if writable else {}
    problem = _problem(disk, context.limits.of(disk.labels), before)
    if problem is None:
        return RuleResult(memory=remembered or None)
    since = min(before.get("since", now), now)
    return RuleResult((_finding(context, disk, *problem, since),), remembered | {"since": since})


def _problem(disk: ClusterDisk, limits: Limits, before: dict[str, Any]) -> tuple[str, Severity] | None:
    """The worst problem of a disk: read-only before full, bytes before inodes."""
    needed = bool({"runtime", "kubelet"} & set(disk.fact.roles))
    # Only a disk that was writable, or has to be, can have become read-only.
    if disk.fact.read_only and not disk.shared and ("writable" in before or needed):
        return "read-only", Severity.CRITICAL
    used_bytes, used_inodes = used_ratio(disk.fact) or 0.0, inode_ratio(disk.fact) or 0.0
    limit = limits.warning - (_HYSTERESIS_RATIO if "since" in before else 0.0)
    if max(used_bytes, used_inodes) < limit:
        return None
    severity = Severity.CRITICAL if max(used_bytes, used_inodes) >= limits.critical else Severity.WARNING
    return "bytes" if used_bytes >= limit else "inodes", severity


def inode_ratio(fact: DiskFact) -> float | None:
    """Used share of the inodes; None if the filesystem does not count them."""
    return fact.inodes_used / fact.inodes if fact.inodes and fact.inodes_used is not None else None


def _finding(context: RuleContext, disk: ClusterDisk, what: str, severity: Severity, since: float) -> Finding:
    fact, held = disk.fact, disk_contents(disk, context.facts)
    cause = held.cause if what == "bytes" else "datasets" if "datasets" in held.parts else "other"
    share = (inode_ratio(fact) if what == "inodes" else used_ratio(fact)) or 0.0
    return make_finding(
        "disk-full", cause, disk.labels,
        disk_values(disk, share=share, bytes=held.parts.get(cause, 0), available=fact.available_bytes or 0),
        severity=severity, key=f"disk-full.{cause if what == 'bytes' else what}", evidence=_evidence(disk, held),
        advice_values={"node": disk.report.node, "mount": fact.mount, "device": fact.device},
        since=since, explains=_explains(disk, cause, severity, context),
    )  # fmt: skip


def _evidence(disk: ClusterDisk, held: DiskContents) -> tuple[Text, ...]:
    fact, notes = disk.fact, []
    if fact.used_bytes is not None and fact.size_bytes is not None:
        notes.append(space_evidence(fact))
    if fact.inodes and fact.inodes_used is not None:
        notes.append(Text("disk-inodes", {"used": fact.inodes_used, "inodes": fact.inodes}))
    if len(disk.nodes) > 1:
        notes.append(Text("disk-nodes", {"count": len(disk.nodes), "node": disk.nodes[0]}))
    return (*notes, *held.evidence)


def _explains(disk: ClusterDisk, cause: str, severity: Severity, context: RuleContext) -> tuple[Scope, ...]:
    """Scopes of the symptoms of a full disk: only what names the disk or a lack of space, not all of its node."""
    scopes = list(same_fault(disk.labels, "inodes"))
    if cause == "images":
        scopes.append(Scope(labels=disk.labels, rules=("image-cache-large",)))
    if severity is Severity.CRITICAL:
        scopes.append(Scope(labels=disk.labels, rules=("disk-filling",)))
    if not NEEDED_BY_NODE & set(disk.fact.roles):
        return tuple(scopes)
    node = context.facts.node_by_name.get(disk.report.node)
    if node is not None and node.ready and any(c.type == "DiskPressure" and c.status for c in node.conditions):
        scopes.append(Scope(labels={"node": label_value(node.name)}, rules=("node-down",)))
    pods = [pod for pod in context.facts.bound.get(disk.report.node, ()) if _no_space(pod, context.facts)]
    for pod in pods[:_MAX_EXPLAINED_PODS]:
        scopes.append(Scope(labels=pod_identity(pod), rules=START_RULES))
        for image in {container.image for container in pod.containers if container.image}:
            labels = {"node": label_value(disk.report.node), "image": label_value(image)}
            scopes.append(Scope(labels=labels, rules=("image-pull",)))
    return tuple(scopes)


def _no_space(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether a pod cannot start because the disk is full, according to its latest messages."""
    if pod.phase != "Pending":
        return False
    messages = [(status.reason, status.message) for status in pod.statuses if status.message]
    messages += [(None, event.message) for event in facts.events_of(pod)[-5:] if event.message]
    return any(classified(reason, message).cause is PullFailureCause.DISK_FULL for reason, message in messages)


RULE = Rule(
    "disk-full", Limits, CAUSES, evaluate, SubjectKind.MOUNT,
    needs=("disk",), refines=("images", "runtime_usage", "containers", "logs", "node", "pods"),
    latency=Latency(collector="disk"),
)  # fmt: skip
