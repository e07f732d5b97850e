"""Killing a process on a GPU, and no other process. Real processes; GPUs of the fake NVML library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.agent.actions.processes import ProcessActions
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.procfs import read_process
from monitor.agent.runtime import Runtimes
from monitor.facts.actions import ActionState, KillProcess
from tests.nvml import InProcessNvml
from tests.support.engines import BASE, DockerEngine

pytest_plugins = ["tests.nvml.fixtures"]
GPU = "GPU-1"
NO_RUNTIMES = Runtimes("/nonexistent", ())


@contextmanager
def holder(nvml: InProcessNvml, program: str = "pass") -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses the GPU."""
    script = f"import os, signal\n{program}\nos.write(1, b'x')\nwhile True: signal.pause()"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"x"
            nvml.gpu(0, uuid=GPU)
            nvml.process(0, process.pid)
            yield process
        finally:
            process.kill()


def actions(runtimes: Runtimes = NO_RUNTIMES, proc: str = "/proc", min_grace: float = 0.0) -> ProcessActions:
    return ProcessActions(proc, runtimes, GpuProcessesCollector("/proc").collect, min_grace)


def kill_action(pid: int, grace: float = 5.0, gpu: str = GPU) -> KillProcess:
    stat = read_process("/proc", pid)
    assert stat is not None
    return KillProcess(pid=pid, started_at=stat.started_at, gpu=gpu, grace_seconds=grace)


def test_a_process_ends_by_term(nvml: InProcessNvml) -> None:
    with holder(nvml) as process:
        outcome = actions().kill(kill_action(process.pid))
        assert (outcome.state, outcome.code, outcome.message) == (ActionState.DONE, "killed", "by SIGTERM")
        assert process.wait(60) == -signal.SIGTERM


def test_one_that_does_not_listen_ends_by_kill(nvml: InProcessNvml) -> None:
    with holder(nvml, "signal.signal(signal.SIGTERM, signal.SIG_IGN)") as process:
        outcome = actions().kill(kill_action(process.pid, grace=0.2))
        assert (outcome.code, outcome.message) == ("killed", "by SIGKILL")
        assert process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("offset", [-0.02, 0.02, -3600.0, 3600.0])
def test_another_start_time_is_another_process(nvml: InProcessNvml, offset: float) -> None:
    with holder(nvml) as process:
        right = kill_action(process.pid)
        outcome = actions().kill(KillProcess(pid=right.pid, started_at=right.started_at + offset, gpu=GPU))
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "changed")
        assert process.poll() is None


def test_one_that_is_on_no_card_or_on_another(nvml: InProcessNvml) -> None:
    with holder(nvml) as process:
        assert actions().kill(kill_action(process.pid, gpu="GPU-2")).code == "changed"
        nvml.end_process(0, process.pid)
        assert actions().kill(kill_action(process.pid)).code == "changed"
        assert process.poll() is None


def test_one_that_is_gone(nvml: InProcessNvml) -> None:
    with holder(nvml) as process:
        action = kill_action(process.pid)
        process.kill()
        process.wait()
        assert actions().kill(action).code == "gone"


def test_a_proc_that_counts_other_pids(nvml: InProcessNvml, tmp_path: Path) -> None:
    with holder(nvml) as process:
        outcome = actions(proc=str(tmp_path)).kill(kill_action(process.pid))
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "unknown")
        assert "hostPID" in (outcome.message or "")
        assert process.poll() is None


def test_a_process_of_a_living_container_is_not_touched(nvml: InProcessNvml, docker_engine: DockerEngine) -> None:
    container = docker_engine.run(BASE, "/bin/sleep", "1000")
    try:
        pid = docker_engine.client.api.inspect_container(container.id)["State"]["Pid"]
        nvml.gpu(0, uuid=GPU)
        nvml.process(0, pid)
        outcome = actions(Runtimes(docker_engine.socket, ())).kill(kill_action(pid))
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "in-use")
        assert os.path.exists(f"/proc/{pid}")
        # The same process when the socket of its runtime is missing.
        outcome = actions().kill(kill_action(pid, grace=0.5))
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "unknown")
        assert os.path.exists(f"/proc/{pid}")
    finally:
        docker_engine.remove_containers()


def test_a_runtime_that_cannot_be_asked_is_a_reason(nvml: InProcessNvml, docker_engine: DockerEngine) -> None:
    container = docker_engine.run(BASE, "/bin/sleep", "1000")
    try:
        pid = docker_engine.client.api.inspect_container(container.id)["State"]["Pid"]
        nvml.gpu(0, uuid=GPU)
        nvml.process(0, pid)
        broken = Runtimes(docker_engine.socket, ())
        broken.present()[0].socket = str(docker_engine.base / "none")  # type: ignore[misc]  # as if it were down
        Path(docker_engine.base / "none").touch()
        outcome = actions(broken).kill(kill_action(pid))
        assert outcome.state is ActionState.FAILED
        assert os.path.exists(f"/proc/{pid}")
    finally:
        docker_engine.remove_containers()
