"""Measurements of the daemon: its process from outside, its own metrics, its files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.process import cpu_seconds

KIB = 1024
FIGURES = {
    "gpuwarden_look_duration_seconds": "look",
    "gpuwarden_view_age_seconds": "view_age",
    "gpuwarden_outbox_messages": "outbox",
    "gpuwarden_alerts": "alerts",
}
LINE = re.compile(r"^(gpuwarden_\w+)(\{[^}]*\})? (\S+)", re.MULTILINE)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon at `at` seconds after the start. Memory in MiB, `cpu` in cumulative seconds."""

    at: float
    rss: float
    anonymous: float
    fds: int
    threads: int
    cpu: float
    waited: float  # seconds that runnable threads waited for a core
    files: dict[str, int]  # bytes of its files by name


class Scrape(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of the daemon; `took` is the duration of the scrape in seconds, `series` its number of lines."""

    at: float
    took: float
    series: int
    look: float | None = None
    view_age: float | None = None
    outbox: float | None = None
    alerts: float | None = None


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a failed pull: time of failure, seconds until reported, and until resolved."""

    at: float
    name: str
    told: float | None = None
    over: float | None = None


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """Time and duration of a page update."""

    at: float
    took: float


def sample(pid: int, state: Path, began: float) -> Sample:
    """Sample a process and its directory."""
    process = Path(f"/proc/{pid}")
    memory = _kib_of((process / "smaps_rollup").read_text())
    status = _kib_of((process / "status").read_text())
    return Sample(
        at=time.monotonic() - began,
        rss=memory["Rss"] / KIB,
        anonymous=memory["Anonymous"] / KIB,
        fds=sum(1 for _ in (process / "fd").iterdir()),
        threads=int(status["Threads"]),
        cpu=cpu_seconds(pid),
        waited=sum(_waits(process)),
        files={path.name: path.stat().st_size for path in sorted(state.iterdir()) if path.is_file()},
    )


def read_metrics(text: str, at: float, took: float) -> Scrape:
    """The tracked metrics of a scrape."""
    sums: dict[str, float] = {}
    for name, labels, value in LINE.findall(text):
        if name in FIGURES and 'state="parked"' not in labels:
            sums[FIGURES[name]] = sums.get(FIGURES[name], 0.0) + float(value)
    series = sum(1 for line in text.splitlines() if line and line[0] != "#")
    return Scrape(at=at, took=took, series=series, **sums)


def _kib_of(text: str) -> dict[str, int]:
    """Numbers by name in the lines of a /proc file."""
    return {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}


def _waits(process: Path) -> Iterator[float]:
    for task in (process / "task").iterdir():
        try:
            yield int((task / "schedstat").read_text().split()[1]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that just ended
