"""Every GPU state in a real cluster: real pods, real processes, a real kubelet; only the driver is fake.

One scene in chronological order: agent and daemon run as processes, and each test examines the daemon's view of the
next GPU.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.facts.cluster import ClusterView, GpuView
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.filesystems import stalling_mount

GIB = 1 << 30
FAST = ("gpu", "gpu_processes", "xid", "pod_devices", "containers")


@dataclass
class Scene:
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


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("scene")
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
        scene = Scene(lab, nvml, agent, f"http://127.0.0.1:{page_port}")
        wait_until(lambda: answers(scene), 20, "the daemon sees eight free cards")
        yield scene
        if not lab.running()["kubelet"]:
            lab.start_component("kubelet")
        lab.delete_pods(*scene.pods)


def answers(scene: Scene) -> bool:
    try:
        return [gpu.state.value for gpu in scene.view().gpus] == ["free"] * 8
    except OSError:
        return False


def test_a_pod_with_two_gpus_is_busy_and_has_an_owner(scene: Scene) -> None:
    pod = scene.lab.run_pod("bert-0", gpus=2, labels={"userName": "li.lei"})
    scene.pods.append(pod)
    cards = scene.cards_of(pod)
    assert len(cards) == 2
    pid = scene.lab.container_pid(pod)
    for uuid in cards:
        index = scene.lab.gpu_ids.index(uuid)
        scene.nvml.process(index, pid, memory=20 * GIB)
        scene.nvml.gpu(index, util=90, memory_used=20 * GIB)
    for uuid in cards:
        wait_until(lambda uuid=uuid: pid in scene.card(uuid).pids, 20, "the process is seen")  # type: ignore[misc]  # mypy cannot infer the default
        card = scene.becomes(uuid, "busy", "held")
        (holder,) = card.holders
        assert (holder.pod, holder.user, holder.live) == ("bert-0", "li.lei", True)
        assert holder.by == ("pod-resources", "process")
        assert card.disagreements == ()
    node = scene.view().nodes[0]
    assert (node.requested, node.free, node.disagreements) == (2, 6, ())
    user = scene.view().users["li.lei"]
    assert (user.gpus, user.gpu_memory_bytes) == (2, 40 * GIB)


def test_a_host_process_is_an_orphan(scene: Scene) -> None:
    uuid = free_card(scene)
    with subprocess.Popen(["sleep", "600"]) as process:
        scene.nvml.process(scene.lab.gpu_ids.index(uuid), process.pid)
        scene.becomes(uuid, "orphan", "host-process")
        process.kill()
    scene.nvml.end_process(scene.lab.gpu_ids.index(uuid), process.pid)
    scene.becomes(uuid, "free")


def test_memory_without_a_process_is_a_ghost(scene: Scene) -> None:
    uuid = free_card(scene)
    scene.nvml.gpu(scene.lab.gpu_ids.index(uuid), memory_used=30 * GIB)
    scene.becomes(uuid, "ghost", "memory-without-process")
    scene.nvml.gpu(scene.lab.gpu_ids.index(uuid), memory_used=0)
    scene.becomes(uuid, "free")


def test_a_process_in_d_is_wedged(scene: Scene, tmp_path: Path) -> None:
    """A real process that was killed and cannot exit: it is blocked in a filesystem that does not respond."""
    uuid = free_card(scene)
    with stalling_mount(tmp_path) as nas:
        nas.hang()
        process = subprocess.Popen(["stat", "-f", str(nas.point)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: "fuse" in wait_of(process.pid) or "request_wait" in wait_of(process.pid), 10, "it waits")
            process.terminate()
            wait_until(lambda: state_of(process.pid) == "D", 10, "the process waits in D")
            scene.nvml.process(scene.lab.gpu_ids.index(uuid), process.pid)
            scene.becomes(uuid, "wedged", "process-state")
        finally:
            nas.release()
            process.wait(60)
    scene.nvml.end_process(scene.lab.gpu_ids.index(uuid), process.pid)
    scene.becomes(uuid, "free")


def test_a_lost_card_is_faulty(scene: Scene) -> None:
    uuid = free_card(scene)
    scene.nvml.lose(scene.lab.gpu_ids.index(uuid))
    scene.becomes(uuid, "faulty", "gpu-lost")
    scene.nvml.find(scene.lab.gpu_ids.index(uuid))
    scene.becomes(uuid, "free", limit=90)  # a driver session with a lost GPU restarts once a minute


def test_a_deleted_pod_whose_process_lives_on_is_a_zombie_and_its_idle_sister_a_phantom(scene: Scene) -> None:
    """The kubelet is down: containers of deleted pods keep running and their devices stay allocated."""
    sister = scene.lab.run_pod("sister", gpus=1)
    scene.pods.append(sister)
    (idle,) = scene.cards_of(sister)
    bert = scene.pods[0]
    cards = scene.cards_of(bert)
    scene.lab.kill_component("kubelet")
    # The kubelet's socket is stale; its checkpoint files remain.
    (scene.lab.kubelet_root / "pod-resources" / "kubelet.sock").unlink(missing_ok=True)
    for pod in (bert, sister):
        scene.lab.cluster.core.delete_namespaced_pod(
            pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0, _request_timeout=60
        )
    for uuid in cards:
        card = scene.becomes(uuid, "zombie", "pod-deleted")
        assert card.pids
    phantom = scene.becomes(idle, "phantom", "stale-allocation")
    assert [holder.by for holder in phantom.holders] == [("checkpoint",)]
    assert phantom.disagreements == ("allocation-of-missing-pod",)


def test_a_stopped_agent_leaves_its_cards_unknown(scene: Scene) -> None:
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


def free_card(scene: Scene) -> str:
    return next(gpu.uuid or "" for gpu in reversed(scene.view().gpus) if gpu.state.value == "free")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_of(pid: int) -> str:
    return Path(f"/proc/{pid}/wchan").read_text()
