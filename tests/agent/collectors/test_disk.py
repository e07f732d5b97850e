"""Disks: real ones that are full, out of inodes, read-only or hung, and recorded mounts for roles."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.collectors.disk import DiskCollector
from monitor.facts import DiskFact
from tests.support import HANG_LIMIT_SECONDS, need, wait_until
from tests.support.clock import FakeClock
from tests.support.filesystems import StallingMount, ext4_disk, fill, mounted, node_paths, run, stalling_mount


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path) as point:
        yield point


@pytest.fixture
def nas(tmp_path: Path) -> Iterator[StallingMount]:
    with stalling_mount(tmp_path) as mount:
        yield mount


def collector(
    timeout: float = 2.0, kubelet: str = "/nonexistent", runtime_roots: tuple[str, ...] = ()
) -> DiskCollector:
    return DiskCollector(node_paths(kubelet=kubelet), lambda: runtime_roots, per_mount_timeout=timeout)


def at(facts: tuple[DiskFact, ...], point: Path | str) -> DiskFact:
    (fact,) = [fact for fact in facts if fact.mount == str(point)]
    return fact


def df(point: Path, *fields: str) -> list[int]:
    """Output of df, which users compare with."""
    answer = subprocess.run(
        ["df", "--block-size=1", f"--output={','.join(fields)}", point], check=True, capture_output=True, timeout=300
    )
    return [int(number) for number in answer.stdout.splitlines()[1].split()]


def use_up_inodes(directory: Path) -> None:
    for number in range(100_000):
        (directory / str(number)).touch()


def used(point: Path) -> int:
    space = os.statvfs(point)
    return (space.f_blocks - space.f_bfree) * space.f_frsize


def test_figures_are_those_of_df(disk: Path) -> None:
    (disk / "file").write_bytes(b"x" * 5_000_000)
    fact = at(collector().collect(), disk)
    assert [fact.size_bytes, fact.used_bytes, fact.available_bytes] == df(disk, "size", "used", "avail")
    assert [fact.inodes, fact.inodes_used] == df(disk, "itotal", "iused")
    assert (fact.fstype, fact.read_only, fact.error, fact.hung_since) == ("ext4", False, None, None)
    assert fact.device.startswith("/dev/loop")


def test_the_system_disk_comes_first(disk: Path) -> None:
    facts = collector().collect()
    assert facts[0].mount == "/"
    assert "system" in facts[0].roles
    assert at(facts, disk).roles == ("data",)


def test_a_disk_that_is_full(disk: Path) -> None:
    fill(disk)
    fact = at(collector().collect(), disk)
    assert fact.used_bytes is not None
    assert fact.size_bytes is not None
    assert fact.used_bytes / fact.size_bytes > 0.9
    assert fact.available_bytes == 0


def test_a_disk_that_is_out_of_inodes_but_not_full(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        use_up_inodes(disk)
    fact = at(collector().collect(), disk)
    assert fact.inodes_used == fact.inodes
    assert fact.available_bytes is not None
    assert fact.available_bytes > 10_000_000


def test_a_disk_that_becomes_read_only(disk: Path) -> None:
    one = collector()
    assert at(one.collect(), disk).read_only is False
    run("mount", "-o", "remount,ro", disk)
    assert at(one.collect(), disk).read_only is True
    run("mount", "-o", "remount,rw", disk)
    assert at(one.collect(), disk).read_only is False


def test_a_disk_that_an_error_made_read_only(disk: Path) -> None:
    clock = FakeClock()
    one = DiskCollector(node_paths(), lambda: (), clock)
    run("mount", "-o", "remount,errors=remount-ro", disk)
    before = at(one.collect(), disk)
    assert before.read_only is False
    trigger = Path("/sys/fs/ext4") / Path(before.device).name / "trigger_fs_error"
    need(trigger.exists(), "a kernel that lets ext4 errors be made")
    trigger.write_text("test\n")
    with pytest.raises(OSError, match="Read-only file system"):
        (disk / "file").touch()
    need("emergency_ro" in Path("/proc/mounts").read_text() or os.statvfs(disk).f_flag & os.ST_RDONLY > 0,
         "a kernel that reports it")  # fmt: skip
    clock.advance(60)
    assert at(one.collect(), disk).read_only is True


def test_a_disk_comes_and_goes(tmp_path: Path) -> None:
    one = collector()
    with ext4_disk(tmp_path) as point:
        assert str(point) in [fact.mount for fact in one.collect()]
    mounts = [fact.mount for fact in one.collect()]  # with those that come and go beside this test
    assert "/" in mounts
    assert str(point) not in mounts


def test_a_bind_mount_is_not_another_disk(disk: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "b", "--bind", disk):
        points = [fact.mount for fact in collector().collect()]
    assert str(tmp_path / "b") in points  # the shorter path
    assert str(disk) not in points


def test_a_mount_at_a_path_that_is_not_utf8(disk: Path, tmp_path: Path) -> None:
    point = os.fsencode(tmp_path) + b"/\xca\xfd"
    run("umount", disk)
    with mounted(point, "-o", "loop", tmp_path / "disk.img"):
        fact = at(collector().collect(), f"{tmp_path}/\\xca\\xfd")
        run("mount", "-o", "loop", tmp_path / "disk.img", disk)  # undone by the fixture
    assert fact.size_bytes is not None
    assert fact.error is None


def test_roots_of_runtime_and_kubelet_are_found_through_links(disk: Path, tmp_path: Path) -> None:
    (disk / "docker").mkdir()
    (tmp_path / "var-lib-docker").symlink_to(disk / "docker")
    facts = collector(kubelet=str(disk), runtime_roots=(str(tmp_path / "var-lib-docker"), "/no/such/root")).collect()
    assert at(facts, disk).roles == ("runtime", "kubelet")
    assert at(facts, "/").roles == ("system",)


def test_one_disk_can_have_several_roles(tmp_path: Path) -> None:
    fact = collector(kubelet=str(tmp_path), runtime_roots=(str(tmp_path),)).collect()[0]
    assert fact.roles == ("system", "runtime", "kubelet")


def test_while_a_nas_hangs_every_other_disk_stays_fresh_and_threads_do_not_grow(nas: StallingMount, disk: Path) -> None:
    one = collector(timeout=HANG_LIMIT_SECONDS)
    fact = at(one.collect(), nas.point)
    assert (fact.roles, fact.size_bytes, fact.used_bytes) == (("nas",), 4_096_000, 3_072_000)
    assert (fact.inodes, fact.inodes_used, fact.fstype) == (None, None, "fuse.stalling")

    nas.hang()
    began = time.time()
    hung = at(one.collect(), nas.point)
    assert hung.hung_since == pytest.approx(began, abs=30)
    assert (hung.size_bytes, hung.used_bytes, hung.available_bytes, hung.read_only) == (None, None, None, None)
    threads = threading.active_count()
    started = time.monotonic()
    for cycle in range(200):
        (disk / "grows").write_bytes(b"x" * 4096 * (cycle + 1))
        facts = one.collect()
        assert at(facts, nas.point).hung_since == hung.hung_since
        assert at(facts, disk).used_bytes == used(disk)
    assert threading.active_count() <= threads + 1  # one worker for the others
    assert time.monotonic() - started < 100 * HANG_LIMIT_SECONDS  # the hung one is not waited for again

    nas.release()
    wait_until(lambda: at(one.collect(), nas.point).size_bytes == 4_096_000, 30, "the NAS is back")
    assert at(one.collect(), nas.point).hung_since is None
    wait_until(lambda: threading.active_count() < threads + 1, 30, "the hung thread has ended")


def test_a_nas_whose_server_is_dead_gives_an_error_and_the_others_are_read(nas: StallingMount, disk: Path) -> None:
    nas.die()
    facts = collector().collect()
    assert at(facts, nas.point).error == "Transport endpoint is not connected"
    assert at(facts, nas.point).size_bytes is None
    assert at(facts, disk).error is None


def test_a_mount_made_anew_does_not_wait_for_the_call_that_hangs_in_the_old_one(
    nas: StallingMount, tmp_path: Path, disk: Path
) -> None:
    one = collector(timeout=HANG_LIMIT_SECONDS)
    nas.hang()
    assert at(one.collect(), nas.point).hung_since is not None
    run("umount", "--lazy", nas.point)
    with mounted(nas.point, "--bind", disk):
        run("umount", disk)
        fact = at(one.collect(), nas.point)
        run("mount", "--bind", nas.point, disk)  # undone by the fixture
    assert (fact.hung_since, fact.fstype) == (None, "ext4")


def test_many_that_hang_at_once_do_not_use_up_the_time_of_the_pass(tmp_path: Path) -> None:
    with stalling_mount(tmp_path, "a") as first, stalling_mount(tmp_path, "b") as second:
        first.hang()
        second.hang()
        one = DiskCollector(node_paths(), lambda: (), clock=_FastClock(), per_mount_timeout=60.0)
        began = time.monotonic()
        facts = one.collect()
        assert time.monotonic() - began < 60
        assert at(facts, first.point).hung_since is not None
        assert at(facts, second.point).hung_since is not None
        assert facts[0].size_bytes is not None


class _FastClock:
    """A clock that advances three seconds per reading: the budget of a pass is spent at once."""

    def __init__(self) -> None:
        self._now = 0.0

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        self._now += 3.0
        return self._now


def recorded(tmp_path: Path, *lines: str) -> DiskCollector:
    """Collector for a node with these mounts, all invisible below its root."""
    (tmp_path / "proc" / "1").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc" / "1" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "root" / "data").mkdir(parents=True, exist_ok=True)
    return DiskCollector(node_paths(proc=str(tmp_path / "proc"), rootfs=str(tmp_path / "root")), lambda: ())


def test_a_mount_that_the_agent_does_not_see_has_no_figures_rather_than_anothers(tmp_path: Path) -> None:
    one = recorded(tmp_path, "27 1 0:50 / / rw - overlay overlay rw", "30 27 8:77 / /data rw - ext4 /dev/sde13 rw")
    root, data = one.collect()
    assert root.size_bytes is not None
    assert root.roles == ("system",)
    assert data.size_bytes is None
    assert data.error == "not visible to the agent: hidden by another mount, or not propagated to its container"


def test_a_mount_that_cannot_be_looked_at_leaves_the_others_alone(tmp_path: Path) -> None:
    one = recorded(tmp_path, "27 1 0:50 / / rw - overlay overlay rw", "30 27 0:51 / /gone rw - nfs4 nas:/x rw")
    root, gone = one.collect()
    assert (root.error, gone.error, gone.device) == (None, "No such file or directory", "nas:/x")


def test_too_many_disks_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = recorded(tmp_path, *(f"{n} 27 0:{n} / /d{n} rw - zfs pool/{n} rw" for n in range(300)))
    with caplog.at_level(logging.WARNING):
        assert [len(one.collect()) for _ in range(3)] == [256] * 3
    assert [record.message for record in caplog.records] == ["too many filesystems: 44 are omitted"]
