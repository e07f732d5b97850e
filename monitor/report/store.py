"""Usage records in one SQLite file: by hour, and by day after some weeks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import add
from typing import Any, get_args

from monitor.base.sqlite import Database, DatabaseSession
from monitor.base.state_problems import StateProblem
from monitor.base.state_size import compact
from monitor.base.text import shorten_name
from monitor.report.buckets import DAY, FIGURES, HOUR, KEEP_DAYS, UNPRICED, Bucket, By, Priced, figures_of
from monitor.report.closed_hours import ClosedHours
from monitor.report.disk_use import DiskUse, DiskUseKind, day_of

FILE = "record.db"
MAX_NAME_CHARS = 256
KEEP_HOURS_DAYS = 35  # older hours are merged into days: a year of hours of a thousand nodes would be gigabytes
MAX_SCAN_AGE_DAYS = 31  # datasets are scanned rarely
_Key = tuple[By, str, float, int, str]  # dimension, model, share, hour, name
_COLUMNS = ", ".join(FIGURES)
_SUMS = ", ".join(f"SUM({name})" for name in FIGURES)
_ADD = ", ".join(f"{name} = {name} + excluded.{name}" for name in FIGURES)
_UPSERT = f"ON CONFLICT (dimension, model_id, hour, name) DO UPDATE SET {_ADD}"
_DIMENSIONS: tuple[By, ...] = get_args(By)
_FEWEST: By = "queue"  # the dimension with the fewest rows, for sums of all GPUs
_DISK_NAMES: dict[By, str] = {"user": "user", "node": "node", "queue": "NULL"}  # disks do not belong to queues
_TAKE_OVER = "\n".join(
    f"INSERT INTO usage SELECT '{by}', hour, {by}, {_SUMS} FROM buckets GROUP BY hour, {by};"  # noqa: S608  # constants only
    for by in _DIMENSIONS
)
# By user, by queue and by node: a report reads a few rows of an hour instead of thousands.
_BY_DIMENSION = f"""
CREATE TABLE usage (
    dimension TEXT NOT NULL, hour INTEGER NOT NULL, name TEXT NOT NULL,
    {", ".join(f"{name} REAL NOT NULL" for name in FIGURES)}, PRIMARY KEY (dimension, hour, name)
) WITHOUT ROWID;
{_TAKE_OVER}
DROP TABLE buckets;
"""
# Prices are per model. What an older version recorded has no model. The model comes before the hour in the key, so that
# the rows of each model are grouped by name alone: SQLite needs a third more time to sort them by two columns.
_BY_MODEL = f"""
CREATE TABLE models (id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, share REAL NOT NULL);
INSERT INTO models VALUES (0, '', 1.0);
CREATE TABLE by_model (
    dimension TEXT NOT NULL, model_id INTEGER NOT NULL, hour INTEGER NOT NULL, name TEXT NOT NULL,
    {", ".join(f"{name} REAL NOT NULL" for name in FIGURES)}, PRIMARY KEY (dimension, model_id, hour, name)
) WITHOUT ROWID;
INSERT INTO by_model SELECT dimension, 0, hour, name, {_COLUMNS} FROM usage;
DROP TABLE usage;
ALTER TABLE by_model RENAME TO usage;
"""  # noqa: S608  # constants only
# Ids of the models of a dimension, read from the key of usage: a damaged file may have lost rows of models.
_MODEL_IDS = """
WITH RECURSIVE found (id) AS (
    SELECT MIN(model_id) FROM usage WHERE dimension = ?1 UNION ALL
    SELECT (SELECT MIN(model_id) FROM usage WHERE dimension = ?1 AND model_id > id) FROM found WHERE id IS NOT NULL
) SELECT id FROM found WHERE id IS NOT NULL
"""
_PERIOD = f"dimension = ?1 AND model_id IN ({_MODEL_IDS}) AND hour >= ?2 AND hour < ?3"
_ADD_MODEL = """
INSERT INTO models (model, share) SELECT ?1, ?2
WHERE NOT EXISTS (SELECT 1 FROM models WHERE model = ?1 AND share = ?2)
"""
_DELETE_UNUSED_MODELS = f"""
DELETE FROM models WHERE NOT EXISTS (SELECT 1 FROM usage WHERE dimension IN {_DIMENSIONS} AND model_id = models.id)
"""  # noqa: S608  # constants only
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
    _BY_DIMENSION,
    _BY_MODEL,
)


class UsageStore:
    """The database file. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._database = Database(path, MIGRATIONS)
        self._closed = ClosedHours()

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written at the moment; None if it is."""
        return self._database.problem

    def close(self) -> None:
        self._database.close()

    def add(self, buckets: Iterable[Bucket], watched: Mapping[int, float]) -> None:
        """Add to the stored values of the same hours, in one transaction. Raise DatabaseError."""
        sums = _sums(buckets)
        model_id = "(SELECT MIN(id) FROM models WHERE model = ? AND share = ?)"
        placeholders = ", ".join("?" * (2 + len(FIGURES)))
        statement = f"INSERT INTO usage VALUES (?, {model_id}, {placeholders}) {_UPSERT}"  # noqa: S608  # constants only
        with self._database.transaction() as session:
            for priced in {key[1:3] for key in sums}:
                session.run(_ADD_MODEL, priced)
            for key, figures in sums.items():
                session.run(statement, (*key, *figures))
            for hour, seconds in watched.items():
                session.run(
                    "INSERT INTO watched VALUES (?, ?) ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds",
                    (hour, seconds),
                )
        if sums:
            self._closed.forget(min(key[3] for key in sums))

    def buckets(self, since: float, until: float, by: By) -> tuple[Bucket, ...]:
        """Sums by user, queue or node, and model, over [since, until): those of the last hour are apart."""
        last = int(until // HOUR) * HOUR
        if last <= since:
            return self._read(since, until, by)
        closed = self._closed.get(by, since, last, lambda: self._read(since, last, by))
        return closed + self._read(last, until, by)

    def _read(self, since: float, until: float, by: By) -> tuple[Bucket, ...]:
        models, found = self._models(), list[Bucket]()
        for (model_id,) in self._database.select(_MODEL_IDS, (by,)):
            priced = models.get(model_id, UNPRICED)
            rows = self._database.select(
                f"SELECT name, MIN(hour), {_SUMS} FROM usage"  # noqa: S608  # constants only
                " WHERE dimension = ? AND model_id = ? AND hour >= ? AND hour < ? GROUP BY name",
                (by, model_id, since, until),
            )
            found += (named_bucket(by, hour, name, priced, sums) for name, hour, *sums in rows)
        return tuple(found)

    def _models(self) -> dict[int, Priced]:
        rows = self._database.select("SELECT id, model, share FROM models")
        return {model_id: (model, share) for model_id, model, share in rows}

    def hours(self, since: float, until: float) -> tuple[Bucket, ...]:
        """Sums of all GPUs by hour in [since, until), oldest first."""
        rows = self._database.select(
            f"SELECT hour, {_SUMS} FROM usage WHERE {_PERIOD} GROUP BY hour ORDER BY hour",  # noqa: S608  # constants only
            (_FEWEST, since, until),
        )
        return tuple(Bucket(hour=hour, **dict(zip(FIGURES, sums, strict=True))) for hour, *sums in rows)

    def hourly(self, since: float, until: float, by: By, names: Collection[str]) -> tuple[Bucket, ...]:
        """Sums by hour and model of these users, queues or nodes in [since, until)."""
        models = self._models()
        rows = self._database.select(
            f"SELECT hour, name, model_id, {_COLUMNS} FROM usage WHERE {_PERIOD}",  # noqa: S608  # constants only
            (by, since, until),
        )
        return tuple(
            named_bucket(by, hour, name, models.get(model_id, UNPRICED), figures)
            for hour, name, model_id, *figures in rows
            if name in names
        )

    def watched(self, since: float, until: float) -> float:
        """Seconds for which the cluster was recorded."""
        query = "SELECT COALESCE(SUM(seconds), 0.0) FROM watched WHERE hour >= ? AND hour < ?"
        return float(self._database.select(query, (since, until))[0][0])

    def put_disks(self, uses: Iterable[DiskUse]) -> None:
        """Store disk space, replacing the values of the same day, kind and node."""
        uses = tuple(uses)
        with self._database.transaction() as session:
            for day, kind, node in {(use.day, use.kind, use.node) for use in uses}:
                session.run("DELETE FROM disks WHERE day = ? AND kind = ? AND node = ?", (day, kind, _name(node)))
            for use in uses:
                values = (use.day, use.kind, _name(use.node), _name(use.user), use.bytes)
                session.run("INSERT INTO disks VALUES (?, ?, ?, ?, ?)", values)

    def disks(self, until: float, by: By) -> tuple[DiskUse, ...]:
        """Disk space at a time by kind and user or node: the last known of each kind and node, unless it is too old."""
        name = _DISK_NAMES[by]
        query = f"""
            SELECT MAX(day), kind, {name}, SUM(bytes) FROM disks JOIN (
                SELECT kind, node, MAX(day) AS day FROM disks
                WHERE day < ? AND day >= CASE kind WHEN ? THEN ? ELSE ? END GROUP BY kind, node
            ) USING (kind, node, day) GROUP BY kind, {name} ORDER BY kind, {name}
        """  # noqa: S608  # constants only
        today = day_of(until)
        oldest = (today - MAX_SCAN_AGE_DAYS * DAY, today - DAY)
        rows = self._database.select(query, (until, DiskUseKind.DATASETS, *oldest))
        return tuple(_disk_use(by, *row) for row in rows)

    def shrink(self) -> bool:
        """Delete the older half of the records. Return whether there were any besides those of the last hour."""
        first, last = self._database.select("SELECT MIN(hour), MAX(hour) FROM usage")[0]
        if first is None or first == last:
            return False
        middle = (first + last) // 2
        with self._database.transaction() as session:
            session.run("DELETE FROM usage WHERE hour <= ?", (middle,))
            session.run("DELETE FROM watched WHERE hour <= ?", (middle,))
            session.run("DELETE FROM disks WHERE day <= ?", (middle,))
            session.run(_DELETE_UNUSED_MODELS)
        self._closed.forget(first)
        compact(self._database, self._path)
        return True

    def prune(self, now: float) -> None:
        """Delete records that are too old, and merge hours that are older than some weeks into days."""
        old = now - KEEP_DAYS * DAY
        with self._database.transaction() as session:
            session.run("DELETE FROM usage WHERE hour < ?", (old,))
            session.run("DELETE FROM watched WHERE hour < ?", (old,))
            session.run("DELETE FROM disks WHERE day < ?", (old,))
            _roll_up(session, daily_before(now))
            session.run(_DELETE_UNUSED_MODELS)
        self._closed.forget(0.0)


def named_bucket(by: By, hour: int, name: str | None, priced: Priced, figures: Iterable[float]) -> Bucket:
    """Figures of a user, queue or node, with its name and model as they are stored."""
    values: dict[str, Any] = {by: _name(name) or None, **dict(zip(FIGURES, figures, strict=True))}
    return Bucket(hour=hour, model=_name(priced[0]) or None, share=priced[1], **values)


def _disk_use(by: By, day: int, kind: str, name: str | None, size: int) -> DiskUse:
    user, node = (name or None if by == dimension else None for dimension in ("user", "node"))
    return DiskUse(day=day, kind=DiskUseKind(kind), user=user, node=node, bytes=size)


def _sums(buckets: Iterable[Bucket]) -> dict[_Key, tuple[float, ...]]:
    """Figures of buckets by each dimension, hour, name and model."""
    sums: dict[_Key, tuple[float, ...]] = {}
    for bucket in buckets:
        figures = figures_of(bucket)
        for by in _DIMENSIONS:
            key = by, _name(bucket.model), bucket.share, bucket.hour, _name(getattr(bucket, by))
            known = sums.get(key)
            sums[key] = figures if known is None else tuple(map(add, known, figures))
    return sums


def _name(name: str | None) -> str:
    """The name as it is stored; empty if there is none."""
    return shorten_name(name or "", MAX_NAME_CHARS)


def daily_before(now: float) -> int:
    """Time before which records are by day."""
    return day_of(now) - KEEP_HOURS_DAYS * DAY


def period_start(since: float, now: float) -> int:
    """Start of the hour of `since`, or of its day where records are by day."""
    return day_of(since) if since < daily_before(now) else int(since // HOUR) * HOUR


def _roll_up(session: DatabaseSession, before: int) -> None:
    """Merge the hours of each day before a time into its first hour, which then represents the day."""
    later = f"hour < ? AND hour % {DAY} != 0"
    session.run(
        f"""
        INSERT INTO usage (dimension, model_id, hour, name, {_COLUMNS})
        SELECT dimension, model_id, hour - hour % {DAY} AS day, name, {_SUMS} FROM usage
        WHERE {later} GROUP BY dimension, model_id, day, name {_UPSERT}
        """,  # noqa: S608  # constants only
        (before,),
    )
    session.run(f"DELETE FROM usage WHERE {later}", (before,))  # noqa: S608  # constants only
