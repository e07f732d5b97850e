"""mass-deletion: a large part of the data on a mount is gone within minutes.

What this product deletes by itself is told to the rule and does not count. A cleanup that somebody runs on purpose
looks like a loss from here: silence the alert for as long as a large one runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Bytes,
    CleanupDeletion,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
)
from monitor.detect.lib.storage import (
    MAX_REMEMBERED_NODES,
    ClusterDisk,
    disk_containing,
    known_disks,
    memory_sections,
    node_reports,
)
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
GIB = 1024**3
_STEP_SECONDS = 60.0  # seconds between two points that are remembered
_MAX_GAP_SECONDS = 3600.0  # a silence of this length, and no longer, may hide a deletion
_REPORT_DELAY_SECONDS = 300.0  # seconds after a deletion in which a disk may still be reported as it was before
_OTHER_DISK_RATIO = 0.2  # a filesystem whose size changes by this share is another one


@dataclass(frozen=True)
class Limits:
    """How much has to be gone, of what there was, within which time; and for how long that is said."""

    share: Ratio = 0.20
    size: Bytes = 50 * GIB
    within: Seconds = 600.0
    keep_for: Seconds = 6 * 3600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the data mounts that were emptied. Remember the last minutes of each, and what was lost."""
    before, lost = memory_sections(memory, "seen", "lost")
    reports = node_reports(context)
    known = known_disks(context)
    seen: dict[str, Any] = {}
    drops: dict[str, Any] = {}
    findings = []
    for disk in known.disks:
        if not {"data", "nas"} & set(disk.fact.roles):
            continue
        limits: Limits = context.limits.of(disk.labels)
        kept = _same_disk(before.get(disk.key), disk)
        own = [each for each in context.own_deletions if _is_on(each, disk)]
        drop = _drop(_without_cleanup(kept, own), disk, limits, context.now, lost.get(disk.key))
        seen[disk.key] = _remember(kept, disk, limits, context.now)
        if drop is not None:
            drops[disk.key] = drop
            findings.append(_finding(disk, drop))
    unseen = {key: kept for key, kept in before.items() if key not in seen and _fresh(kept, context.now)}
    held = {key: drop for key, drop in lost.items() if key not in seen and reports.any_hidden(drop["nodes"], "disk")}
    blind = (
        *reports.blind_scopes("disk"),
        *known.blind,
        *(Scope(labels=dict(drop["labels"])) for drop in held.values()),
    )
    return RuleResult(findings=tuple(findings), memory={"seen": seen | unseen, "lost": drops | held}, blind=blind)


def _fresh(kept: Any, now: float) -> bool:
    return bool(kept["points"]) and now - kept["points"][-1][0] <= _MAX_GAP_SECONDS


def _same_disk(kept: Any, disk: ClusterDisk) -> list[list[float]]:
    """Return what is remembered of a disk; nothing if another one has taken its place."""
    size = disk.fact.size_bytes
    if not kept or size is None or abs(size - kept["size"]) > _OTHER_DISK_RATIO * kept["size"]:
        return []
    return [list(point) for point in kept["points"]]


def _is_on(own: CleanupDeletion, disk: ClusterDisk) -> bool:
    """Return whether something was deleted from this disk. A NAS has it whichever of its nodes deleted."""
    if own.node not in disk.nodes:
        return False
    if own.path is None:
        return "runtime" in disk.fact.roles
    if disk.report.node != own.node:
        return disk.shared  # where that node has it mounted is not known here; one disk too many is the lesser mistake
    holding = disk_containing(own.path, disk.report.section("disk") or ())
    return holding is not None and holding.mount == disk.fact.mount


def _without_cleanup(points: list[list[float]], own: list[CleanupDeletion]) -> list[list[float]]:
    """Return the points less what this product has deleted after each: what is still missing then is lost."""
    return [[at, used - sum(each.bytes for each in own if _after(each, at))] for at, used in points]


def _after(own: CleanupDeletion, at: float) -> bool:
    return own.ended_at is None or own.ended_at + _REPORT_DELAY_SECONDS > at


def _remember(points: list[list[float]], disk: ClusterDisk, limits: Limits, now: float) -> dict[str, Any]:
    """Return the points to keep: those after which it was never so full again. A disk that grows has one."""
    used = disk.fact.used_bytes or 0
    # A clock that was set back leaves no point that is yet to come.
    kept = [[min(at, now), most] for at, most in points if at >= now - limits.within and most > used]
    if len(kept) > 1 and kept[-1][0] - kept[-2][0] < _STEP_SECONDS:
        kept.pop()  # one point a minute is enough: the one before it, which is higher, stays
    return {"size": disk.fact.size_bytes or 0, "points": [*kept, [now, used]]}


def _drop(
    points: list[list[float]], disk: ClusterDisk, limits: Limits, now: float, known: Any
) -> dict[str, Any] | None:
    """Return what is lost: within minutes, or since the disk was last seen, or what was lost before and still is."""
    used = disk.fact.used_bytes or 0
    inside = [point for point in points if point[0] >= now - limits.within]
    inside = inside or [point for point in points[-1:] if now - point[0] <= _MAX_GAP_SECONDS]
    at, most = max(inside, key=lambda point: point[1], default=[now, 0.0])
    if known and now - known["at"] < limits.keep_for and _exceeds(known["before"], used, limits):
        before = max(known["before"], most)
        return {**known, "at": min(known["at"], now), "now": used, "before": before, "labels": disk.labels}
    if not _exceeds(most, used, limits):
        return None
    nodes = list(disk.nodes[:MAX_REMEMBERED_NODES])
    return {"at": now, "before": most, "now": used, "seconds": now - at, "labels": disk.labels, "nodes": nodes}


def _exceeds(before: float, used: float, limits: Limits) -> bool:
    return before - used > limits.size and before - used > limits.share * before


def _finding(disk: ClusterDisk, drop: dict[str, Any]) -> Finding:
    gone = drop["before"] - drop["now"]
    values: dict[str, Value] = {"place": disk.location, "mount": disk.labels["mount"], "bytes": gone}
    return Finding(
        rule="mass-deletion",
        severity=Severity.CRITICAL,
        cause="mass-deletion",
        labels=disk.labels,
        headline=Text(
            key="mass-deletion", values={**values, "share": gone / drop["before"], "seconds": drop["seconds"]}
        ),
        evidence=(Text(key="mass-deletion.now", values={"before": drop["before"], "now": drop["now"]}),),
        advice=(Text(key="mass-deletion.advice", values={"node": disk.report.node, "mount": disk.fact.mount}),),
        since=drop["at"] - drop["seconds"],
    )


RULE = Rule("mass-deletion", Limits, CAUSES, detect, latency={ANY_CAUSE: Latency(collector="disk")})
