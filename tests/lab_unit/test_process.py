"""Lab processes, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.lab.process import MARK, Process, is_running, marked, send, spawn, stop, this_process
from tests.support import wait_until

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


class Spawner:
    """Starts shell commands that carry the lab's marker, and kills all of them at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: list[Process] = []

    def __call__(self, command: str) -> Process:
        environment = {"PATH": os.environ["PATH"], MARK: str(self.root)}
        self.started.append(spawn("sh", ["/bin/sh", "-c", command], environment, self.root / "log"))
        return self.started[-1]

    def log(self) -> str:
        return (self.root / "log").read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Spawner]:
    spawner = Spawner(tmp_path)
    yield spawner
    assert stop(marked(tmp_path), 0.5) == []
    stop(spawner.started, 0.5)


def test_output_and_errors_go_to_the_log(start: Spawner) -> None:
    ended = start("echo out; echo err >&2")
    wait_until(lambda: not is_running(ended), 5, "the command to end")
    assert sorted(start.log().split()) == ["err", "out"]


def test_it_lives_in_a_session_of_its_own(start: Spawner) -> None:
    pid = start("exec sleep 60").pid
    assert os.getsid(pid) == pid


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        spawn("nothing", ["/does/not/exist"], {}, tmp_path / "log")


def test_all_are_asked_to_end(start: Spawner) -> None:
    both = [start("exec sleep 60"), start("exec sleep 60")]
    assert all(map(is_running, both))
    assert stop(both, 5) == []
    assert not any(map(is_running, both))


def test_one_that_will_not_end_is_killed(start: Spawner) -> None:
    stubborn = start(STUBBORN)
    wait_until(lambda: "ready" in start.log(), 5, "the trap")
    assert stop([stubborn], 0.2) == []
    assert not is_running(stubborn)


def test_another_process_with_the_same_pid_is_left_alone(start: Spawner) -> None:
    real = start("exec sleep 60")
    earlier = msgspec.structs.replace(real, start_ticks=real.start_ticks - 1)
    assert not is_running(earlier)
    send(earlier, signal.SIGKILL)
    assert stop([earlier], 0.2) == []
    assert is_running(real)


def test_this_process_runs() -> None:
    assert is_running(this_process())


def test_marked_finds_what_carries_the_mark_and_all_it_started(start: Spawner) -> None:
    parent = start("env -i sleep 61 & sleep 62 & echo started; wait")
    names = ["sh", "sleep", "sleep"]  # between fork and exec a child has its parent's command line
    wait_until(lambda: sorted(found.name for found in marked(start.root)) == names, 10, "both children")
    assert parent.pid in {found.pid for found in marked(start.root)}


def test_the_mark_of_another_lab_is_not_ours(start: Spawner) -> None:
    start("exec sleep 60")
    assert marked(start.root / "longer") == []
    assert marked(start.root.parent) == []
