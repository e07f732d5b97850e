"""Shared memory of real processes in their own mount namespaces."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.collectors.shm import ShmCollector
from monitor.facts import ContainerFact, GpuProcessFact, ShmFact
from tests.support import HANG_LIMIT_SECONDS, need, wait_until
from tests.support.filesystems import node_paths, process_with_mounts, stalling_mount

OWN_8_MIB = "mount -t tmpfs -o size=8m shm /dev/shm"
MIB = 1 << 20


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process that shares the host's /dev/shm, as `docker run --ipc=host` does."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def container(name: str, pid: int | None, state: str = "running", sandbox: bool = False) -> ContainerFact:
    return ContainerFact(id=name, runtime="docker", state=state, pid=pid, sandbox=sandbox)


def gpu_process(container_id: str | None, pid: int, state: str = "R") -> GpuProcessFact:
    return GpuProcessFact(gpu_uuid="GPU-1", pid=pid, kind="compute", state=state, container_id=container_id)


def read(*containers: ContainerFact, gpu_processes: tuple[GpuProcessFact, ...] | None = None) -> tuple[ShmFact, ...]:
    return ShmCollector(node_paths(), lambda: containers, lambda: gpu_processes).collect()


def ids(facts: tuple[ShmFact, ...]) -> list[str | None]:
    return [fact.container_id for fact in facts]


def test_the_hosts_own() -> None:
    need(os.path.ismount("/dev/shm"), "a /dev/shm")
    with open("/dev/shm/gpuwarden-test", "wb") as file:
        try:
            file.write(b"x" * 3 * MIB)
            file.flush()
            (fact,) = ShmCollector(node_paths(), lambda: None, lambda: None).collect()
            space = os.statvfs("/dev/shm")
        finally:
            os.unlink("/dev/shm/gpuwarden-test")
    assert (fact.container_id, fact.pid) == (None, None)
    assert fact.device == os.stat("/dev/shm").st_dev
    assert fact.size_bytes == space.f_blocks * space.f_frsize
    assert fact.used_bytes >= 3 * MIB


def test_a_containers_own_is_that_which_it_sees(neighbour: int) -> None:
    with process_with_mounts(f"{OWN_8_MIB}\nhead -c {7 * MIB} /dev/zero > /dev/shm/batch") as pid:
        host, own, shared = read(container("trainer", pid), container("ipc-host", neighbour))
    assert own == ShmFact(size_bytes=8 * MIB, used_bytes=7 * MIB, device=own.device, container_id="trainer", pid=pid)
    assert own.device != host.device
    assert (shared.container_id, shared.device, shared.size_bytes) == ("ipc-host", host.device, host.size_bytes)


def test_a_full_one() -> None:
    with process_with_mounts(f"{OWN_8_MIB}\nhead -c {9 * MIB} /dev/zero > /dev/shm/batch || true") as pid:
        _, fact = read(container("trainer", pid))
    assert fact.used_bytes == fact.size_bytes == 8 * MIB


# name, the container's /dev, whether it is reported
SEEN: list[tuple[str, str, bool]] = [
    ("its own", OWN_8_MIB, True),
    ("none", "mount -t tmpfs dev /dev", False),
    ("a plain directory on the disk", "mount --bind /etc /dev/shm", False),
    ("a link", "mount -t tmpfs dev /dev; ln -s /proc /dev/shm", False),
    ("without limit", "mount -t tmpfs -o size=0 shm /dev/shm", False),
]


@pytest.mark.parametrize(("script", "reported"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_what_counts_as_shared_memory(script: str, reported: bool) -> None:
    with process_with_mounts(script) as pid:
        assert ids(read(container("trainer", pid))) == ([None, "trainer"] if reported else [None])


def ended_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait(60)
    return process.pid


def test_which_containers_are_looked_at(neighbour: int) -> None:
    facts = read(
        container("running", neighbour),
        container("paused", neighbour, state="paused"),
        container("exited", neighbour, state="exited"),
        container("created", None, state="created"),
        container("sandbox", neighbour, sandbox=True),
        container("just ended", ended_pid()),
        gpu_processes=(
            gpu_process("unknown to the runtime", neighbour),
            gpu_process("gone", neighbour, state="gone"),
            gpu_process("running", 1),
            gpu_process("sandbox", neighbour),
            gpu_process(None, neighbour),
        ),
    )
    assert sorted(ids(facts), key=str) == [None, "paused", "running", "unknown to the runtime"]
    assert {fact.pid for fact in facts} == {None, neighbour}  # the pid of the runtime takes precedence


def test_the_root_of_the_node_is_a_parameter(tmp_path: Path) -> None:
    paths = node_paths(rootfs=str(tmp_path))
    assert ShmCollector(paths, lambda: None, lambda: None).collect() == ()


def test_a_container_whose_shm_hangs_does_not_hide_the_others(tmp_path: Path, neighbour: int) -> None:
    with (
        stalling_mount(tmp_path) as nas,
        process_with_mounts(f"mount --bind {nas.point} /dev/shm") as odd,
        process_with_mounts(OWN_8_MIB) as even,
    ):
        known = (container("odd", odd), container("even", even), container("ipc-host", neighbour))
        one = ShmCollector(node_paths(), lambda: known, lambda: None, timeout=HANG_LIMIT_SECONDS)
        assert ids(one.collect()) == [None, "odd", "even", "ipc-host"]
        nas.hang()
        wait_until(lambda: "odd" not in ids(one.collect()), 30, "it hangs")
        threads = threading.active_count()
        for _ in range(100):
            assert ids(one.collect()) == [None, "even", "ipc-host"]
        assert threading.active_count() <= threads + 1
        nas.release()
        wait_until(lambda: ids(one.collect()) == [None, "odd", "even", "ipc-host"], 30, "all are read again")
