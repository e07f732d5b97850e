"""Teardown of labs, including crashed ones, with real processes and mounts but without a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.errors import LabError
from tests.lab.host import HostRecord, leftovers, restore
from tests.lab.lab import Lab, clear
from tests.lab.layout import Layout
from tests.lab.logs import tail
from tests.lab.mounts import mounts_below, unmount_below
from tests.lab.ports import Ports
from tests.lab.process import MARK, Process, is_running, marked, spawn, stop, this_process
from tests.lab.state import State, load, save
from tests.lab.teardown import tear_down
from tests.support import need, wait_until


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(tmp_path / "lab")
    layout.logs.mkdir(parents=True)
    yield layout
    stop(marked(layout.root), 1)
    unmount_below(layout.root)


def sleeper(layout: Layout, *, mark: bool = True) -> Process:
    environment = {MARK: str(layout.root)} if mark else {}
    return spawn("sleep", ["/bin/sleep", "60"], environment, layout.logs / "sleep.log")


def lab_state(owner: Process | None = None, **processes: Process) -> State:
    ports = Ports(*range(20001, 20008))
    return State(
        variant="1.20", ports=ports, token="t", gpu_ids=("GPU-a",), host=HostRecord(), owner=owner, processes=processes
    )


def gone() -> Process:
    return Process(name="gone", pid=os.getpid(), start_ticks=1)


def test_recorded_processes_and_the_directory_go(layout: Layout) -> None:
    recorded = sleeper(layout, mark=False)
    save(lab_state(kubelet=recorded), layout.state)
    tear_down(layout)
    wait_until(lambda: not is_running(recorded), 60, "the process has exited")
    assert not layout.root.exists()


@pytest.mark.parametrize("content", [pytest.param(None, id="no state"), pytest.param("{", id="half a state")])
def test_after_a_crash_the_marks_are_enough(layout: Layout, content: str | None) -> None:
    if content is not None:
        layout.state.write_text(content)
    process = sleeper(layout)
    tear_down(layout)
    wait_until(lambda: not is_running(process), 60, "the process has exited")
    assert not layout.root.exists()


def test_mounts_are_undone_before_anything_is_deleted(layout: Layout, tmp_path: Path) -> None:
    need(os.geteuid() == 0, "root, to mount")
    precious, point = tmp_path / "precious", layout.root / "kubelet"
    precious.mkdir()
    (precious / "file").write_text("not the lab's")
    point.mkdir()
    subprocess.run(["mount", "--bind", str(precious), str(point)], check=True, timeout=300)
    tear_down(layout)
    assert mounts_below(layout.root) == []
    assert not layout.root.exists()
    assert (precious / "file").read_text() == "not the lab's"


def test_ending_what_has_ended_does_nothing(layout: Layout) -> None:
    for _ in range(2):
        tear_down(layout)
    assert not layout.root.exists()


def test_what_stays_is_named(layout: Layout, tmp_path: Path) -> None:
    stays = tmp_path / "stays"
    stays.mkdir()
    (stays / "file").touch()
    record = HostRecord(sysctls={}, cgroups=(str(stays),))
    restore(record, layout)
    assert leftovers(record) == [f"file {stays}"]


def test_only_what_was_not_there_before_is_removed(layout: Layout, tmp_path: Path) -> None:
    ours, theirs, used = tmp_path / "ours", tmp_path / "theirs", tmp_path / "used"
    for path in (ours, theirs, used):
        path.mkdir()
    (used / "file").touch()
    (tmp_path / "socket").touch()
    record = HostRecord(files=(str(tmp_path / "socket"),), directories=(str(ours), str(used)))
    restore(record, layout)
    assert leftovers(record) == []
    assert sorted(os.listdir(tmp_path)) == ["lab", "theirs", "used"]


def test_state_survives_saving_and_loading(layout: Layout) -> None:
    state = lab_state(owner=this_process(), etcd=gone())
    save(state, layout.state)
    assert load(layout.state) == state
    assert layout.state.stat().st_mode & 0o077 == 0, "it holds a token"


def test_no_state_and_no_states_file(layout: Layout) -> None:
    assert load(layout.state) is None
    layout.state.write_text('{"ports": 1}')
    with pytest.raises(LabError, match="not the state of a lab"):
        load(layout.state)


@pytest.mark.parametrize(
    ("owner", "alive", "refused"),
    [
        pytest.param(None, True, True, id="runs until somebody says down"),
        pytest.param(this_process(), True, True, id="belongs to a test run that goes on"),
        pytest.param(gone(), True, False, id="belongs to a test run that is gone"),
        pytest.param(None, False, False, id="its processes are gone"),
    ],
)
def test_a_lab_that_runs_is_not_taken_over_a_crashed_one_is_cleared(
    layout: Layout, owner: Process | None, alive: bool, refused: bool
) -> None:
    process = sleeper(layout) if alive else gone()
    save(lab_state(owner=owner, etcd=process), layout.state)
    if refused:
        with pytest.raises(LabError, match="a lab runs in"):
            clear(layout)
    else:
        clear(layout)
    assert layout.root.exists() == refused
    wait_until(lambda: is_running(process) == refused, 60, "the process of a cleared lab has exited")


def test_a_directory_that_is_not_a_labs_is_left_alone(layout: Layout) -> None:
    (layout.root / "thesis.tex").touch()
    with pytest.raises(LabError, match="something else"):
        clear(layout)
    assert (layout.root / "thesis.tex").exists()


def test_there_is_no_lab_to_attach_to() -> None:
    with pytest.raises(LabError, match="no lab runs"):
        Lab.attach(Path("/does/not/exist"))


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log) == "    (empty)"
    log.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert tail(log, 2) == "    line 4998\n    line 4999"
