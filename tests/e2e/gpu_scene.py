"""A real node with an agent, and the daemon that watches it; only the driver is fake."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from monitor.facts.cluster import ClusterView, GpuView
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.filesystems import stalling_mount

FAST = ("gpu", "gpu_processes", "xid", "pod_devices", "containers")


@dataclass
class GpuScene:
    """A node with an agent, and the daemon that watches it."""

    lab: Lab
    nvml: FakeNvml
    agent: subprocess.Popen[str]
    page: str
    pods: list[Any] = field(default_factory=list)

    def view(self) -> ClusterView:
        return msgspec.json.decode(get(f"{self.page}/v1/view")[2], type=ClusterView)

    def card(self, uuid: str) -> GpuView:
        return next(gpu for gpu in self.view().gpus if gpu.uuid == uuid)

    def becomes(self, uuid: str, state: str, because: str | None = None, limit: float = 30) -> GpuView:
        """Wait until a GPU is in a state for a reason, and return its view."""
        wait_until(lambda: self.card(uuid).state.value == state, limit, f"{uuid} is {state}")
        card = self.card(uuid)
        assert because in (None, *(evidence.key for evidence in card.evidence)), card
        return card

    def cards_of(self, pod: Any) -> list[str]:
        """GPUs the kubelet assigned to a pod, once the daemon knows them."""
        uid = pod.metadata.uid

        def found() -> list[str]:
            gpus = self.view().gpus
            return [g.uuid or "" for g in gpus if any(h.pod_uid == uid and "pod-resources" in h.by for h in g.holders)]

        wait_until(found, 30, f"the cards of {pod.metadata.name} are known")
        return found()


@contextmanager
def gpu_scene(lab: Lab, directory: Path, idle_after: str = "30m") -> Iterator[GpuScene]:
    """Agent and daemon on the lab's node with eight free GPUs; pods of the scene are deleted on exit."""
    limits = {
        "stale_after": "5s",
        "wedged_after": "2s",
        "settle": "3s",
        "terminating_grace": "5s",
        "idle_after": idle_after,
    }
    nvml = FakeNvml(directory / "nvml", gpus=8)
    for index, uuid in enumerate(lab.gpu_ids):
        nvml.gpu(index, uuid=uuid)
    agent_port, page_port = free_port(), free_port()
    environ = quiet_environment(
        directory / "state",
        AGENT__LISTEN=f"127.0.0.1:{agent_port}",
        AGENT__NODE_NAME="gpu-01",
        **lab.agent_settings(),
        DAEMON__LISTEN=f"127.0.0.1:{page_port}",
        DAEMON__CYCLE="1s",
        DAEMON__AGENTS__STATIC=f"['127.0.0.1:{agent_port}']",
        DAEMON__AGENTS__INTERVAL="500ms",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(lab.kubeconfig),
        DAEMON__GPU=json.dumps(limits),
        **{f"AGENT__COLLECTORS__{name.upper()}": "{interval: 500ms, limit: 5s}" for name in FAST},
    )
    with ExitStack() as stack:
        agent = stack.enter_context(running(command("agent"), environ | nvml.environment(), stdout=subprocess.DEVNULL))
        stack.enter_context(running(command("daemon"), environ, stdout=subprocess.DEVNULL))
        scene = GpuScene(lab, nvml, agent, f"http://127.0.0.1:{page_port}")
        wait_until(lambda: answers(scene), 20, "the daemon sees eight free cards")
        yield scene
        if not lab.running()["kubelet"]:
            lab.start_component("kubelet")
        lab.delete_pods(*scene.pods)


def answers(scene: GpuScene) -> bool:
    try:
        return [gpu.state.value for gpu in scene.view().gpus] == ["free"] * 8
    except OSError:
        return False


def free_card(scene: GpuScene) -> str:
    """UUID of a free GPU, the last one."""
    return next(gpu.uuid or "" for gpu in reversed(scene.view().gpus) if gpu.state.value == "free")


@contextmanager
def process_in_d(directory: Path) -> Iterator[int]:
    """A real process that was killed and cannot exit: it is blocked in a filesystem that does not respond."""
    with stalling_mount(directory) as nas:
        nas.hang()
        process = subprocess.Popen(["stat", "-f", str(nas.point)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(
                lambda: "fuse" in _wait_of(process.pid) or "request_wait" in _wait_of(process.pid), 10, "it waits"
            )
            process.terminate()
            wait_until(lambda: _state_of(process.pid) == "D", 10, "the process waits in D")
            yield process.pid
        finally:
            nas.release()
            process.wait(60)


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _wait_of(pid: int) -> str:
    return Path(f"/proc/{pid}/wchan").read_text()


def expect_unknown_while_stopped(scene: GpuScene) -> None:
    """Stop the agent, expect all GPUs to be unknown, and known again once it continues."""
    scene.agent.send_signal(signal.SIGSTOP)
    try:
        stopped = time.time()
        wait_until(lambda: {g.state.value for g in scene.view().gpus} == {"unknown"}, 30, "all cards are unknown")
        node = scene.view().nodes[0]
        assert node.silent_since is not None
        assert stopped - 5 < node.silent_since < time.time()
    finally:
        scene.agent.send_signal(signal.SIGCONT)
    wait_until(lambda: "unknown" not in {g.state.value for g in scene.view().gpus}, 30, "all are known again")
