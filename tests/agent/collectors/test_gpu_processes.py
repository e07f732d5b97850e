"""Processes on GPUs: real ones, and a recorded /proc for states that are hard to produce."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.gpu import GpuDriverError, StaleSessionError
from monitor.facts import GpuProcessFact
from tests.nvml import NOT_AVAILABLE, UNKNOWN, InProcessNvml
from tests.support import wait_until
from tests.support.clock import FakeClock

pytest_plugins = ["tests.nvml.fixtures"]
BOOTED_AT = 1_699_000_000
NOW = 1_700_000_000.0
CONTAINER = "3e74f50a5136e4a1a4c3bc3b0ac5bb2ae8a8d9d1eef0e5b7a9d04f4f1f1a2b3c"
POD = "045b1e35-7f13-11e7-ac42-0050568ffca0"
CGROUP = f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope\n"
# Recorded on Debian 12 (Linux 6.1), from a process started 1000 ticks after boot.
STAT = "{pid} ({name}) {state} 1 1 1 0 -1 4194560 " + "1 " * 10 + "0 0 {started} " + "1 " * 30


class Proc:
    """A /proc with the processes of a test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "stat").write_text(f"cpu  1 2 3\nbtime {BOOTED_AT}\n")

    def put(self, pid: int, state: str, *, name: str = "python", started: int = 1000, cgroup: str = CGROUP) -> None:
        (self.root / str(pid)).mkdir(exist_ok=True)
        (self.root / str(pid) / "stat").write_text(STAT.format(pid=pid, name=name, state=state, started=started))
        (self.root / str(pid) / "cgroup").write_text(cgroup)

    def remove(self, pid: int) -> None:
        for name in ("stat", "cgroup"):
            (self.root / str(pid) / name).unlink()
        (self.root / str(pid)).rmdir()


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_process_comes_through_whole(nvml: InProcessNvml, proc: Proc) -> None:
    nvml.gpu(2, uuid="GPU-2")
    nvml.process(2, 1234, 5 << 30)
    proc.put(1234, "R", name="a (b) c")
    ticks = os.sysconf("SC_CLK_TCK")
    assert GpuProcessesCollector(str(proc.root), FakeClock(NOW)).collect() == (
        GpuProcessFact(
            gpu_uuid="GPU-2",
            pid=1234,
            kind="compute",
            memory_bytes=5 << 30,
            name="a (b) c",
            state="R",
            state_since=NOW,
            started_at=BOOTED_AT + 1000 / ticks,
            uid=os.geteuid(),
            container_id=CONTAINER,
            pod_uid=POD,
        ),
    )


def test_no_processes_is_known_to_be_none(nvml: InProcessNvml) -> None:
    assert GpuProcessesCollector("/proc").collect() == ()


def test_one_process_on_two_cards_and_in_two_lists(nvml: InProcessNvml, proc: Proc) -> None:
    proc.put(7, "S")
    for gpu in (0, 5):
        nvml.process(gpu, 7, 10 + gpu, "compute")
        nvml.process(gpu, 7, 20 + gpu, "graphics")
    facts = GpuProcessesCollector(str(proc.root)).collect()
    assert [(fact.kind, fact.memory_bytes) for fact in facts] == [("compute", 10), ("compute", 15)]
    assert len({fact.gpu_uuid for fact in facts}) == 2


def test_unknown_memory_is_not_0(nvml: InProcessNvml, proc: Proc) -> None:
    proc.put(7, "S")
    nvml.process(0, 7, NOT_AVAILABLE)
    assert [fact.memory_bytes for fact in GpuProcessesCollector(str(proc.root)).collect()] == [None]


def test_a_state_lasts_from_when_it_was_first_seen(nvml: InProcessNvml, proc: Proc) -> None:
    clock = FakeClock(NOW)
    collector = GpuProcessesCollector(str(proc.root), clock)
    nvml.process(0, 7)
    steps = [  # state, start time of the process, expected start of the state
        ("S", 1000, 0),
        ("D", 1000, 10),
        ("D", 1000, 10),
        ("R", 1000, 30),
        ("D", 1000, 40),
        ("D", 2000, 50),  # another process with the same pid
        ("Z", 2000, 60),
    ]
    for state, started, since in steps:
        proc.put(7, state, started=started)
        (fact,) = collector.collect()
        assert (fact.state, fact.state_since) == (state, NOW + since)
        clock.advance(10)


