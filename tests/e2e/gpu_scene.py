"""A real node with an agent, and the daemon that watches it; only the driver is fake."""

from __future__ import annotations

import subprocess
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
def gpu_scene(lab: Lab, directory: Path) -> Iterator[GpuScene]:
    """Agent and daemon on the lab's node with eight free GPUs; pods of the scene are deleted on exit."""
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
        DAEMON__GPU="{stale_after: 5s, wedged_after: 2s, settle: 3s, terminating_grace: 5s}",
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
