"""Which runs are due because a disk is too full, and whether a policy may already act. Pure.

Runs by crontab are the scheduler's. A mark that is crossed starts one run; the next only after the disk was below the
low-water mark in between, as seen from outside or measured by the run, or after half an hour: a run that freed nothing
frees nothing the next second either. One that was kept from its work (an agent that refused, facts that were missing)
is tried again sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import takewhile

from monitor.cleanup.journal import Entry, ItemState, Run
from monitor.cleanup.model import Item, Mode
from monitor.cleanup.plan.images import runtime_disk
from monitor.cleanup.plan.watermarks import marks_on, out_of_step
from monitor.cleanup.policy import DatasetPolicy, ImagePolicy, Policy, When
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact

AGAIN_AFTER = 1800.0
FIRST_PAUSE = 60.0  # after a run that was kept from its work; each further one doubles it
HINDERED = ("refused", "errors", "unmeasured")
LOW_WATER = "low-water"
MEASURED_AFTER = 60.0  # seconds: what a node says of a disk may be from before a run that has just ended


@dataclass(frozen=True)
class Due:
    """A run that a full disk asks for."""

    policy: str
    node: str
    share: float


@dataclass(frozen=True)
class Crossings:
    """What is due, and what to remember: when a run was last due, by policy and node."""

    due: tuple[Due, ...] = ()
    fired: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Past:
    """What became of the run that was last due.

    `reached`: it brought the disk below its low-water mark, and that is so long ago that nodes have measured again.
    `in_vain`: how many of the latest runs, in a row, were kept from their work.
    """

    reached: bool = False
    in_vain: int = 0


NOTHING_PAST = Past()


class Permission(StrEnum):
    """What a policy may do now."""

    DRY_RUN = "dry-run"  # its mode says so
    ANNOUNCE = "announce"  # nobody has been told yet that it will act, nor what it would do
    WAIT = "wait"  # they were told, and have their time
    ACT = "act"


def due(
    policies: Iterable[Policy],
    fired: Mapping[tuple[str, str], float],
    snapshots: Mapping[str, NodeSnapshot],
    now: float,
    pasts: Mapping[tuple[str, str], Past] | None = None,
) -> Crossings:
    """Given policies, when runs were last due, what nodes say, and what became of those runs, return what is due now.

    A disk of which nothing is known changes nothing.
    """
    found: list[Due] = []
    kept = dict(fired)
    for policy in policies:
        for node, disk, when in _disks(policy, snapshots, now):
            share, key = used_ratio(disk), (policy.name, node)
            if share is None or when.high is None:
                continue
            low = when.low if when.low is not None else when.high
            past = (pasts or {}).get(key, NOTHING_PAST)
            if share < low or past.reached:
                kept.pop(key, None)
            last = kept.get(key)
            # What was noted for a time that is yet to come was noted by a clock that was wrong.
            rested = last is None or last > now or now - last >= pause(past.in_vain)
            if share >= when.high and rested:
                found.append(Due(policy.name, node, share))
                kept[key] = now
    return Crossings(tuple(sorted(found, key=lambda each: (-each.share, each.policy, each.node))), kept)


def pause(in_vain: int) -> float:
    """Given how many runs in a row were kept from their work, return how long after the last the next is due."""
    return min(AGAIN_AFTER, FIRST_PAUSE * 2.0 ** (in_vain - 1)) if in_vain else AGAIN_AFTER


def past_of(runs: Iterable[tuple[Run, Iterable[Entry]]], fired_at: float, now: float) -> Past:
    """Given the latest runs with their items, the last one first, return what became of the one that was due then."""
    known = list(runs)
    reached = [run for run, _ in known[:1] if run.end == LOW_WATER and run.started_at >= fired_at]
    return Past(
        reached=any(now - (run.ended_at or now) >= MEASURED_AFTER for run in reached),
        in_vain=len(list(takewhile(lambda each: was_in_vain(*each), known))),
    )


def was_in_vain(run: Run, entries: Iterable[Entry]) -> bool:
    """Return whether a run freed nothing for a reason that may be gone soon: not because there was nothing to do."""
    if run.freed_bytes or run.end is None:
        return False
    return run.end in HINDERED or any(entry.state in (ItemState.FAILED, ItemState.LATER) for entry in entries)


def _disks(policy: Policy, snapshots: Mapping[str, NodeSnapshot], now: float) -> Iterable[tuple[str, DiskFact, When]]:
    """Yield each node that a policy is about, with the disk that counts there, and its marks."""
    for node, snapshot in sorted(snapshots.items()):
        disk = None
        if out_of_step(snapshot, now):
            continue
        if isinstance(policy, ImagePolicy) and any(fnmatchcase(node, pattern) for pattern in policy.nodes):
            disk = runtime_disk(snapshot)
        elif isinstance(policy, DatasetPolicy) and node == policy.node:
            disk = disk_containing(policy.root, snapshot.disk or ())
        if disk is not None:
            yield node, disk, marks_on(policy.when, snapshot, disk)


def permission(policy: Policy, announced_at: float | None, now: float) -> Permission:
    """Given when a policy, as it is now (by its fingerprint), was announced, return what it may do.

    One that has acted before was announced before: what is remembered of it is not forgotten.
    """
    if policy.mode is not Mode.ENFORCE:
        return Permission.DRY_RUN
    if policy.announce <= 0:
        return Permission.ACT
    if announced_at is None:
        return Permission.ANNOUNCE
    return Permission.ACT if now - announced_at >= policy.announce else Permission.WAIT


def ready(item: Item, now: float) -> bool:
    """Return whether an item may be done now: whoever has to be told of it was told long enough ago."""
    return item.not_before is not None and item.not_before <= now
