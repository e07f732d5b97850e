"""The record of what happened over time, in one SQLite file: by the hour, after some weeks by the day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monitor.base.sqlite import Database, Session
from monitor.report.buckets import DAY, FIGURES, HOUR, KEEP_DAYS, Bucket, By
from monitor.report.disk_use import DiskUse, DiskUseKind, day_of

FILE = "record.db"
KEEP_HOURS_DAYS = 35  # after that a day is one row: a year of hours of a thousand nodes would be gigabytes
MAX_SCAN_AGE_DAYS = 31  # a scan of datasets may be weeks old and is still the best that is known
_COLUMNS = ", ".join(FIGURES)
_SUMS = ", ".join(f"SUM({name})" for name in FIGURES)
_ADD = ", ".join(f"{name} = {name} + excluded.{name}" for name in FIGURES)
_UPSERT = f"ON CONFLICT (hour, node, user, queue) DO UPDATE SET {_ADD}"
MIGRATIONS = (
    f"""
CREATE TABLE buckets (
    hour INTEGER NOT NULL, node TEXT NOT NULL, user TEXT NOT NULL, queue TEXT NOT NULL,
    {", ".join(f"{name} REAL NOT NULL" for name in FIGURES)}, PRIMARY KEY (hour, node, user, queue)
) WITHOUT ROWID;
CREATE TABLE watched (hour INTEGER PRIMARY KEY, seconds REAL NOT NULL);
CREATE TABLE disks (
    day INTEGER NOT NULL, kind TEXT NOT NULL, node TEXT NOT NULL, user TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (day, kind, node, user)
) WITHOUT ROWID;
""",
)


class UsageStore:
    """The file. For use from any thread."""

    def __init__(self, path: str) -> None:
        self._database = Database(path, MIGRATIONS)

    def close(self) -> None:
        self._database.close()

    def add(self, buckets: Iterable[Bucket], watched: Mapping[int, float]) -> None:
        """Add these to what is there of the same hours, all at once. Raise DatabaseError."""
        holes = ", ".join("?" * (4 + len(FIGURES)))
        statement = f"INSERT INTO buckets VALUES ({holes}) {_UPSERT}"  # noqa: S608  # of constants only
        with self._database.transaction() as session:
            for each in buckets:
                figures = (getattr(each, name) for name in FIGURES)
                session.run(statement, (each.hour, each.node or "", each.user or "", each.queue or "", *figures))
            for hour, seconds in watched.items():
                session.run(
                    "INSERT INTO watched VALUES (?, ?) ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds",
                    (hour, seconds),
                )

    def buckets(self, since: float, until: float, by: By) -> tuple[Bucket, ...]:
        """Return what began from `since` to before `until`, added up for each user, queue or node."""
        rows = self._database.select(
            f"SELECT {by}, MIN(hour), {_SUMS} FROM buckets WHERE hour >= ? AND hour < ? GROUP BY {by}",  # noqa: S608  # of constants only
            (since, until),
        )
        buckets = []
        for name, hour, *figures in rows:
            given: dict[str, Any] = {by: name or None, **dict(zip(FIGURES, figures, strict=True))}
            buckets.append(Bucket(hour=hour, **given))
        return tuple(buckets)

    def watched(self, since: float, until: float) -> float:
        """Return for how many seconds somebody looked at the cluster."""
        query = "SELECT COALESCE(SUM(seconds), 0.0) FROM watched WHERE hour >= ? AND hour < ?"
        return float(self._database.select(query, (since, until))[0][0])

    def put_disks(self, uses: Iterable[DiskUse]) -> None:
        """Write down who takes how much, in place of what was known of the same day, kind and node."""
        uses = tuple(uses)
        with self._database.transaction() as session:
            for day, kind, node in {(use.day, use.kind, use.node) for use in uses}:
                session.run("DELETE FROM disks WHERE day = ? AND kind = ? AND node = ?", (day, kind, node or ""))
            for use in uses:
                values = (use.day, use.kind, use.node or "", use.user or "", use.bytes)
                session.run("INSERT INTO disks VALUES (?, ?, ?, ?, ?)", values)

    def disks(self, until: float) -> tuple[DiskUse, ...]:
        """Return who took how much at a time: of each kind and node as last known, unless that was long before."""
        query = """
            SELECT day, kind, node, user, bytes FROM disks JOIN (
                SELECT kind, node, MAX(day) AS day FROM disks
                WHERE day < ? AND day >= CASE kind WHEN ? THEN ? ELSE ? END GROUP BY kind, node
            ) USING (kind, node, day) ORDER BY kind, node, user
        """
        today = day_of(until)
        oldest = (today - MAX_SCAN_AGE_DAYS * DAY, today - DAY)
        rows = self._database.select(query, (until, DiskUseKind.DATASETS, *oldest))
        return tuple(
            DiskUse(day=day, kind=DiskUseKind(kind), node=node or None, user=user or None, bytes=size)
            for day, kind, node, user, size in rows
        )

    def prune(self, now: float) -> None:
        """Forget what is too old, and keep of what is older than some weeks only the days."""
        old = now - KEEP_DAYS * DAY
        with self._database.transaction() as session:
            session.run("DELETE FROM buckets WHERE hour < ?", (old,))
            session.run("DELETE FROM watched WHERE hour < ?", (old,))
            session.run("DELETE FROM disks WHERE day < ?", (old,))
            _roll_up(session, daily_before(now))


def daily_before(now: float) -> int:
    """Return the time before which only days are known, no hours."""
    return day_of(now) - KEEP_HOURS_DAYS * DAY


def period_start(since: float, now: float) -> int:
    """Return when the hour begins that `since` is in; the day, where hours are not known any more."""
    return day_of(since) if since < daily_before(now) else int(since // HOUR) * HOUR


def _roll_up(session: Session, before: int) -> None:
    """Add the hours of each day before a time to the first of its hours, which then stands for the day."""
    later = f"hour < ? AND hour % {DAY} != 0"
    session.run(
        f"""
        INSERT INTO buckets (hour, node, user, queue, {_COLUMNS})
        SELECT hour - hour % {DAY} AS day, node, user, queue, {_SUMS} FROM buckets
        WHERE {later} GROUP BY day, node, user, queue {_UPSERT}
        """,  # noqa: S608  # of constants only
        (before,),
    )
    session.run(f"DELETE FROM buckets WHERE {later}", (before,))  # noqa: S608  # of constants only
