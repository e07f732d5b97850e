"""Fast-forwards the daemon's SQLite files, because a soak test is too short to reach their retention.

alerts.db is filled with repeated soak data beyond its retention, as after months; its own pruning must shrink it, and
filling it again must not grow the file. record.db prunes as after its days and its year.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from monitor.alert.store import FILE as ALERTS
from monitor.alert.store import KEEP_ROWS, AlertStore
from monitor.report.buckets import DAY
from monitor.report.buckets import KEEP_DAYS as RECORD_DAYS
from monitor.report.store import FILE as RECORD
from monitor.report.store import KEEP_HOURS_DAYS, UsageStore

FULL = 2 * KEEP_ROWS
TABLES = ("history", "outbox")


@dataclass(frozen=True)
class Kept:
    """Remaining data after fast-forward. `rows` is the largest table of alerts.db; sizes are in bytes."""

    rows: int
    rows_limit: int
    full: int
    refilled: int
    pruned_in: float  # seconds during which other writers are blocked
    record_left: int
    record_year: float


def wind_forward(state: Path, folder: Path) -> Kept:
    """Retained data of a stopped daemon's directory; its files are not changed."""
    copy = folder / "wound"
    shutil.copytree(state, copy)
    alerts, record = copy / ALERTS, copy / RECORD
    unsent = _count(alerts, "outbox", "WHERE parcel IS NULL OR parcel IN (SELECT id FROM parcels WHERE state = 'open')")
    pruned_in = _fill_and_prune(alerts)
    rows, full = max(_count(alerts, table) for table in TABLES), alerts.stat().st_size
    _fill_and_prune(alerts)
    left, year = _record_over_years(record)
    return Kept(rows, KEEP_ROWS + unsent, full, alerts.stat().st_size, pruned_in, left, year)


def _fill_and_prune(alerts: Path) -> float:
    """Fill the file beyond its retention, prune it, and return the seconds that took."""
    with closing(sqlite3.connect(alerts)) as file, file:
        _repeat_history(file)
        number = 0
        while _rows(file, "outbox") < FULL:
            number += 1
            _repeat_sent(file, f"+{time.monotonic_ns()}")
            if number > 40:
                raise RuntimeError("the soak has sent nothing that could be repeated")
    store = AlertStore(str(alerts))
    began = time.monotonic()
    store.prune(time.time())
    took = time.monotonic() - began
    store.close()
    with closing(sqlite3.connect(alerts)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return took


def _repeat_history(file: sqlite3.Connection) -> None:
    """Repeat the history until it exceeds the retention."""
    columns = ", ".join(name for name in _columns(file, "history") if name != "place")
    while 0 < _rows(file, "history") < FULL:
        file.execute(f"INSERT INTO history ({columns}) SELECT {columns} FROM history")


def _repeat_sent(file: sqlite3.Connection, suffix: str) -> None:
    """Repeat every sent message as a separate message."""
    sent = "SELECT id FROM parcels WHERE state != 'open'"
    rest = ", ".join(name for name in _columns(file, "outbox") if name not in ("place", "parcel"))
    file.execute(
        f"INSERT INTO outbox (parcel, {rest}) SELECT parcel || ?, {rest} FROM outbox WHERE parcel IN ({sent}) LIMIT ?",
        (suffix, FULL),
    )
    rest = ", ".join(name for name in _columns(file, "parcels") if name != "id")
    file.execute(
        f"INSERT INTO parcels (id, {rest}) SELECT id || ?, {rest} FROM parcels WHERE state != 'open' LIMIT ?",
        (suffix, FULL),
    )


def _record_over_years(record: Path) -> tuple[int, float]:
    """Rows left when all are expired, and bytes of a year of hours like these."""
    rows, size = _count(record, "buckets"), record.stat().st_size
    hours = max(1, _count(record, "watched"))
    store, now = UsageStore(str(record)), time.time()
    store.prune(now + (KEEP_HOURS_DAYS + 2) * DAY)
    days = _count(record, "buckets")
    store.prune(now + (RECORD_DAYS + 2) * DAY)
    store.close()
    left = sum(_count(record, table) for table in ("buckets", "watched", "disks"))
    a_row = size / max(1, rows)
    return left, a_row * (rows / hours * 24 * KEEP_HOURS_DAYS + days * (365 - KEEP_HOURS_DAYS))


def _columns(file: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in file.execute(f"PRAGMA table_info({table})")]


def _rows(file: sqlite3.Connection, table: str, where: str = "") -> int:
    return int(file.execute(f"SELECT COUNT(*) FROM {table} {where}").fetchone()[0])


def _count(path: Path, table: str, where: str = "") -> int:
    with closing(sqlite3.connect(path)) as file:
        return _rows(file, table, where)
