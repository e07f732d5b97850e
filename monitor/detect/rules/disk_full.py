"""disk-full: a disk or its inodes are nearly used up, or the kernel remounted it read-only; with what fills it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Ratio, Rule, RuleContext, RuleResult, cached_per_evaluation
from monitor.detect.lib.disk_contents import CAUSES, DiskContents, disk_contents
from monitor.detect.lib.storage import (
    MAX_REMEMBERED_NODES,
    ClusterDisk,
    NodeReports,
    known_disks,
    memory_sections,
    node_reports,
    used_ratio,
)
from monitor.detect.visibility import label_value
from monitor.explain.image_pull import PullFailureCause, classify
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text, Value

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


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Full disks. The memory holds which were full on which nodes, and which were writable."""
    previous, writable = memory_sections(memory, "found", "writable")
    reports = node_reports(context)
    seen = known_disks(context)
    findings, current = [], {}
    for disk in seen.disks:
        if disk.fact.mount.startswith(_BOOT):
            continue
        finding = _evaluate(context, disk, disk.key in writable, previous.get(disk.key))
        if finding is not None:
            findings.append(finding)
            current[disk.key] = _remembered(disk, finding)
    known = {disk.key for disk in seen.disks}
    hidden = {
        key: entry for key, entry in previous.items() if key not in known and _is_hidden(entry, reports, seen.blind)
    }
    blind = (
        *reports.blind_scopes("disk"),
        *seen.blind,
        *(Scope(labels=dict(entry["labels"])) for entry in hidden.values()),
    )
    remembered = {"found": hidden | current, "writable": _writable(seen.disks, writable, reports)}
    return RuleResult(findings=tuple(findings), memory=remembered, blind=blind)


def _remembered(disk: ClusterDisk, finding: Finding) -> dict[str, Any]:
    return {"since": finding.since, "labels": finding.labels, "nodes": list(disk.nodes[:MAX_REMEMBERED_NODES])}


def _is_hidden(entry: Any, reports: NodeReports, blind: tuple[Scope, ...]) -> bool:
    """Whether a full disk may still be full because no node that mounts it reports."""
    hidden = any(scope.labels == entry["labels"] for scope in blind)
    return hidden or reports.any_hidden(entry["nodes"], "disk")


def _writable(known: Iterable[ClusterDisk], before: dict[str, Any], reports: NodeReports) -> dict[str, int]:
    """Disks seen writable: only these can have become read-only."""
    kept = {disk.key: 1 for disk in known if not disk.shared and (disk.fact.read_only is False or disk.key in before)}
    return kept | {key: 1 for key in before if reports.any_hidden((key.partition(" ")[0],), "disk")}


def _evaluate(context: RuleContext, disk: ClusterDisk, was_writable: bool, previous: Any) -> Finding | None:
    """The worst problem of a disk: read-only before full, bytes before inodes."""
    limits: Limits = context.limits.of(disk.labels)
    since = previous["since"] if previous else context.now
    needed = bool({"runtime", "kubelet"} & set(disk.fact.roles))
    if disk.fact.read_only and not disk.shared and (was_writable or needed):
        return _finding(context, disk, "read-only", Severity.CRITICAL, since)
    slack = _HYSTERESIS_RATIO if previous else 0.0
    shares = {"bytes": used_ratio(disk.fact), "inodes": inode_ratio(disk.fact)}
    fullest = max(shares, key=lambda name: shares[name] or 0.0)
    share = shares[fullest] or 0.0
    if share < limits.warning - slack:
        return None
    severity = Severity.CRITICAL if share >= limits.critical else Severity.WARNING
    what = "inodes" if (shares["bytes"] or 0.0) < limits.warning - slack else "bytes"
    return _finding(context, disk, what, severity, since)


def inode_ratio(fact: DiskFact) -> float | None:
    """Used share of the inodes; None if the filesystem does not count them."""
    return fact.inodes_used / fact.inodes if fact.inodes and fact.inodes_used is not None else None


