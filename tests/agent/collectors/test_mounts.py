"""Expected mounts: real ones that are missing, hung, read-only, stale, full or frozen."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.mounts import MountsCollector
from monitor.agent.settings import ExpectedMount
from monitor.facts import MountFact
from tests.support import HANG_LIMIT_SECONDS, wait_until
from tests.support.clock import FakeClock
from tests.support.filesystems import StallingMount, ext4_disk, fill, mounted, node_paths, run, stalling_mount

TEST_FILE = f".gpuwarden-write-test-{os.uname().nodename}"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path) as point:
        yield point


@pytest.fixture
def nas(tmp_path: Path) -> Iterator[StallingMount]:
    with stalling_mount(tmp_path) as mount:
        yield mount


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def expect(path: Path | str, writable: bool = True, write_test: bool = False) -> ExpectedMount:
    return ExpectedMount(path=str(path), writable=writable, write_test=write_test)


def collector_of(*expected: ExpectedMount, clock: FakeClock | None = None) -> MountsCollector:
    return MountsCollector(node_paths(), expected, clock or FakeClock(), per_mount_timeout=HANG_LIMIT_SECONDS)


def only(collector: MountsCollector) -> MountFact:
    (fact,) = collector.collect()
    return fact


def test_none_expected_is_absent() -> None:
    with pytest.raises(AbsentError, match=r"list them under agent\.mounts"):
        collector_of().collect()


def test_a_mount_that_is_fine(disk: Path) -> None:
    fact = only(MountsCollector(node_paths(), (expect(disk, write_test=True),)))
    assert (fact.path, fact.state, fact.error) == (str(disk), "ok", None)
    assert fact.latency_seconds is not None
    assert 0 < fact.latency_seconds < HANG_LIMIT_SECONDS
    assert fact.since == pytest.approx(time.time(), abs=60)
    assert [name for name in os.listdir(disk) if name != "lost+found"] == []


def test_facts_come_in_the_order_of_the_configuration(disk: Path, tmp_path: Path) -> None:
    facts = collector_of(expect("/nonexistent"), expect(f"{disk}/"), expect(tmp_path)).collect()
    assert [(fact.path, fact.state) for fact in facts] == [
        ("/nonexistent", "missing"),
        (f"{disk}/", "ok"),
        (str(tmp_path), "missing"),  # the directory exists, but nothing is mounted on it
    ]


def test_a_mount_that_goes_missing_and_comes_back_says_since_when(tmp_path: Path, clock: FakeClock) -> None:
    point = tmp_path / "share"
    point.mkdir()
    one = collector_of(expect(point), clock=clock)
    start = clock.time()
    seen = []
    for mount_it in (False, False, True, True, False):
        with mounted(point, "-t", "tmpfs", "tmpfs") if mount_it else contextlib.nullcontext():
            fact = only(one)
        seen.append((fact.state, fact.since - start))
        clock.advance(30)
    assert seen == [("missing", 0), ("missing", 0), ("ok", 60), ("ok", 60), ("missing", 120)]


# name, mount options, expectation, state
READ_ONLY: list[tuple[str, str, dict[str, bool], str]] = [
    ("read-only", "ro", {}, "read-only"),
    ("read-only, and would be tried", "ro", {"write_test": True}, "read-only"),
    ("read-only as it should be", "ro", {"writable": False}, "ok"),
    ("not to be written to, so not tried", "ro", {"writable": False, "write_test": True}, "ok"),
    ("writable", "rw", {}, "ok"),
]


@pytest.mark.parametrize(
    ("options", "expectation", "state"), [row[1:] for row in READ_ONLY], ids=[row[0] for row in READ_ONLY]
)
def test_read_only(disk: Path, options: str, expectation: dict[str, bool], state: str) -> None:
    run("mount", "-o", f"remount,{options}", disk)
    assert only(collector_of(expect(disk, **expectation))).state == state


def test_a_mount_that_hangs_leaves_the_others_alone_and_one_thread_behind(
    nas: StallingMount, disk: Path, clock: FakeClock
) -> None:
    one = collector_of(expect(nas.point), expect(disk, write_test=True), clock=clock)
    assert [fact.state for fact in one.collect()] == ["ok", "ok"]
    nas.hang()
    clock.advance(30)
    since = clock.time()
    one.collect()
    threads = threading.active_count()
    for _ in range(50):
        clock.advance(30)
        hung, fine = one.collect()
        assert (hung.state, hung.since, hung.latency_seconds) == ("hung", since, None)
        assert (fine.state, fine.since) == ("ok", since - 30)
    assert threading.active_count() <= threads
    nas.release()
    wait_until(lambda: one.collect()[0].state == "ok", 30, "the NAS is back")
    assert one.collect()[0].since == clock.time()


# name, errno of the server, state, error
ERRORS: list[tuple[str, int, str, str]] = [
    ("the export was replaced", errno.ESTALE, "stale", "Stale file handle"),
    ("the server has trouble", errno.EIO, "failing", "Input/output error"),
    ("we may not", errno.EACCES, "failing", "Permission denied"),
]


@pytest.mark.parametrize(("error", "state", "text"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_of_the_server(nas: StallingMount, error: int, state: str, text: str) -> None:
    nas.fail(error)
    fact = only(collector_of(expect(nas.point)))
    assert (fact.state, fact.error) == (state, text)


def test_a_server_that_died(nas: StallingMount) -> None:
    nas.die()
    fact = only(collector_of(expect(nas.point)))
    assert (fact.state, fact.error) == ("failing", "Transport endpoint is not connected")


def test_the_write_test_finds_a_disk_that_is_full(disk: Path) -> None:
    fill(disk)
    assert only(collector_of(expect(disk))).state == "ok"
    fact = only(collector_of(expect(disk, write_test=True)))
    assert (fact.state, fact.error) == ("failing", "No space left on device")
    assert TEST_FILE not in os.listdir(disk)


def test_the_write_test_finds_a_disk_that_answers_but_does_not_write(disk: Path) -> None:
    reading, writing = collector_of(expect(disk)), collector_of(expect(disk, write_test=True))
    run("fsfreeze", "--freeze", disk)
    try:
        assert only(reading).state == "ok"
        assert [only(writing).state for _ in range(3)] == ["hung"] * 3
    finally:
        run("fsfreeze", "--unfreeze", disk)
    wait_until(lambda: only(writing).state == "ok", 30, "it is writable again")
    assert TEST_FILE not in os.listdir(disk)


@pytest.mark.parametrize("planted", ["symlink", "hard link", "left over"])
def test_the_write_test_never_writes_into_what_is_already_there(disk: Path, planted: str) -> None:
    victim = disk / "thesis.tex"
    victim.write_text("years of work")
    trap = disk / TEST_FILE
    if planted == "symlink":
        trap.symlink_to(victim)
    elif planted == "hard link":
        trap.hardlink_to(victim)
    else:
        trap.write_text("of an agent that was killed")
    assert only(collector_of(expect(disk, write_test=True))).state == "ok"
    assert victim.read_text() == "years of work"
    assert not os.path.lexists(trap)


def test_a_link_to_a_mount_will_do(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "share").symlink_to(disk)
    (tmp_path / "dangling").symlink_to("/nonexistent")
    facts = collector_of(expect(tmp_path / "share"), expect(tmp_path / "dangling")).collect()
    assert [fact.state for fact in facts] == ["ok", "missing"]


def recorded(root: Path, *lines: str) -> MountsCollector:
    """Collector for a node with these mounts, all invisible below its root."""
    (root / "proc" / "1").mkdir(parents=True)
    (root / "proc" / "1" / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    (root / "node" / "mnt" / "share").mkdir(parents=True)
    paths = node_paths(proc=str(root / "proc"), rootfs=str(root / "node"))
    return MountsCollector(paths, (expect("/mnt/share", write_test=True),), FakeClock())


def test_what_the_automounter_has_not_mounted_is_missing(tmp_path: Path) -> None:
    assert only(recorded(tmp_path, "30 27 0:62 / /mnt/share rw - autofs systemd-1 rw")).state == "missing"


def test_a_mount_that_the_agent_does_not_see_is_not_written_to(tmp_path: Path) -> None:
    fact = only(recorded(tmp_path, "30 27 0:50 / /mnt/share rw - nfs4 nas:/share rw"))
    assert fact.state == "failing"
    assert fact.error is not None
    assert fact.error.startswith("not visible to the agent")


def test_without_mountinfo_it_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MountsCollector(node_paths(proc=str(tmp_path)), (expect("/mnt"),)).collect()
