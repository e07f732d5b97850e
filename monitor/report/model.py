"""Report on a period: GPU hours by user, queue or node, disk space, cleanup and incidents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import add
from statistics import mean
from typing import Protocol

from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.base import Fact
from monitor.facts.prices import GpuPrices
from monitor.report.buckets import FIGURES, HOUR, Bucket, By, figures_of
from monitor.report.cost import HeldCost, UnpricedHours, unpriced_hours
from monitor.report.disk_use import DiskUse
from monitor.report.kept import KeptObject

OwnedBytes = Sequence[tuple[str | None, str | None, int]]  # node, user, bytes


class ReportRow(Fact, frozen=True, kw_only=True):
    """A user, queue or node; `name` is None for hours without a known owner. Hours are GPU hours.

    `wasted` hours are held but unused: `idle` (part of `allocated`) and `zombie` (not held by a live pod).
    `used_hours` and `utilization_ratio` (the mean) cover the allocated hours with known utilization; None if there are
    none. `disk_bytes` and `cleaned_bytes` are None if unknown, or not available by queue.

    With prices, `cost` is that of allocated and zombie hours, `wasted_cost` that of wasted ones; None if none of these
    hours has a price. They do not include `unpriced_hours` and `unpriced_wasted_hours`.
    """

    name: str | None
    allocated_hours: float = 0.0
    used_hours: float | None = 0.0
    idle_hours: float = 0.0
    zombie_hours: float = 0.0
    wasted_hours: float = 0.0
    faulty_hours: float = 0.0
    free_hours: float = 0.0
    unknown_hours: float = 0.0
    utilization_ratio: float | None = None
    disk_bytes: int | None = None
    cleaned_bytes: int | None = None
    cost: float | None = None
    wasted_cost: float | None = None
    unpriced_hours: float = 0.0
    unpriced_wasted_hours: float = 0.0

    @property
    def hours(self) -> float:
        """All GPU hours."""
        return self.allocated_hours + self.zombie_hours + self.faulty_hours + self.free_hours + self.unknown_hours


class IncidentCount(Fact, frozen=True, kw_only=True):
    """Fired and resolved alerts of one rule and cause, and their mean duration."""

    rule: str
    cause: str
    fired: int
    resolved: int
    mean_seconds: float | None = None


class ReportHour(Fact, frozen=True, kw_only=True):
    """GPU hours of all GPUs from `at` on: those whose use is known, and those that were allocated."""

    at: int
    known_hours: float
    allocated_hours: float


class Report(Fact, frozen=True, kw_only=True):
    """Usage in a period. The cluster was recorded for `watched_seconds` of it.

    `incidents_since` is later than `since` if older alerts are no longer stored, and `cleaned_since` if older cleanup
    runs are not: then `cleaned_bytes` is too low. `by_hour` covers the end of the period, oldest first. `currency` is
    None without prices; `unpriced` are the hours of models that have none. `kept` is what owners keep at the end of it.
    """

    since: float
    until: float
    by: By
    watched_seconds: float
    rows: tuple[ReportRow, ...]
    total: ReportRow
    by_hour: tuple[ReportHour, ...] = ()
    incidents: tuple[IncidentCount, ...] = ()
    incidents_since: float
    cleaned_since: float
    currency: str | None = None
    unpriced: tuple[UnpricedHours, ...] = ()
    kept: tuple[KeptObject, ...] = ()


class ReportSource(Protocol):
    """Makes reports."""

    def report(self, seconds: float, by: By) -> Report:
        """Report on the last `seconds`."""
        ...


class CleanedItem(Fact, frozen=True, kw_only=True):
    """A cleaned up item."""

    at: float
    freed_bytes: int
    node: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class ReportInputs:
    """Inputs of a report. `hours` are sums of all GPUs. `cleaned` is None without cleanup, `prices` without prices."""

    buckets: Collection[Bucket] = ()
    hours: Iterable[Bucket] = ()
    watched_seconds: float = 0.0
    events: Iterable[AlertEvent] = ()
    events_since: float = 0.0
    disks: Iterable[DiskUse] = ()
    cleaned: Iterable[CleanedItem] | None = None
    cleaned_since: float = 0.0
    prices: GpuPrices | None = None
    kept: tuple[KeptObject, ...] = ()


def make_report(inputs: ReportInputs, since: float, until: float, by: By) -> Report:
    """Report on a period, the largest user, queue or node first."""
    sums: dict[str | None, Sequence[float]] = {}
    costs, total_cost, prices = defaultdict[str | None, HeldCost](HeldCost), HeldCost(), inputs.prices
    for bucket in inputs.buckets:
        name: str | None = getattr(bucket, by)
        known = sums.get(name)
        sums[name] = figures_of(bucket) if known is None else tuple(map(add, known, figures_of(bucket)))
        if prices is not None:
            costs[name].add(bucket, prices)
            total_cost.add(bucket, prices)
    disks: OwnedBytes = [(use.node, use.user, use.bytes) for use in inputs.disks]
    cleaned: OwnedBytes | None = None
    if inputs.cleaned is not None:
        cleaned = [(item.node, item.user, item.freed_bytes) for item in inputs.cleaned if since <= item.at <= until]
    disk_of, cleaned_of = _by(disks, by), _by(cleaned or (), by)
    cleaned_known = cleaned is not None and by != "queue"
    rows = [
        _row(
            name,
            sums.get(name, _zeros()),
            disk_of.get(name),
            cleaned_of.get(name, 0) if cleaned_known else None,
            costs[name] if prices is not None else None,
        )
        for name in sums.keys() | disk_of.keys() | cleaned_of.keys()
    ]
    totals = [sum(column) for column in zip(*sums.values(), strict=True)] or _zeros()
    return Report(
        since=since,
        until=until,
        by=by,
        watched_seconds=inputs.watched_seconds,
        rows=tuple(sorted(rows, key=_order)),
        total=_row(
            None,
            totals,
            _sum(disks) if disks else None,
            None if cleaned is None else _sum(cleaned),
            total_cost if prices is not None else None,
        ),
        by_hour=tuple(_hour(bucket) for bucket in inputs.hours),
        incidents=_incidents(inputs.events, since, until),
        incidents_since=max(since, inputs.events_since),
        cleaned_since=max(since, inputs.cleaned_since),
        currency=prices.currency if prices is not None else None,
        unpriced=unpriced_hours(inputs.buckets, prices) if prices is not None else (),
        kept=inputs.kept,
    )


def _hour(bucket: Bucket) -> ReportHour:
    known = bucket.allocated + bucket.zombie + bucket.faulty + bucket.free
    return ReportHour(at=bucket.hour, known_hours=known / HOUR, allocated_hours=bucket.allocated / HOUR)


def _zeros() -> list[float]:
    return [0.0] * len(FIGURES)


def _by(sizes: OwnedBytes, by: By) -> dict[str | None, int]:
    """Sums by user or node; the disk space of queues is unknown."""
    sums: defaultdict[str | None, int] = defaultdict(int)
    for node, user, size in sizes if by != "queue" else ():
        sums[node if by == "node" else user] += size
    return sums


def _sum(sizes: OwnedBytes) -> int:
    return sum(size for _, _, size in sizes)


def _row(
    name: str | None, seconds: Sequence[float], disk: int | None, cleaned: int | None, cost: HeldCost | None
) -> ReportRow:
    figures = dict(zip(FIGURES, seconds, strict=True))
    hours = {f"{name}_hours": figures[name] / HOUR for name in FIGURES if name not in ("measured", "used")}
    return ReportRow(
        name=name,
        used_hours=figures["used"] / HOUR if figures["measured"] or not figures["allocated"] else None,
        wasted_hours=(figures["idle"] + figures["zombie"]) / HOUR,
        utilization_ratio=figures["used"] / figures["measured"] if figures["measured"] else None,
        disk_bytes=disk,
        cleaned_bytes=cleaned,
        **hours,
        **(cost.figures() if cost is not None else {}),
    )


def _order(row: ReportRow) -> tuple[bool, float, float, str]:
    """Sort key: the most allocated hours first, hours without an owner last."""
    return row.name is None, -row.allocated_hours, -row.wasted_hours, row.name or ""


def _incidents(events: Iterable[AlertEvent], since: float, until: float) -> tuple[IncidentCount, ...]:
    """Alerts by rule and cause, the most frequent first. An alert that another one explains is not an incident."""
    fired: Counter[tuple[str, str]] = Counter()
    durations: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        alert, finding = event.alert, event.alert.finding
        if not since <= event.at <= until or finding.explained_by is not None:
            continue
        if event.what is AlertEventKind.FIRED:
            fired[finding.rule, finding.cause] += 1
        elif event.what is AlertEventKind.RESOLVED:
            durations[finding.rule, finding.cause].append(
                event.at - (event.at if alert.fired_at is None else alert.fired_at)
            )
    return tuple(
        IncidentCount(
            rule=rule,
            cause=cause,
            fired=fired[rule, cause],
            resolved=len(durations[rule, cause]),
            mean_seconds=mean(durations[rule, cause]) if durations[rule, cause] else None,
        )
        for rule, cause in sorted(fired.keys() | durations.keys(), key=lambda key: (-fired[key], key))
    )