def test_a_process_that_proc_no_longer_has_is_gone_and_still_known(nvml: InProcessNvml, proc: Proc) -> None:
    clock = FakeClock(NOW)
    collector = GpuProcessesCollector(str(proc.root), clock)
    nvml.process(0, 7)
    proc.put(7, "R")
    (before,) = collector.collect()
    proc.remove(7)
    clock.advance(10)
    for _ in range(2):
        (after,) = collector.collect()
        assert (after.state, after.state_since) == ("gone", NOW + 10)
        assert (after.name, after.pod_uid, after.started_at) == (before.name, POD, before.started_at)
        clock.advance(10)
    nvml.end_process(0, 7)
    assert collector.collect() == ()
    nvml.process(0, 7)  # forgotten in the meantime: a pid alone identifies nothing
    (fact,) = collector.collect()
    assert (fact.state, fact.state_since, fact.name, fact.pod_uid) == ("gone", NOW + 30, None, None)


def test_the_owner_is_read_once_and_outlives_the_process(nvml: InProcessNvml, proc: Proc) -> None:
    """The kernel shows a zombie in the root cgroup (v1): the owner read earlier is still right."""
    collector = GpuProcessesCollector(str(proc.root))
    nvml.process(0, 7)
    proc.put(7, "R")
    collector.collect()
    proc.put(7, "Z", cgroup="0::/\n")
    (fact,) = collector.collect()
    assert (fact.state, fact.container_id, fact.pod_uid) == ("Z", CONTAINER, POD)


def test_an_owner_that_could_not_be_read_is_tried_again(nvml: InProcessNvml, proc: Proc) -> None:
    collector = GpuProcessesCollector(str(proc.root))
    nvml.process(0, 7)
    proc.put(7, "R")
    (proc.root / "7" / "cgroup").unlink()
    assert [fact.pod_uid for fact in collector.collect()] == [None]
    proc.put(7, "R")
    assert [fact.pod_uid for fact in collector.collect()] == [POD]


def test_real_processes_that_run_die_and_go(nvml: InProcessNvml, sleeper: subprocess.Popen[bytes]) -> None:
    collector = GpuProcessesCollector("/proc")
    nvml.process(0, sleeper.pid)
    wait_until(lambda: collector.collect()[0].state == "S", 30, "the process sleeps")
    (fact,) = collector.collect()
    assert (fact.name, fact.uid) == ("sleep", os.geteuid())
    sleeper.kill()  # not reaped: a zombie that still holds the GPU
    wait_until(lambda: collector.collect()[0].state == "Z", 30, "the process is a zombie")
    (zombie,) = collector.collect()
    assert (zombie.name, zombie.started_at) == ("sleep", fact.started_at)
    sleeper.wait()
    assert [fact.state for fact in collector.collect()] == ["gone"]


def test_processes_of_mig_instances(nvml: InProcessNvml, proc: Proc) -> None:
    uuid = nvml.mig(0, 3, 0, "1g.10gb", total=10 << 30)
    nvml.process(0, 7, gpu_instance=3, compute_instance=0)
    proc.put(7, "S")
    nvml.gpu(0, uuid="GPU-0")
    assert [(f.gpu_uuid, f.mig_uuid) for f in GpuProcessesCollector(str(proc.root)).collect()] == [("GPU-0", uuid)]


def test_a_card_in_trouble_loses_its_list_and_no_other(nvml: InProcessNvml, proc: Proc) -> None:
    collector = GpuProcessesCollector(str(proc.root))
    for gpu in range(8):
        proc.put(100 + gpu, "S")
        nvml.process(gpu, 100 + gpu)
    assert len(collector.collect()) == 8
    nvml.lose(1)
    for version in ("_v2", "_v3"):
        nvml.answer(f"nvmlDeviceGetComputeRunningProcesses{version}", UNKNOWN, gpu=2)
    assert [fact.pid for fact in collector.collect()] == [100, 103, 104, 105, 106, 107]
    assert collector.warning == "no process list from GPU 2"


@pytest.mark.parametrize("lost", ["before the start", "afterwards"])
def test_when_no_card_tells_nothing_is_known(nvml: InProcessNvml, lost: str) -> None:
    nvml.gpus(1)
    clock = FakeClock()
    collector = GpuProcessesCollector("/proc", clock)
    if lost == "afterwards":
        assert collector.collect() == ()
    nvml.lose(0)
    for _ in range(2):
        with pytest.raises(GpuDriverError, match="no GPU lists its processes"):
            collector.collect()
        clock.advance(60)
    nvml.find(0)
    assert collector.collect() == ()


def test_a_driver_without_cards_has_no_processes(nvml: InProcessNvml) -> None:
    nvml.gpus(0)
    assert GpuProcessesCollector("/proc").collect() == ()


def test_without_a_driver_and_after_a_new_one(nvml: InProcessNvml, proc: Proc) -> None:
    nvml.unload_driver()
    collector = GpuProcessesCollector(str(proc.root))
    with pytest.raises(AbsentError, match="no NVIDIA driver on this node"):
        collector.collect()
    nvml.load_driver()
    nvml.process(0, 7)
    proc.put(7, "S")
    assert len(collector.collect()) == 1
    nvml.reload_driver()
    with pytest.raises(StaleSessionError):
        collector.collect()
    assert len(collector.collect()) == 1
