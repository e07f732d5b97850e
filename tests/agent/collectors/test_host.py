"""Figures of the host: this machine, and a recorded /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from monitor.agent.collectors.host import HostCollector, parse_network
from tests.support.filesystems import node_paths

# From a server with Debian 12 (Linux 6.1), shortened.
STAT = """cpu  1000 200 300 40000 500 60 70 80 90 10
cpu0 1000 200 300 40000 500 60 70 80 90 10
btime 1700000000
"""
MEMINFO = """MemTotal:       65536000 kB
MemFree:         1000000 kB
MemAvailable:   60000000 kB
Buffers:          100000 kB
Cached:          5000000 kB
Shmem:             10000 kB
SReclaimable:     200000 kB
Active:          3000000 kB
Inactive:        4000000 kB
"""


@pytest.fixture(autouse=True)
def restored_psutil() -> Iterator[None]:
    yield
    psutil.PROCFS_PATH = "/proc"


def test_this_machine() -> None:
    fact = HostCollector(node_paths()).collect()
    assert fact.cpus == os.sysconf("SC_NPROCESSORS_ONLN")
    assert fact.memory_total_bytes == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.001)
    assert 0 < fact.memory_available_bytes < fact.memory_total_bytes
    assert fact.load1 is not None
    assert fact.load1 >= 0
    assert fact.booted_at == pytest.approx(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME), abs=2)
    assert fact.kernel == os.uname().release


def test_cpu_seconds_only_grow_and_add_up_to_the_time_since_boot() -> None:
    one = HostCollector(node_paths())
    before = one.collect().cpu_seconds_total
    sum(range(3_000_000))
    after = one.collect().cpu_seconds_total
    assert sum(after.values()) > sum(before.values())
    assert {"user", "system", "idle", "iowait", "steal"} <= set(after)


def test_a_recorded_node(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "meminfo").write_text(MEMINFO)
    fact = HostCollector(node_paths(proc=str(tmp_path))).collect()
    assert (fact.memory_total_bytes, fact.memory_available_bytes) == (65_536_000 * 1024, 60_000_000 * 1024)
    assert fact.booted_at == 1_700_000_000.0
    ticks = os.sysconf("SC_CLK_TCK")
    expected = {
        "user": 1000, "nice": 200, "system": 300, "idle": 40000, "iowait": 500, "irq": 60, "softirq": 70, "steal": 80,
    }  # fmt: skip
    assert fact.cpu_seconds_total == {name: value / ticks for name, value in expected.items()}  # user includes guest


def test_without_proc_it_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HostCollector(node_paths(proc=str(tmp_path))).collect()


NETWORK = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0
enp5s0f0np0: 1000 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0
  eth1:5000 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0
 bond0: 6000 1 0 0 0 0 0 0 320 1 0 0 0 0 0 0
vethab12: 70 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0
docker0: 70 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0
  ib0: x 1
"""


def test_network_counts_physical_interfaces_once() -> None:
    assert parse_network(NETWORK) == (6000, 320)
    assert parse_network("") == (None, None)


def test_the_network_is_that_of_the_host_and_unknown_without_it(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "meminfo").write_text(MEMINFO)
    collector = HostCollector(node_paths(proc=str(tmp_path)))
    assert collector.collect().network_received_bytes_total is None
    (tmp_path / "1" / "net").mkdir(parents=True)
    (tmp_path / "1" / "net" / "dev").write_text(NETWORK)
    fact = collector.collect()
    assert (fact.network_received_bytes_total, fact.network_transmitted_bytes_total) == (6000, 320)
