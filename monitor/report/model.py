"""The report on a stretch of time: whose the GPU hours were and what became of them, disks, incidents. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Protocol

from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.base import Fact
from monitor.report.buckets import FIGURES, HOUR, Bucket, By
from monitor.report.disk_use import DiskUse

Parts = Sequence[tuple[str | None, str | None, int]]  # node, user, bytes


class Row(Fact, frozen=True, kw_only=True):
    """One user, queue or node; None is nobody, or not known who. Hours are GPU hours.

    `wasted` are hours held and not used at all: `idle` (part of `allocated`) and `zombie` (nobody's any more, and not
    free either). `used_hours` and `utilization_ratio` (the mean) are of the allocated hours of which that is known,
    None if it is of none. `disk_bytes` and `cleaned_bytes` are None where nobody knows, or they cannot be told by this.
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

    @property
    def hours(self) -> float:
        """Return all hours: each is one of these."""
        return self.allocated_hours + self.zombie_hours + self.faulty_hours + self.free_hours + self.unknown_hours


class Incidents(Fact, frozen=True, kw_only=True):
    """Alerts of one rule and cause: how many fired, how many were resolved, and how long that took on average."""

    rule: str
    cause: str
    fired: int
    resolved: int
    mean_seconds: float | None = None


class Report(Fact, frozen=True, kw_only=True):
    """What is known of a stretch of time. For `watched_seconds` of it somebody looked at the cluster.

    `incidents_since` is later than `since` where alerts that long ago are forgotten, and `cleaned_since` where what was
    cleaned up is: then `cleaned_bytes` are too low.
    """

    since: float
    until: float
    by: By
    watched_seconds: float
    rows: tuple[Row, ...]
    total: Row
    incidents: tuple[Incidents, ...] = ()
    incidents_since: float
    cleaned_since: float


class ReportAsked(Protocol):
    """Who makes reports."""

    def report(self, seconds: float, by: By) -> Report:
        """Return the report on the last so many seconds."""
        ...


class Cleaned(Fact, frozen=True, kw_only=True):
    """Something that was cleaned up: where, whose, and what that freed."""

    at: float
    freed_bytes: int
    node: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class Material:
    """What a report is made of. `cleaned` is None where there is no cleanup."""

    buckets: Iterable[Bucket] = ()
    watched_seconds: float = 0.0
    events: Iterable[AlertEvent] = ()
    events_since: float = 0.0
    disks: Iterable[DiskUse] = ()
    cleaned: Iterable[Cleaned] | None = None
    cleaned_since: float = 0.0


def make_report(material: Material, since: float, until: float, by: By) -> Report:
    """Given what happened, return the report on a stretch of time, the largest user, queue or node first."""
    sums: defaultdict[str | None, list[float]] = defaultdict(_nothing)
    for bucket in material.buckets:
        line = sums[getattr(bucket, by)]
        for place, figure in enumerate(FIGURES):
            line[place] += getattr(bucket, figure)
    disks: Parts = [(use.node, use.user, use.bytes) for use in material.disks]
    cleaned: Parts | None = None
    if material.cleaned is not None:
        cleaned = [(each.node, each.user, each.freed_bytes) for each in material.cleaned if since <= each.at <= until]
    disk_of, cleaned_of = _by(disks, by), _by(cleaned or (), by)
    told = cleaned is not None and by != "queue"
    rows = [
        _row(name, sums.get(name, _nothing()), disk_of.get(name), cleaned_of.get(name, 0) if told else None)
        for name in sums.keys() | disk_of.keys() | cleaned_of.keys()
    ]
    totals = [sum(column) for column in zip(*sums.values(), strict=True)] or _nothing()
    return Report(
        since=since,
        until=until,
        by=by,
        watched_seconds=material.watched_seconds,
        rows=tuple(sorted(rows, key=_order)),
        total=_row(None, totals, _sum(disks) if disks else None, None if cleaned is None else _sum(cleaned)),
        incidents=_incidents(material.events, since, until),
        incidents_since=max(since, material.events_since),
        cleaned_since=max(since, material.cleaned_since),
    )


def _nothing() -> list[float]:
    return [0.0] * len(FIGURES)


def _by(parts: Parts, by: By) -> dict[str | None, int]:
    """Return the sums by user or node. What a queue has on disks is not known."""
    sums: defaultdict[str | None, int] = defaultdict(int)
    for node, user, size in parts if by != "queue" else ():
        sums[node if by == "node" else user] += size
    return sums


def _sum(parts: Parts) -> int:
    return sum(size for _, _, size in parts)


def _row(name: str | None, seconds: list[float], disk: int | None, cleaned: int | None) -> Row:
    figures = dict(zip(FIGURES, seconds, strict=True))
    hours = {f"{name}_hours": figures[name] / HOUR for name in FIGURES if name not in ("measured", "used")}
    return Row(
        name=name,
        used_hours=figures["used"] / HOUR if figures["measured"] or not figures["allocated"] else None,
        wasted_hours=(figures["idle"] + figures["zombie"]) / HOUR,
        utilization_ratio=figures["used"] / figures["measured"] if figures["measured"] else None,
        disk_bytes=disk,
        cleaned_bytes=cleaned,
        **hours,
    )


def _order(row: Row) -> tuple[bool, float, float, str]:
    """Whoever had most comes first, what is nobody's last."""
    return row.name is None, -row.allocated_hours, -row.wasted_hours, row.name or ""


def _incidents(events: Iterable[AlertEvent], since: float, until: float) -> tuple[Incidents, ...]:
    """Return the alerts by rule and cause, the most frequent first. A mere symptom of another is no incident."""
    fired: Counter[tuple[str, str]] = Counter()
    took: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        alert, finding = event.alert, event.alert.finding
        if not since <= event.at <= until or finding.explained_by is not None:
            continue
        if event.what is AlertEventKind.FIRED:
            fired[finding.rule, finding.cause] += 1
        else:
            took[finding.rule, finding.cause].append(
                event.at - (event.at if alert.fired_at is None else alert.fired_at)
            )
    return tuple(
        Incidents(
            rule=rule,
            cause=cause,
            fired=fired[rule, cause],
            resolved=len(took[rule, cause]),
            mean_seconds=mean(took[rule, cause]) if took[rule, cause] else None,
        )
        for rule, cause in sorted(fired.keys() | took.keys(), key=lambda key: (-fired[key], key))
    )
