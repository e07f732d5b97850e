"""disk-filling: at the pace of the last hours a disk will be full soon; with what fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib.disk_contents import CAUSES, disk_contents
from monitor.detect.lib.growth import GrowthTrend, append_point, fast_trend, may_fill, slow_trend
from monitor.detect.lib.storage import MAX_REMEMBERED_NODES, ClusterDisk, known_disks, memory_sections, node_reports
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

_HOUR_SECONDS = 3600.0
_KEEP_UNSEEN_SECONDS = 2 * _HOUR_SECONDS


@dataclass(frozen=True)
class Limits:
    """How long before it is full. What was seen for an hour only counts when there is not more time than `critical`."""

    warning: Seconds = 24 * _HOUR_SECONDS
    critical: Seconds = 4 * _HOUR_SECONDS


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the disks that fill up. Remember how full each was over the last hours."""
    before, found = memory_sections(memory, "used", "found")
    reports = node_reports(context)
    seen = known_disks(context)
    used: dict[str, Any] = {}
    findings, now_found = [], {}
    for disk in seen.disks:
        points = append_point(before.get(disk.key, []), context.now, disk.fact.used_bytes or 0)
        used[disk.key] = points
        finding = _evaluate(context, disk, points, found.get(disk.key))
        if finding is not None:
            findings.append(finding)
            nodes = list(disk.nodes[:MAX_REMEMBERED_NODES])
            now_found[disk.key] = {"since": finding.since, "labels": finding.labels, "nodes": nodes}
    lost = {key: kept for key, kept in found.items() if key not in used and reports.any_hidden(kept["nodes"], "disk")}
    blind = (
        *reports.blind_scopes("disk"),
        *seen.blind,
        *(Scope(labels=dict(kept["labels"])) for kept in lost.values()),
    )
    remembered = {"used": used | _unseen(before, used, context.now), "found": lost | now_found}
    return RuleResult(findings=tuple(findings), memory=remembered, blind=blind)


def _unseen(before: dict[str, Any], used: dict[str, Any], now: float) -> dict[str, Any]:
    """Return the histories to keep of disks that are not seen now: they, or their nodes, may speak again."""
    return {
        key: points
        for key, points in before.items()
        if key not in used and len(points) >= 2 and now - points[-2] < _KEEP_UNSEEN_SECONDS
    }


def _evaluate(context: RuleContext, disk: ClusterDisk, points: list[int], before: Any) -> Finding | None:
    """Return that a disk will be full soon, or None. One that is full already is another rule's."""
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
    return _finding(context, disk, trend, seconds, severity, before["since"] if before else context.now)


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


RULE = Rule("disk-filling", Limits, CAUSES, detect, suppressed_by=("disk-full",))
