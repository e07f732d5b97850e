"""A burst of 100,000 lines in the kernel log: what the collectors of XIDs and kernel events cost.

Each line is one read, as on /dev/kmsg. `noise` is a burst of lines without a class, `errors` one in which every line is
a PCIe error. The busiest run counts against the collector's interval of 5 s; memory is the peak of what Python
allocates during the burst.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable

from bench.report import Goal, Report
from monitor.agent.collectors.kernel import KernelCollector
from monitor.agent.collectors.xid import parse_xid
from monitor.agent.kernel.lines import FRAGMENTS
from monitor.agent.kmsg import KernelLog, SharedKernelLog

LINES = 100_000
INTERVAL = 5.0
MIB = 1024**2
BURSTS = {
    "noise": 'audit: type=1400 audit(1700000000.123:456): apparmor="ALLOWED" operation="open" name="/proc/1" pid=1',
    "errors": "pcieport 0000:00:03.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
}


def run() -> Report:
    """Measure both bursts and return the report."""
    rows, goals = [], []
    for name, text in BURSTS.items():
        runs = [seconds * 1000 for seconds in _burst(text)]
        peak = _peak(text) / MIB
        rows.append((name, str(len(runs)), f"{sum(runs):.0f}", f"{max(runs):.0f}", f"{peak:.1f}"))
        share = max(runs) / 1000 / INTERVAL
        goals += [
            Goal(f"kernel_burst_cpu_share_{name}", share, 0.05, f"share of a core in the busiest run, burst of {name}"),
            Goal(f"kernel_burst_peak_mib_{name}", peak, 5.0, f"peak of memory, burst of {name}"),
        ]
    columns = ("burst", "runs", "CPU ms in total", "CPU ms of the busiest run", "peak MiB")
    how = (__doc__ or "").partition("\n\n")[2].strip()
    return Report("kernel_log", "A burst in the kernel log", how, goals, (("100,000 lines", columns, rows),))


def _burst(text: str) -> list[float]:
    """CPU seconds of each run until the burst is read."""
    device = os.open("/dev/zero", os.O_RDONLY)
    try:
        collect, left = _collector(text, device)
        seconds = []
        while left():
            began = time.process_time()
            collect()
            seconds.append(time.process_time() - began)
    finally:
        os.close(device)
    return seconds


def _peak(text: str) -> int:
    """Peak of the memory that is allocated during the burst."""
    device = os.open("/dev/zero", os.O_RDONLY)
    try:
        collect, left = _collector(text, device)
        tracemalloc.start()
        while left():
            collect()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        os.close(device)


def _collector(text: str, device: int) -> tuple[Callable[[], None], Callable[[], int]]:
    """Both collectors' work on a burst, and the number of lines that are left."""
    lines = iter(range(LINES))
    left = LINES

    def read(_file: int, _size: int) -> bytes:
        nonlocal left
        number = next(lines, None)
        if number is None:
            raise BlockingIOError
        left -= 1
        os.read(device, 1)  # the system call
        return f"4,{number},{number},-;{text}\n".encode()

    log = SharedKernelLog(KernelLog("/dev/null", FRAGMENTS, 0.0, read=read))
    kernel, messages = KernelCollector(log), log.subscribe()

    def collect() -> None:
        kernel.collect()
        for message in messages():
            parse_xid(message)

    return collect, lambda: left
