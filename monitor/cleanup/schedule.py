"""Runs that are due because a disk is too full, and whether a policy may act yet.

Cron runs are the scheduler's. Crossing the high-water mark starts one run. The next starts only after the disk was
below its low-water mark, as reported by the node or measured by the run, or after half an hour: a run that freed
nothing would free nothing a second later either. A run that was hindered (the agent refused, facts were missing) is
retried sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from monitor.base.globs import matches_any_glob
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import Item, Mode
from monitor.cleanup.plan.images import runtime_disk
from monitor.cleanup.plan.watermarks import effective_marks, is_stale
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, ImagePolicy, When
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact

REPEAT_AFTER_SECONDS = 1800.0
FIRST_RETRY_SECONDS = 60.0  # after a hindered run; doubles with each further one
HINDERED_ENDS = ("refused", "errors", "unmeasured")
LOW_WATER = "low-water"
# An item that was refused for what may have passed by the next run is skipped for minutes, any other for hours.
SKIP_REFUSED_SECONDS = 6 * 3600.0
SKIP_PASSING_SECONDS = 600.0
PASSING_REFUSALS = frozenset({"in-use", "needed", "starting", "unknown", "too-young", "changed", "gone"})
MEASURE_DELAY_SECONDS = 60.0  # a node may still report its disk as it was before a run that has just ended


@dataclass(frozen=True)
class DueRun:
    """A run that a full disk requires."""

    policy: str
    node: str
    share: float


@dataclass(frozen=True)
class DueRuns:
    """Runs that are due, and the state to store: when a run was last due, by policy and node."""

    due: tuple[DueRun, ...] = ()
    fired: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class PreviousRuns:
    """Outcome of the previous runs of a policy on a node.

    `reached_low`: the last run reached the low-water mark, long enough ago for the node to have measured its disk
    again. `hindered`: how many of the latest runs, in a row, were hindered.
    """

    reached_low: bool = False
    hindered: int = 0


NO_PREVIOUS_RUNS = PreviousRuns()


class Permission(StrEnum):
    """What a policy may do now."""

    DRY_RUN = "dry-run"  # its mode
    ANNOUNCE = "announce"  # not announced yet
    WAIT = "wait"  # announced, and the announcement period is not over
    ACT = "act"


def due_runs(
    policies: Iterable[CleanupPolicy],
    fired: Mapping[tuple[str, str], float],
    snapshots: Mapping[str, NodeSnapshot],
    now: float,
    previous: Mapping[tuple[str, str], PreviousRuns] | None = None,
) -> DueRuns:
    """Runs that are due now. `fired` are the times at which runs were last due; an unknown disk changes nothing."""
    due: list[DueRun] = []
    fired = dict(fired)
    for policy in policies:
        for node, disk, when in _disks(policy, snapshots, now):
            share, key = used_ratio(disk), (policy.name, node)
            if share is None or when.high is None:
                continue
            low = when.low if when.low is not None else when.high
            runs = (previous or {}).get(key, NO_PREVIOUS_RUNS)
            if share < low or runs.reached_low:
                fired.pop(key, None)
            last = fired.get(key)
            # A time in the future was stored while the clock was wrong.
            rested = last is None or last > now or now - last >= pause_seconds(runs.hindered)
            if share >= when.high and rested:
                due.append(DueRun(policy.name, node, share))
                fired[key] = now
    return DueRuns(tuple(sorted(due, key=lambda run: (-run.share, run.policy, run.node))), fired)


def pause_seconds(hindered: int) -> float:
    """Pause before the next run, after this many hindered runs in a row."""
    return min(REPEAT_AFTER_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** (hindered - 1)) if hindered else REPEAT_AFTER_SECONDS


def previous_runs(
    runs: Iterable[tuple[CleanupRun, Iterable[JournalEntry]]], fired_at: float, now: float
) -> PreviousRuns:
    """Outcome of the latest runs, given with their items and newest first; a run was last due at `fired_at`."""
    latest = list(runs)
    reached = [run for run, _ in latest[:1] if run.end == LOW_WATER and run.started_at >= fired_at]
    return PreviousRuns(
        reached_low=any(now - (run.ended_at or now) >= MEASURE_DELAY_SECONDS for run in reached),
        hindered=len(list(takewhile(lambda pair: was_hindered(*pair), latest))),
    )


def was_hindered(run: CleanupRun, entries: Iterable[JournalEntry]) -> bool:
    """Whether a run freed nothing for a reason that may pass, rather than because there was nothing to do."""
    if run.freed_bytes or run.end is None:
        return False
    return run.end in HINDERED_ENDS or any(entry.state in (ItemState.FAILED, ItemState.LATER) for entry in entries)


def refused_lately(refused: Iterable[JournalEntry], now: float) -> frozenset[str]:
    """Ids of the items to skip, of those refused within `SKIP_REFUSED_SECONDS`."""
    return frozenset(
        entry.item.id
        for entry in refused
        if entry.outcome not in PASSING_REFUSALS or now - (entry.ended_at or now) < SKIP_PASSING_SECONDS
    )


def _disks(
    policy: CleanupPolicy, snapshots: Mapping[str, NodeSnapshot], now: float
) -> Iterable[tuple[str, DiskFact, When]]:
    """Nodes of a policy, with the disk that counts there and its marks."""
    for node, snapshot in sorted(snapshots.items()):
        disk = None
        if is_stale(snapshot, now):
            continue
        if isinstance(policy, ImagePolicy) and matches_any_glob(node, policy.nodes):
            disk = runtime_disk(snapshot)
        elif isinstance(policy, DatasetPolicy) and node == policy.node:
            disk = disk_containing(policy.root, snapshot.disk or ())
        if disk is not None:
            yield node, disk, effective_marks(policy.when, snapshot, disk)


def permission(policy: CleanupPolicy, announced_at: float | None, now: float) -> Permission:
    """What a policy may do; `announced_at` is when it was announced with its current fingerprint.

    Announcements are never forgotten, so a policy that has acted before needs no new one.
    """
    if policy.mode is not Mode.ENFORCE:
        return Permission.DRY_RUN
    if policy.announce <= 0:
        return Permission.ACT
    if announced_at is None:
        return Permission.ANNOUNCE
    return Permission.ACT if now - announced_at >= policy.announce else Permission.WAIT


def is_ready(item: Item, now: float) -> bool:
    """Whether the owner of an item was notified and the notice period is over."""
    return item.not_before is not None and item.not_before <= now
