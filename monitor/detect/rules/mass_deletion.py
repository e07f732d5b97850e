"""mass-deletion: a large part of the data on a mount disappeared within minutes.

Deletions by cleanup do not count. A deliberate deletion looks like a loss: silence the alert while a large one runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Struct, structs, to_builtins

from monitor.detect.base import (
    NOTHING,
    Bytes,
    CleanupDeletion,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
)
from monitor.detect.findings import make_finding
from monitor.detect.lib.memory import recalled
from monitor.detect.lib.storage import disk_values, is_below
from monitor.detect.subjects import ClusterDisk
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

NAME = "mass-deletion"
GIB = 1024**3
_STEP_SECONDS = 60.0  # between two remembered points
_SAMPLE_SECONDS = 300.0  # after which an unchanged disk is seen again
_MAX_GAP_SECONDS = 3600.0  # a longer gap in the reports cannot be judged
_REPORT_DELAY_SECONDS = 300.0  # a disk may still be reported as before its deletion
_OTHER_DISK_RATIO = 0.2  # a filesystem whose size changes more is another one

_Points = list[tuple[float, int]]  # times and used bytes, oldest first


@dataclass(frozen=True)
class Limits:
    """How much has to disappear, absolutely and relatively, within which time; how long it is reported."""

    share: Ratio = 0.20
    size: Bytes = 50 * GIB
    within: Seconds = 600.0
    keep_for: Seconds = 6 * 3600.0


class _Loss(Struct, frozen=True):
    """When data disappeared, within how many seconds, and how much there was before."""

    at: float
    window: float
    before: int


class _LossHistory(Struct, frozen=True, omit_defaults=True):
    """Size of a disk, its usage over the last minutes, and the loss that is reported."""

    size: int
    points: _Points
    loss: _Loss | None = None


def evaluate(disk: ClusterDisk, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A data mount that lost data."""
    if not {"data", "nas"} & set(disk.fact.roles):
        return NOTHING
    limits: Limits = context.limits.of(disk.labels)
    history, used = recalled(memory, _LossHistory), disk.fact.used_bytes or 0
    points = _same_disk(history, disk)
    deletions = [deletion for deletion in context.own_deletions if _is_on(deletion, disk)]
    loss = _loss(_without_cleanup(points, deletions), used, limits, now, history.loss if history else None)
    points = _with_sample(points, used, limits, now)
    findings = () if loss is None else (_finding(disk, loss, used),)
    due = [points[-1][0] + _SAMPLE_SECONDS, *(() if loss is None else (loss.at + limits.keep_for,))]
    return RuleResult(findings, to_builtins(_LossHistory(disk.fact.size_bytes or 0, points, loss)), next_at=min(due))


def _same_disk(history: _LossHistory | None, disk: ClusterDisk) -> _Points:
    """Remembered points of a disk; none if another filesystem has replaced it."""
    size = disk.fact.size_bytes
    if history is None or size is None or abs(size - history.size) > _OTHER_DISK_RATIO * history.size:
        return []
    return history.points


def _is_on(deletion: CleanupDeletion, disk: ClusterDisk) -> bool:
    """Whether data was deleted from this disk; for a NAS, by any of its nodes."""
    if deletion.node not in disk.nodes:
        return False
    if deletion.path is None:
        return "runtime" in disk.fact.roles
    if disk.report.node != deletion.node:
        return disk.shared  # its mount point on that node is unknown; matching too many disks is the safer error
    return is_below(deletion.path, disk.fact, disk.report.snapshot.disk or ())


def _without_cleanup(points: _Points, deletions: list[CleanupDeletion]) -> _Points:
    """The points, less what cleanup deleted after each: what is still missing is lost."""
    ends = [(float("inf") if each.ended_at is None else each.ended_at, each.bytes) for each in deletions]
    return [(at, used - sum(size for end, size in ends if end + _REPORT_DELAY_SECONDS > at)) for at, used in points]


def _with_sample(points: _Points, used: int, limits: Limits, now: float) -> _Points:
    """Points to keep: those never exceeded since. A growing disk has one, an unchanged one is sampled now and then."""
    if points and points[-1][1] == used and points[-1][0] <= now < points[-1][0] + _SAMPLE_SECONDS:
        return points
    # After the clock was set back, no point may be in the future.
    peaks = [(min(at, now), most) for at, most in points if at >= now - limits.within and most > used]
    if len(peaks) > 1 and peaks[-1][0] - peaks[-2][0] < _STEP_SECONDS:
        peaks.pop()  # one point per minute is enough; the earlier, higher one stays
    return [*peaks, (now, used)]


def _loss(points: _Points, used: int, limits: Limits, now: float, known: _Loss | None) -> _Loss | None:
    """The loss: within the window, since the disk was last seen, or an earlier one that persists."""
    inside = [point for point in points if point[0] >= now - limits.within]
    inside = inside or [point for point in points[-1:] if now - point[0] <= _MAX_GAP_SECONDS]
    at, most = max(inside, key=lambda point: point[1], default=(now, 0))
    if known is not None and now < known.at + limits.keep_for and _exceeds(known.before, used, limits):
        return structs.replace(known, at=min(known.at, now), before=max(known.before, most))
    return _Loss(now, now - at, most) if _exceeds(most, used, limits) else None


def _exceeds(before: float, used: float, limits: Limits) -> bool:
    return before - used > limits.size and before - used > limits.share * before


def _finding(disk: ClusterDisk, loss: _Loss, used: int) -> Finding:
    gone = loss.before - used
    values = disk_values(disk, bytes=gone, share=gone / loss.before, window=loss.window)
    return make_finding(
        NAME, NAME, disk.labels, values, severity=Severity.CRITICAL, since=loss.at - loss.window,
        evidence=(Text(f"{NAME}.now", {"before": loss.before, "now": used}),),
        advice_values={"node": disk.report.node, "mount": disk.fact.mount},
    )  # fmt: skip


RULE = Rule(NAME, Limits, (), evaluate, SubjectKind.MOUNT, needs=("disk",), latency=Latency(collector="disk"))
