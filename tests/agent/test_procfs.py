"""Processes, mostly real ones on this machine."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.procfs import BootTime, ProcessStat, parse_stat, read_boot_time, read_process
from tests.agent.children import child
from tests.support import need, wait_until

NOBODY_UID = 65534
PR_SET_DUMPABLE, PR_SET_NAME = 4, 15
# The fields after the name, recorded on Linux 6.1 from a sleeping process.
REST = b"1 1 1 0 -1 4194560 99 0 0 0 7 9 0 0 20 0 1 0 102406 3133440 359 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0"


def named(name: bytes) -> str:
    return f"ctypes.CDLL(None).prctl({PR_SET_NAME}, {name!r}, 0, 0, 0)"


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        pytest.param(b"python3", "python3", id="plain"),
        pytest.param(b"a b", "a b", id="space"),
        pytest.param(b"a) R 1 (b", "a) R 1 (b", id="looks like the end of the name"),
        pytest.param(b")))(((", ")))(((", id="only parentheses"),
        pytest.param(b"a\nb", "a\nb", id="line end"),
        pytest.param(b"train\xff\xfe", "train\ufffd\ufffd", id="not UTF-8"),
        pytest.param("训练".encode(), "训练", id="Chinese"),
        pytest.param(b"", "", id="empty"),
    ],
)
def test_names_of_real_processes(given_name: bytes, expected: str) -> None:
    with child(named(given_name)) as pid:
        process = read_process("/proc", pid)
    assert process is not None
    assert (process.pid, process.name) == (pid, expected)


def test_the_start_time_is_when_it_started() -> None:
    before = time.time()
    with child() as pid:
        after = time.time()
        process = read_process("/proc", pid)
    assert process is not None
    # btime has whole seconds only
    assert before - 1.1 <= process.started_at <= after + 1.1


def test_the_start_time_is_the_same_each_time() -> None:
    with child() as pid:
        readings = {process.started_at for _ in range(50) if (process := read_process("/proc", pid))}
    assert len(readings) == 1


def test_states() -> None:
    with child() as pid:
        wait_until(lambda: _state(pid) == "S", 30, "the child sleeps")
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: _state(pid) == "T", 30, "the child is stopped")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: _state(pid) == "Z", 30, "the child is a zombie")


def _state(pid: int) -> str | None:
    process = read_process("/proc", pid)
    return process.state if process else None


@pytest.mark.parametrize("dumpable", [True, False])
def test_the_user_is_known_even_when_the_process_is_not_dumpable(dumpable: bool) -> None:
    need(os.geteuid() == 0, "root")

    become_nobody = (
        f"os.setresuid(0, {NOBODY_UID}, 0); ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, {int(dumpable)}, 0, 0, 0)"
    )
    with child(become_nobody) as pid:
        owner_of_files = os.stat(f"/proc/{pid}/stat").st_uid
        process = read_process("/proc", pid)
    assert owner_of_files == (NOBODY_UID if dumpable else 0), "the case that this test is about"
    assert process is not None
    assert process.uid == NOBODY_UID


def test_none_when_there_is_no_such_process() -> None:
    with child() as pid:
        pass
    assert read_process("/proc", pid) is None


def test_none_when_it_exits_between_open_and_read(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("btime 1\n")
    (tmp_path / "7").mkdir()  # the directory still exists, its files do not
    assert read_process(str(tmp_path), 7) is None


def test_no_proc_at_all_is_not_mistaken_for_no_process(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="stat"):
        read_process(str(tmp_path), 1)


@pytest.mark.parametrize("stat", [b"", b"7", b"7 (x", b"7 (x)", b"7 (x) S 1 2", b"x (y) S " + REST])
def test_what_is_no_stat_is_refused(stat: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # with any message
        parse_stat(stat, 0, 0.0)


@given(pid=st.integers(1, 2**22), name=st.binary(max_size=15), state=st.sampled_from("RSDZTtXI"))
def test_any_name_is_read(pid: int, name: bytes, state: str) -> None:
    stat = b"%d (%s) %s %s\n" % (pid, name, state.encode(), REST)
    assert parse_stat(stat, 5, 1000.0) == ProcessStat(
        pid=pid,
        name=name.decode("utf-8", "replace"),
        state=state,
        started_at=1000.0 + 102406 / os.sysconf("SC_CLK_TCK"),
        uid=5,
    )


def test_the_boot_time_is_the_kernels() -> None:
    assert read_boot_time("/proc") == pytest.approx(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME), abs=2)


def test_the_boot_time_follows_a_clock_that_is_set(tmp_path: Path) -> None:
    offset = 1000.0
    boot = BootTime(lambda: offset)
    stat = tmp_path / "stat"

    def booted_at(btime: int) -> float:
        stat.write_text(f"cpu 1 2 3\nbtime {btime}\nprocesses 5\n")
        return boot.booted_at(str(tmp_path))

    assert booted_at(1000) == 1000
    offset = 1000.4
    assert booted_at(1001) == 1000, "a second's rounding must not move start times"
    offset = 8200.0
    assert booted_at(8200) == 8200, "the clock was set two hours ahead"


def test_a_boot_time_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu 1 2 3\n")
    with pytest.raises(ValueError, match="no btime"):
        read_boot_time(str(tmp_path))
