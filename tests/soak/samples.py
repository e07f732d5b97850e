"""What is measured of the daemon, and how: its process from outside, what it says of itself, its files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.process import _cpu_seconds as cpu_seconds

KIB = 1024
FIGURES = {
    "gpuwarden_look_duration_seconds": "look",
    "gpuwarden_view_age_seconds": "view_age",
    "gpuwarden_outbox_messages": "outbox",
    "gpuwarden_alerts": "alerts",
}
LINE = re.compile(r"^(gpuwarden_\w+)(\{[^}]*\})? (\S+)", re.MULTILINE)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon at one moment, `at` seconds after the beginning. Memory in MiB; `cpu` in seconds so far."""

    at: float
    rss: float
    anonymous: float
    fds: int
    threads: int
    cpu: float
    waited: float  # seconds for which its threads could have run and had no core
    files: dict[str, int]  # bytes of its files, by name


class Scrape(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon says of itself. `took` is how many seconds the scrape did, `series` how many lines it had."""

    at: float
    took: float
    series: int
    look: float | None = None
    view_age: float | None = None
    outbox: float | None = None
    alerts: float | None = None


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A pod whose pull failed: when, after how many seconds it was told, and after how many that it is over."""

    at: float
    name: str
    told: float | None = None
    over: float | None = None


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """An update of the page: when, and how long it took."""

    at: float
    took: float


def sample(pid: int, state: Path, began: float) -> Sample:
    """Look at a process and its directory."""
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
    """Given the text of a scrape, return what of it is followed."""
    sums: dict[str, float] = {}
    for name, labels, value in LINE.findall(text):
        if name in FIGURES and 'state="parked"' not in labels:
            sums[FIGURES[name]] = sums.get(FIGURES[name], 0.0) + float(value)
    series = sum(1 for line in text.splitlines() if line and line[0] != "#")
    return Scrape(at=at, took=took, series=series, **sums)


def _kib_of(text: str) -> dict[str, int]:
    """Given the lines of a file in /proc, return the numbers by their names."""
    return {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}


def _waits(process: Path) -> Iterator[float]:
    for task in (process / "task").iterdir():
        try:
            yield int((task / "schedstat").read_text().split()[1]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has just ended
