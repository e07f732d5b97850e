"""An agent process whose driver, NAS and Docker all hang at once: it responds, reports and recovers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from monitor.facts import CollectorFact, NodeSnapshot
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.engines import DockerEngine, frozen
from tests.support.filesystems import StallingMount, stalling_mount

INTERVAL = 0.1  # seconds; the shortest that is allowed
CYCLES = 200
FAST = ("host", "gpu", "gpu_processes", "xid", "containers", "shm", "disk", "disk_io", "mounts")


@dataclass
class Node:
    """An agent process and its dependencies."""

    pid: int
    port: int
    nvml: FakeNvml
    nas: StallingMount

    def snapshot(self) -> NodeSnapshot:
        return msgspec.json.decode(get(f"http://127.0.0.1:{self.port}/v1/snapshot")[2], type=NodeSnapshot)

    def collector(self, name: str) -> CollectorFact:
        return next(fact for fact in self.snapshot().collectors if fact.name == name)

    def threads(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("Threads:")[2].split()[0])

    def nas_hung_since(self) -> float | None:
        disks = {disk.mount: disk for disk in self.snapshot().disk or ()}
        return disks[str(self.nas.point)].hung_since


@pytest.fixture
def node(tmp_path: Path, docker_engine: DockerEngine) -> Iterator[Node]:
    port, nvml = free_port(), FakeNvml(tmp_path / "nvml", gpus=2)
    with ExitStack() as stack:
        nas = stack.enter_context(stalling_mount(tmp_path))
        # disk and mounts wait a few seconds once for a dead mount, which is within their limit, as with the defaults
        limits = {name: 10 if name in ("disk", "mounts") else 0.5 for name in FAST}
        schedule = {
            f"AGENT__COLLECTORS__{name.upper()}": f"{{interval: {INTERVAL}, limit: {limit}}}"
            for name, limit in limits.items()
        }
        environ = quiet_environment(
            tmp_path / "state",
            AGENT__LISTEN=f"127.0.0.1:{port}",
            AGENT__PATHS__DOCKER_SOCKET=docker_engine.socket,
            AGENT__MOUNTS=f"[{nas.point}]",
            **schedule,
        )
        process = stack.enter_context(running(command("agent"), environ | nvml.environment()))
        node = Node(process.pid, port, nvml, nas)
        wait_until(lambda: answers(node), 60, "the agent responds")
        wait_until(lambda: all(node.collector(name).outcome == "ok" for name in FAST), 60, "every collector has run")
        yield node
        nvml.release()
        nas.release()  # before the agent ends: a thread that waits for FUSE cannot be killed


def answers(node: Node) -> bool:
    try:
        return get(f"http://127.0.0.1:{node.port}/healthz")[0] == 200
    except OSError:
        return False


@pytest.mark.timeout(600)
def test_driver_nas_and_docker_dead_at_once(node: Node, docker_engine: DockerEngine) -> None:
    began = time.time()
    with frozen(docker_engine.pid):
        node.nvml.hang()
        node.nas.hang()
        hung = ("gpu", "gpu_processes", "containers")
        wait_until(
            lambda: all(node.collector(name).hung_since for name in hung), 60, "the hung collectors are reported"
        )
        wait_until(lambda: node.nas_hung_since() is not None, 60, "the NAS is reported")
        assert all(began - 2 < (node.collector(name).hung_since or 0) < time.time() for name in hung)
        assert began - 2 < (node.nas_hung_since() or 0) < time.time()

        threads, runs = node.threads(), node.collector("host").runs
        slowest = 0.0
        while node.collector("host").runs < runs + CYCLES:
            started = time.perf_counter()
            text = get(f"http://127.0.0.1:{node.port}/metrics")[2]
            slowest = max(slowest, time.perf_counter() - started)
            time.sleep(0.2)
        assert slowest < 30.0
        assert 'gpuwarden_collector_hung{collector="gpu"} 1.0' in text
        assert f'gpuwarden_disk_hung{{device="nas",fstype="fuse.stalling",mount="{node.nas.point}"}} 1.0' in text
        wait_until(lambda: node.threads() <= threads, 60, "no more threads than before (those of our requests end)")
        check_freshness(node, time.time())

    node.nvml.release()
    node.nas.release()
    recovered = ("gpu", "gpu_processes", "containers", "disk", "mounts")
    wait_until(lambda: all(is_healthy(node.collector(name)) for name in recovered), 60, "all recover without a restart")
    wait_until(lambda: node.nas_hung_since() is None, 60, "the NAS is read again")
    wait_until(
        lambda: [mount.state for mount in node.snapshot().mounts or ()] == ["ok"], 60, "the mount is healthy again"
    )
    snapshot = node.snapshot()
    assert snapshot.gpu is not None
    assert snapshot.containers is not None
    wait_until(lambda: node.threads() <= threads, 60, "no more threads than before")


def check_freshness(node: Node, now: float) -> None:
    """Hung parts are unknown; everything else is current."""
    snapshot = node.snapshot()
    assert (snapshot.gpu, snapshot.gpu_processes, snapshot.containers) == (None, None, None)
    for name in ("host", "shm", "disk_io", "xid", "disk", "mounts"):
        assert now - (node.collector(name).succeeded_at or 0) < 20, name
    silent = {disk.mount: disk.error for disk in snapshot.disk or () if disk.size_bytes is None}
    assert silent == {str(node.nas.point): None}
    assert [mount.state for mount in snapshot.mounts or ()] == ["hung"]


def is_healthy(fact: CollectorFact) -> bool:
    return fact.outcome == "ok" and fact.hung_since is None
