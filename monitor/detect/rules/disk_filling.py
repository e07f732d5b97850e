"""disk-filling: at its current growth a disk will be full soon; with what fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Struct, to_builtins

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.disk_contents import CAUSES, disk_contents
from monitor.detect.lib.growth import FINE_STEP_SECONDS, GrowthTrend, append_point, fast_trend, may_fill, slow_trend
from monitor.detect.lib.memory import recalled
from monitor.detect.lib.storage import disk_values, space_evidence
from monitor.detect.subjects import ClusterDisk
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True)
class Limits:
    """Time until the disk is full. A trend of only one hour counts below `critical`."""

    warning: Seconds = 24 * _HOUR_SECONDS
    critical: Seconds = 4 * _HOUR_SECONDS


class _UsageHistory(Struct, frozen=True, omit_defaults=True):
    """Usage of a disk over the last hours, and since when it has been filling up."""

    used: list[int] = []
    since: float | None = None


def evaluate(disk: ClusterDisk, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A disk that fills up. Its usage is sampled at intervals, whether or not it changes."""
    before = recalled(memory, _UsageHistory) or _UsageHistory()
    points = append_point(before.used, now, disk.fact.used_bytes or 0)
    limits: Limits = context.limits.of(disk.labels)
    trend, next_at = _trend(disk, points, limits), points[-2] + FINE_STEP_SECONDS
    if trend is None:
        return RuleResult(memory=to_builtins(_UsageHistory(points)), next_at=next_at)
    since = min(before.since or now, now)
    finding = _finding(context.facts, disk, trend, limits, since)
    return RuleResult((finding,), to_builtins(_UsageHistory(points, since)), next_at=next_at)


def _trend(disk: ClusterDisk, points: list[int], limits: Limits) -> GrowthTrend | None:
    """The trend by which a disk will be full soon. A full disk is reported by disk-full."""
    available, size = disk.fact.available_bytes, disk.fact.size_bytes
    if not available or size is None or not may_fill(points, available, limits.warning):
        return None
    fast, slow = fast_trend(points, size), slow_trend(points, size)
    if fast is not None and available / fast.rate < limits.critical:
        return fast
    return slow if slow is not None and available / slow.rate < limits.warning else None


def _finding(facts: ClusterFacts, disk: ClusterDisk, trend: GrowthTrend, limits: Limits, since: float) -> Finding:
    held, fact = disk_contents(disk, facts), disk.fact
    left = (fact.available_bytes or 0) / trend.rate
    history = Text("disk-filling.history", {"window": trend.window, "bytes": trend.grown_bytes})
    return make_finding(
        "disk-filling", held.cause, disk.labels, disk_values(disk, left=left, rate=trend.rate * _HOUR_SECONDS),
        severity=Severity.CRITICAL if left < limits.critical else Severity.WARNING,
        evidence=(history, space_evidence(fact), *held.evidence), since=since,
        advice_key="disk-filling.advice", advice_values={"node": disk.report.node, "mount": fact.mount},
    )  # fmt: skip


RULE = Rule(
    "disk-filling", Limits, CAUSES, evaluate, SubjectKind.MOUNT,
    needs=("disk",), uses=("images", "runtime_usage", "containers", "logs", "pods"), suppressed_by=("disk-full",),
)  # fmt: skip
