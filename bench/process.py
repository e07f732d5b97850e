"""Measurements of another process: CPU time in nanoseconds, memory, forks, and scrape latency."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

SCRAPE_EVERY = 15.0
WINDOWS = 4
SCRAPES = 120


@dataclass(frozen=True)
class Cost:
    """Cost of an exporter. CPU is per 15 s: background work and one scrape."""

    cpu_ms: float
    rss_mib: float
    p50_ms: float
    p95_ms: float
    series: int
    forks: int


@contextlib.contextmanager
def running(command: Sequence[str], environ: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the context exits, then stop it by pid."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def measure(process: subprocess.Popen[bytes], url: str, settle: float = 20.0, *, verify: bool = True) -> Cost:
    """Let a running exporter settle, then measure it under scrapes like Prometheus'."""
    session = local_session(verify=verify)
    _wait_for(session, url)
    time.sleep(settle)
    session.get(url, timeout=30)
    began, cpu = time.monotonic(), cpu_seconds(process.pid)
    for window in range(1, WINDOWS + 1):
        time.sleep(max(0.0, began + window * SCRAPE_EVERY - time.monotonic()))
        session.get(url, timeout=30)
    used = cpu_seconds(process.pid) - cpu
    took, text = _scrapes(session, url)
    return Cost(
        cpu_ms=1000 * used / WINDOWS,
        rss_mib=_rss_mib(process.pid),
        p50_ms=1000 * took[len(took) // 2],
        p95_ms=1000 * took[int(len(took) * 0.95)],
        series=sum(1 for line in text.splitlines() if line and not line.startswith("#")),
        forks=_forks(process.pid, session, url),
    )


def local_session(*, verify: bool) -> requests.Session:
    """A session for loopback, without the proxies and certificate authorities of the environment."""
    session = requests.Session()
    session.trust_env = False  # REQUESTS_CA_BUNDLE would outrank `verify`
    session.verify = verify
    return session


def _wait_for(session: requests.Session, url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            session.get(url, timeout=5).raise_for_status()
            return
        except requests.RequestException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _scrapes(session: requests.Session, url: str) -> tuple[list[float], str]:
    """Scrape with pauses, so that each scrape finds the exporter idle."""
    took, text = [], ""
    for _ in range(SCRAPES):
        began = time.perf_counter()
        text = session.get(url, timeout=30).text
        took.append(time.perf_counter() - began)
        time.sleep(0.1)
    return sorted(took), text


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process, with a clock id as made by clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


def _forks(pid: int, session: requests.Session, url: str, seconds: float = 20.0) -> int:
    """Processes (not threads) started during scrapes, from a system call trace."""
    strace = shutil.which("strace")
    if strace is None:
        raise RuntimeError("strace is needed to count forks (Debian package strace)")
    with TemporaryDirectory() as directory:
        trace = Path(directory) / "trace"
        command = [strace, "-f", "-qq", "-e", "trace=fork,vfork,clone,clone3", "-o", str(trace), "-p", str(pid)]
        tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(1)
        for _ in range(2):
            session.get(url, timeout=60)
            time.sleep(seconds / 2)
        tracer.terminate()
        tracer.wait(10)
        lines = trace.read_text().splitlines()
    return sum("CLONE_THREAD" not in line for line in lines if "clone" in line or "fork" in line)
