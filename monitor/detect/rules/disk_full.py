"""disk-full: a disk, or its inodes, are nearly used up, or the kernel has made it read-only; with what fills it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Share
from monitor.detect.lib.disk_contents import CAUSES, Contents, contents
from monitor.detect.lib.storage import NODES_REMEMBERED, Disk, Hearing, disks, hear, read_memory, used_share
from monitor.detect.visibility import label
from monitor.explain.image_pull import PullFailureCause, classify
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text, Value

NEEDED_BY_NODE = frozenset({"system", "runtime", "kubelet"})
STARTING = ("image-pull", "pod-start-failed", "pod-stuck-creating")
_BOOT = "/boot"  # holds what updates put there: often 80 % full, and nothing grows
_HYSTERESIS = 0.01  # one file more or less must not end and begin an alert
_MOST_EXPLAINED = 100  # pods


@dataclass(frozen=True)
class Limits:
    """From which share on a disk counts as full, as df counts; the same for inodes."""

    warning: Share = 0.80
    critical: Share = 0.90


def detect(situation: RuleContext, memory: Any) -> RuleResult:
    """Find the disks that are full. Remember which were, on which nodes, and which could be written to."""
    found, writable = read_memory(memory, "found", "writable")
    hearing = hear(situation)
    seen = disks(situation)
    findings, now_found = [], {}
    for disk in seen.known:
        if disk.fact.mount.startswith(_BOOT):
            continue
        finding = _judge(situation, disk, disk.key in writable, found.get(disk.key))
        if finding is not None:
            findings.append(finding)
            now_found[disk.key] = _remembered(disk, finding)
    known = {disk.key for disk in seen.known}
    lost = {key: kept for key, kept in found.items() if key not in known and _lost_sight(kept, hearing, seen.blind)}
    blind = (*hearing.blind("disk"), *seen.blind, *(Scope(labels=dict(kept["labels"])) for kept in lost.values()))
    remembered = {"found": lost | now_found, "writable": _writable(seen.known, writable, hearing)}
    return RuleResult(findings=tuple(findings), memory=remembered, blind=blind)


def _remembered(disk: Disk, finding: Finding) -> dict[str, Any]:
    return {"since": finding.since, "labels": finding.labels, "nodes": list(disk.nodes[:NODES_REMEMBERED])}


def _lost_sight(kept: Any, hearing: Hearing, blind: tuple[Scope, ...]) -> bool:
    """Return whether a disk that was full may still be so: nobody who had it can tell."""
    hidden = any(scope.labels == kept["labels"] for scope in blind)
    return hidden or hearing.lost_sight(kept["nodes"], "disk")


def _writable(known: Iterable[Disk], before: dict[str, Any], hearing: Hearing) -> dict[str, int]:
    """Return the disks that have been seen writable: only those can have been made read-only."""
    kept = {disk.key: 1 for disk in known if not disk.shared and (disk.fact.read_only is False or disk.key in before)}
    return kept | {key: 1 for key in before if hearing.lost_sight((key.partition(" ")[0],), "disk")}


def _judge(situation: RuleContext, disk: Disk, was_writable: bool, before: Any) -> Finding | None:
    """Return what is wrong with a disk: read-only is worse than full, and bytes are said before inodes."""
    limits: Limits = situation.limits.of(disk.labels)
    since = before["since"] if before else situation.now
    needed = bool({"runtime", "kubelet"} & set(disk.fact.roles))
    if disk.fact.read_only and not disk.shared and (was_writable or needed):
        return _finding(situation, disk, "read-only", Severity.CRITICAL, since)
    slack = _HYSTERESIS if before else 0.0
    shares = {"bytes": used_share(disk.fact), "inodes": inode_share(disk.fact)}
    fullest = max(shares, key=lambda name: shares[name] or 0.0)
    share = shares[fullest] or 0.0
    if share < limits.warning - slack:
        return None
    severity = Severity.CRITICAL if share >= limits.critical else Severity.WARNING
    what = "inodes" if (shares["bytes"] or 0.0) < limits.warning - slack else "bytes"
    return _finding(situation, disk, what, severity, since)


def inode_share(fact: DiskFact) -> float | None:
    """Given a disk, return what share of its inodes is used; None where it does not count them."""
    return fact.inodes_used / fact.inodes if fact.inodes and fact.inodes_used is not None else None


def _finding(situation: RuleContext, disk: Disk, what: str, severity: Severity, since: float) -> Finding:
    held = contents(disk, situation.world)
    cause = held.cause if what == "bytes" else "datasets" if "datasets" in held.parts else "other"
    fact = disk.fact
    values: dict[str, Value] = {
        "place": disk.place,
        "mount": disk.labels["mount"],
        "share": (inode_share(fact) if what == "inodes" else used_share(fact)) or 0.0,
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
        explains=_explains(disk, cause, severity, situation.world),
    )


def _where(disk: Disk) -> dict[str, Value]:
    return {"node": disk.heard.node, "mount": disk.fact.mount, "device": disk.fact.device}


def _evidence(disk: Disk, held: Contents) -> tuple[Text, ...]:
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


def _explains(disk: Disk, cause: str, severity: Severity, world: ClusterFacts) -> tuple[Scope, ...]:
    """Return what a full disk brings about: not all that goes wrong on its node, but what says so itself."""
    scopes = []
    if cause == "images":
        scopes.append(Scope(labels=disk.labels, rules=("image-cache-large",)))
    if severity is Severity.CRITICAL:
        scopes.append(Scope(labels=disk.labels, rules=("disk-filling",)))
    if not NEEDED_BY_NODE & set(disk.fact.roles):
        return tuple(scopes)
    node = world.node_by_name.get(disk.heard.node)
    if node is not None and node.ready and any(c.type == "DiskPressure" and c.status for c in node.conditions):
        scopes.append(Scope(labels={"node": label(node.name)}, rules=("node-down",)))
    hit = [pod for pod in world.bound.get(disk.heard.node, ()) if pod.phase == "Pending" and _no_space(pod, world)]
    for pod in hit[:_MOST_EXPLAINED]:
        scopes.append(Scope(labels={"namespace": label(pod.namespace), "pod": label(pod.name)}, rules=STARTING))
        scopes += [
            Scope(labels={"node": label(disk.heard.node), "image": label(image)}, rules=("image-pull",))
            for image in {container.image for container in pod.containers if container.image}
        ]
    return tuple(scopes)


def _no_space(pod: PodFact, world: ClusterFacts) -> bool:
    """Return whether a pod cannot start for want of space: the newest of what is said about it counts."""
    said = [(status.reason, status.message) for status in pod.statuses if status.message]
    said += [(None, event.message) for event in world.events_of(pod)[-5:] if event.message]
    return any(classify(reason, message).cause is PullFailureCause.DISK_FULL for reason, message in said)


RULE = Rule("disk-full", Limits, CAUSES, detect, latency={ANY_CAUSE: Latency(collector="disk")})
