"""mass-deletion: a large part of the data on a mount disappeared within minutes.

Deletions by cleanup do not count. A deliberate deletion looks like a loss: silence the alert while a large one runs.
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
    SubjectKind,
    whole_cluster,
)
from monitor.detect.lib.storage import MAX_REMEMBERED_NODES, disk_containing, known_disks, memory_sections, node_reports
from monitor.detect.subjects import ClusterDisk
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
GIB = 1024**3
_STEP_SECONDS = 60.0  # between two remembered points
_MAX_GAP_SECONDS = 3600.0  # a longer gap in the reports cannot be judged
_REPORT_DELAY_SECONDS = 300.0  # a disk may still be reported as before its deletion
_OTHER_DISK_RATIO = 0.2  # a filesystem whose size changes more is another one


@dataclass(frozen=True)
class Limits:
    """How much has to disappear, absolutely and relatively, within which time; how long it is reported."""

    share: Ratio = 0.20
    size: Bytes = 50 * GIB
    within: Seconds = 600.0
    keep_for: Seconds = 6 * 3600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Data mounts that lost data. The memory holds the last minutes of each disk, and the losses."""
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
        points = _same_disk(before.get(disk.key), disk)
        deletions = [deletion for deletion in context.own_deletions if _is_on(deletion, disk)]
        drop = _drop(_without_cleanup(points, deletions), disk, limits, context.now, lost.get(disk.key))
        seen[disk.key] = _remember(points, disk, limits, context.now)
        if drop is not None:
            drops[disk.key] = drop
            findings.append(_finding(disk, drop))
    unseen = {key: points for key, points in before.items() if key not in seen and _fresh(points, context.now)}
    held = {key: drop for key, drop in lost.items() if key not in seen and reports.any_hidden(drop["nodes"], "disk")}
    blind = (
        *reports.blind_scopes("disk"),
        *known.blind,
        *(Scope(labels=dict(drop["labels"])) for drop in held.values()),
    )
    return RuleResult(findings=tuple(findings), memory={"seen": seen | unseen, "lost": drops | held}, blind=blind)


def _fresh(entry: Any, now: float) -> bool:
    return bool(entry["points"]) and now - entry["points"][-1][0] <= _MAX_GAP_SECONDS


def _same_disk(entry: Any, disk: ClusterDisk) -> list[list[float]]:
    """Remembered points of a disk; none if another filesystem has replaced it."""
    size = disk.fact.size_bytes
    if not entry or size is None or abs(size - entry["size"]) > _OTHER_DISK_RATIO * entry["size"]:
        return []
    return [list(point) for point in entry["points"]]


def _is_on(deletion: CleanupDeletion, disk: ClusterDisk) -> bool:
    """Whether data was deleted from this disk; for a NAS, by any of its nodes."""
    if deletion.node not in disk.nodes:
        return False
    if deletion.path is None:
        return "runtime" in disk.fact.roles
    if disk.report.node != deletion.node:
        return disk.shared  # its mount point on that node is unknown; matching too many disks is the safer error
    holding = disk_containing(deletion.path, disk.report.section("disk") or ())
    return holding is not None and holding.mount == disk.fact.mount


def _without_cleanup(points: list[list[float]], deletions: list[CleanupDeletion]) -> list[list[float]]:
    """The points, less what cleanup deleted after each: what is still missing is lost."""
    return [[at, used - sum(deletion.bytes for deletion in deletions if _after(deletion, at))] for at, used in points]


def _after(deletion: CleanupDeletion, at: float) -> bool:
    return deletion.ended_at is None or deletion.ended_at + _REPORT_DELAY_SECONDS > at


def _remember(points: list[list[float]], disk: ClusterDisk, limits: Limits, now: float) -> dict[str, Any]:
    """Points to keep: those never exceeded since. A growing disk has one."""
    used = disk.fact.used_bytes or 0
    # After the clock was set back, no point may be in the future.
    peaks = [[min(at, now), most] for at, most in points if at >= now - limits.within and most > used]
    if len(peaks) > 1 and peaks[-1][0] - peaks[-2][0] < _STEP_SECONDS:
        peaks.pop()  # one point per minute is enough; the earlier, higher one stays
    return {"size": disk.fact.size_bytes or 0, "points": [*peaks, [now, used]]}


def _drop(
    points: list[list[float]], disk: ClusterDisk, limits: Limits, now: float, known: Any
) -> dict[str, Any] | None:
    """The loss: within the window, since the disk was last seen, or an earlier one that persists."""
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


RULE = Rule(
    "mass-deletion",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency(collector="disk")},
)
