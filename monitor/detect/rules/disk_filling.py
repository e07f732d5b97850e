"""disk-filling: at its current growth a disk will be full soon; with what fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib.disk_contents import CAUSES, disk_contents
from monitor.detect.lib.growth import GrowthTrend, append_point, fast_trend, may_fill, slow_trend
from monitor.detect.lib.storage import MAX_REMEMBERED_NODES, known_disks, memory_sections, node_reports
from monitor.detect.subjects import ClusterDisk
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

_HOUR_SECONDS = 3600.0
_KEEP_UNSEEN_SECONDS = 2 * _HOUR_SECONDS


@dataclass(frozen=True)
class Limits:
    """Time until the disk is full. A trend of only one hour counts below `critical`."""

    warning: Seconds = 24 * _HOUR_SECONDS
    critical: Seconds = 4 * _HOUR_SECONDS


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Disks that fill up. The memory holds the usage of each over the last hours."""
    before, previous = memory_sections(memory, "used", "found")
    reports = node_reports(context)
    seen = known_disks(context)
    used: dict[str, Any] = {}
    findings, current = [], {}
    for disk in seen.disks:
        points = append_point(before.get(disk.key, []), context.now, disk.fact.used_bytes or 0)
        used[disk.key] = points
        finding = _evaluate(context, disk, points, previous.get(disk.key))
        if finding is not None:
            findings.append(finding)
            nodes = list(disk.nodes[:MAX_REMEMBERED_NODES])
            current[disk.key] = {"since": finding.since, "labels": finding.labels, "nodes": nodes}
    hidden = {
        key: entry for key, entry in previous.items() if key not in used and reports.any_hidden(entry["nodes"], "disk")
    }
    blind = (
        *reports.blind_scopes("disk"),
        *seen.blind,
        *(Scope(labels=dict(entry["labels"])) for entry in hidden.values()),
    )
    remembered = {"used": used | _unseen(before, used, context.now), "found": hidden | current}
    return RuleResult(findings=tuple(findings), memory=remembered, blind=blind)


def _unseen(before: dict[str, Any], used: dict[str, Any], now: float) -> dict[str, Any]:
    """Histories of disks that are not visible now but may return."""
    return {
        key: points
        for key, points in before.items()
        if key not in used and len(points) >= 2 and now - points[-2] < _KEEP_UNSEEN_SECONDS
    }


def _evaluate(context: RuleContext, disk: ClusterDisk, points: list[int], previous: Any) -> Finding | None:
    """The finding if a disk will be full soon, or None. A full disk is reported by disk-full."""
    fact, limits = disk.fact, context.limits.of(disk.labels)
    available, size = fact.available_bytes, fact.size_bytes
    if not available or size is None or not may_fill(points, available, limits.warning):
        return None
    fast, slow = fast_trend(points, size), slow_trend(points, size)
    if fast is not None and available / fast.rate < limits.critical:
        trend = fast
    elif slow is not None and available / slow.rate < limits.warning:
        trend = slow
    else:
        return None
    seconds = available / trend.rate
    severity = Severity.CRITICAL if seconds < limits.critical else Severity.WARNING
    return _finding(context, disk, trend, seconds, severity, previous["since"] if previous else context.now)


def _finding(
    context: RuleContext, disk: ClusterDisk, trend: GrowthTrend, seconds: float, severity: Severity, since: float
) -> Finding:
    held = disk_contents(disk, context.facts)
    values: dict[str, Value] = {"place": disk.location, "mount": disk.labels["mount"], "seconds": seconds}
    fact = disk.fact
    space: dict[str, Value] = {"used": fact.used_bytes or 0, "size": fact.size_bytes or 0}
    return Finding(
        rule="disk-filling",
        severity=severity,
        cause=held.cause,
        labels=disk.labels,
        headline=Text(key=f"disk-filling.{held.cause}", values=values | {"rate": trend.rate * _HOUR_SECONDS}),
        evidence=(
            Text(key="disk-filling.history", values={"window": trend.window, "bytes": trend.grown_bytes}),
            Text(key="disk-space", values=space | {"available": fact.available_bytes or 0}),
            *held.evidence,
        ),
        advice=(Text(key="disk-filling.advice", values={"node": disk.report.node, "mount": fact.mount}),),
        since=since,
    )


RULE = Rule("disk-filling", Limits, CAUSES, whole_cluster(detect), SubjectKind.CLUSTER, suppressed_by=("disk-full",))