def _finding(context: RuleContext, disk: ClusterDisk, what: str, severity: Severity, since: float) -> Finding:
    held = disk_contents(disk, context.facts)
    cause = held.cause if what == "bytes" else "datasets" if "datasets" in held.parts else "other"
    fact = disk.fact
    values: dict[str, Value] = {
        "place": disk.location,
        "mount": disk.labels["mount"],
        "share": (inode_ratio(fact) if what == "inodes" else used_ratio(fact)) or 0.0,
        "bytes": held.parts.get(cause, 0),
        "available": fact.available_bytes or 0,
    }
    return Finding(
        rule="disk-full",
        severity=severity,
        cause=cause,
        labels=disk.labels,
        headline=Text(key=f"disk-full.{cause if what == 'bytes' else what}", values=values),
        evidence=_evidence(disk, held),
        advice=(Text(key=f"disk-full.{cause if what == 'bytes' else what}.advice", values=_where(disk)),),
        since=since,
        explains=_explains(disk, cause, severity, context),
    )


def _where(disk: ClusterDisk) -> dict[str, Value]:
    return {"node": disk.report.node, "mount": disk.fact.mount, "device": disk.fact.device}


def _evidence(disk: ClusterDisk, held: DiskContents) -> tuple[Text, ...]:
    fact = disk.fact
    notes = []
    if fact.used_bytes is not None and fact.size_bytes is not None:
        values: dict[str, Value] = {"used": fact.used_bytes, "size": fact.size_bytes}
        notes.append(Text(key="disk-space", values=values | {"available": fact.available_bytes or 0}))
    if fact.inodes and fact.inodes_used is not None:
        notes.append(Text(key="disk-inodes", values={"used": fact.inodes_used, "inodes": fact.inodes}))
    if len(disk.nodes) > 1:
        notes.append(Text(key="disk-nodes", values={"count": len(disk.nodes), "node": disk.nodes[0]}))
    return (*notes, *held.evidence)


def _explains(disk: ClusterDisk, cause: str, severity: Severity, context: RuleContext) -> tuple[Scope, ...]:
    """Scopes of the symptoms of a full disk: only what names the disk or a lack of space, not all of its node."""
    scopes = []
    if cause == "images":
        scopes.append(Scope(labels=disk.labels, rules=("image-cache-large",)))
    if severity is Severity.CRITICAL:
        scopes.append(Scope(labels=disk.labels, rules=("disk-filling",)))
    if not NEEDED_BY_NODE & set(disk.fact.roles):
        return tuple(scopes)
    node = context.facts.node_by_name.get(disk.report.node)
    if node is not None and node.ready and any(c.type == "DiskPressure" and c.status for c in node.conditions):
        scopes.append(Scope(labels={"node": label_value(node.name)}, rules=("node-down",)))
    for pod in _pods_without_space(context).get(disk.report.node, ())[:_MAX_EXPLAINED_PODS]:
        scopes.append(
            Scope(labels={"namespace": label_value(pod.namespace), "pod": label_value(pod.name)}, rules=START_RULES)
        )
        scopes += [
            Scope(labels={"node": label_value(disk.report.node), "image": label_value(image)}, rules=("image-pull",))
            for image in {container.image for container in pod.containers if container.image}
        ]
    return tuple(scopes)


@cached_per_evaluation
def _pods_without_space(context: RuleContext) -> dict[str, list[PodFact]]:
    """Pods of each node that cannot start because a disk is full. A node may have many pods and many full disks."""
    pods = {
        node: [pod for pod in bound if pod.phase == "Pending" and _no_space(pod, context.facts)]
        for node, bound in context.facts.bound.items()
    }
    return {node: hit for node, hit in pods.items() if hit}


def _no_space(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether a pod cannot start because the disk is full, according to its latest messages."""
    messages = [(status.reason, status.message) for status in pod.statuses if status.message]
    messages += [(None, event.message) for event in facts.events_of(pod)[-5:] if event.message]
    return any(classify(reason, message).cause is PullFailureCause.DISK_FULL for reason, message in messages)


RULE = Rule("disk-full", Limits, CAUSES, detect, latency={ANY_CAUSE: Latency(collector="disk")})
