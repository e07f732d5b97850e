"""A lab node with almost every incident at once, an agent and a daemon."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from monitor.base.signing import RequestSigner, generate_keys
from monitor.cleanup.execute.agent_client import Access, ActionClient, AgentRefusesError, AgentTarget
from monitor.facts import GpuFact, NodeSnapshot
from monitor.facts.actions import ActionRequest, RemoveImage
from tests.e2e.add_ons import GPU, VOLCANO, add_ons
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until
from tests.support.action_keys import ActionKeys, write_keys
from tests.support.command import command, get, quiet_environment, run, running
from tests.support.filesystems import StallingMount, ext4_disk, fill, stalling_mount
from tests.support.filesystems import run as run_program
from tests.support.receivers.bots import WeComBot

NODE = "gpu-01"
ADDRESS = "127.80.0.1"  # of the agent; the simulation uses 127.81, so that all can share one port
READ_TOKEN, PAGE_TOKEN = "reads-metrics-of-agents", "reads-the-page-of-daemons"
GIB, MIB = 1 << 30, 1 << 20
COLLECTORS = (
    "host", "gpu", "gpu_processes", "xid", "pod_devices", "containers", "container_usage", "shm", "logs", "images",
    "runtime_usage", "disk", "disk_io", "kubelet", "mounts", "probes",
)  # fmt: skip
# Minutes in a real cluster are seconds here.
LIMITS = {"stale_after": "4s", "wedged_after": "2s", "settle": "2s", "idle_after": "2s", "terminating_grace": "5s"}
RULES = {
    "agent_silent": {"silent_after": "4s"},
    "gpu_ghost": {"after": "1s"},
    "gpu_hot": {"after": "1s"},
    "gpu_idle": {"warm_up": "1s", "warning_after": "2s", "notebook_warning_after": "2s"},
    "gpu_orphan": {"after": "1s"},
    "gpu_wedged": {"after": "1s"},
    "gpu_zombie": {"finished_after": "1s"},
    "mount_lost": {"after": "1s"},
    "pod_pending": {"waiting": "2s"},
    "service_down": {"after": "1s"},
}
# Fills its shared memory and writable layer, is throttled by its CPU limit, and writes logs.
TRAIN = (
    "dd if=/dev/zero of=/dev/shm/batch bs=1M count=62; dd if=/dev/zero of=/checkpoint bs=1M count=4;"
    " while :; do i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; echo step; done"
)
XIDS = (79, 48, 119, 74, 94, 999)  # one of each reported kind
THERMAL, POWER_BRAKE = 0x60, 0x80


@dataclass
class Node:
    """The node with incidents. `agent` and `page` are addresses."""

    lab: Lab
    nvml: FakeNvml
    nas: StallingMount
    disks: list[Path]
    agent: str
    page: str
    environ: dict[str, str]
    process: subprocess.Popen[str]
    signer: RequestSigner
    pods: list[Any] = field(default_factory=list)

    def snapshot(self) -> NodeSnapshot:
        headers = {"Authorization": f"Bearer {READ_TOKEN}"}
        return msgspec.json.decode(get(f"http://{self.agent}/v1/snapshot", headers)[2], type=NodeSnapshot)

    def card(self, index: int) -> GpuFact:
        """The agent's facts about a GPU."""
        inventory = self.snapshot().gpu
        assert inventory is not None
        return next(gpu for gpu in inventory.gpus if gpu.index == index)

    def xids(self) -> bool:
        """Whether the agent has seen all XIDs."""
        facts = self.snapshot().xid
        return facts is not None and {each.code for each in facts.counts} >= {*XIDS}

    def cards_of(self, pod: Any) -> list[int]:
        """GPUs the kubelet assigned to a pod, once the agent knows them."""

        def found() -> list[int]:
            ids = [each.device_id for each in self.snapshot().pod_devices or () if each.pod_uid == pod.metadata.uid]
            return sorted(map(self.lab.gpu_ids.index, ids))

        wait_until(found, 20, f"the cards of {pod.metadata.name} are known")
        return found()


def quick_agent(lab: Lab, directory: Path, port: int, mounts: list[str], keys: ActionKeys) -> dict[str, str]:
    """Environment of an agent on the lab's node that runs all collectors every second."""
    registries = [f"http://{lab.registry}", f"http://127.0.0.1:{free_port()}"]
    return quiet_environment(
        directory / "agent",
        AGENT__LISTEN=f"{ADDRESS}:{port}",
        AGENT__NODE_NAME=NODE,
        AGENT__TOKEN=READ_TOKEN,
        **lab.agent_settings(),
        AGENT__MOUNTS=yaml.safe_dump(mounts, default_flow_style=True),
        AGENT__REGISTRIES=yaml.safe_dump(registries, default_flow_style=True),
        AGENT__ACTIONS=keys.agent_actions(),
        **{f"AGENT__COLLECTORS__{name.upper()}": "{interval: 1s, limit: 2s}" for name in COLLECTORS},
    )


def daemon_settings(lab: Lab, agent: str, receivers: list[dict[str, str]], keys: ActionKeys) -> dict[str, Any]:
    """Settings of a daemon that watches the lab, notifies these receivers, and removes finished pods."""
    services = [("registry", f"http://{lab.registry}/v2/"), ("portal", f"http://127.0.0.1:{free_port()}/")]
    finished = {
        "kind": "pods", "name": "pods", "mode": "enforce", "announce": "0s", "cron": "0 0 29 2 *",
        "finished_after": "1s", "keep_newest": 0,
    }  # fmt: skip
    return {
        "cycle": "1s",
        "token": PAGE_TOKEN,
        "agents": {"static": [agent], "interval": "1s", "token": READ_TOKEN},
        "kubernetes": {"enabled": "yes", "kubeconfig": str(lab.kubeconfig)},
        "gpu": LIMITS,
        "rules": RULES,
        "services": [{"name": name, "url": url, "interval": "1s"} for name, url in services],
        "alerts": {"cluster": "lab", "receivers": receivers},
        "cleanup": {"agents": {"private_key_file": str(keys.private_file)}, "policies": [finished]},
    }


@contextmanager
def daemon(directory: Path, config: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Run a daemon; yields the address of its page and its environment."""
    address = f"127.0.0.1:{free_port()}"
    file = directory / "gpuwarden.yml"
    file.write_text(yaml.safe_dump({"log_level": "warning", "daemon": config}))
    environ = quiet_environment(
        directory / "daemon", CONFIG=str(file), DAEMON__LISTEN=address, DAEMON__KUBERNETES__ENABLED="yes"
    )
    log, environ["PYTHONFAULTHANDLER"] = directory / "daemon.log", "1"  # print a traceback on a crash
    with running(logged(log, *command("daemon")), environ, stdout=subprocess.DEVNULL) as process:
        yield address, environ
        assert process.poll() is None, f"the daemon has ended with {process.returncode}: {log.read_text()[-4000:]}"


def logged(file: Path, *line: str) -> list[str]:
    """Command line with stderr redirected to a file: an unread pipe would block it."""
    return ["sh", "-c", 'exec "$@" 2>"$0"', str(file), *line]


@contextmanager
def watched_node(lab: Lab, directory: Path, port: int) -> Iterator[Node]:
    """Run an agent and a daemon on the lab's node, with only a mount, a registry and a service failing."""
    with ExitStack() as stack:
        nas = stack.enter_context(stalling_mount(directory))
        stack.callback(nas.release)
        disks = [stack.enter_context(ext4_disk(directory, name)) for name in ("full", "many", "fills", "readonly")]
        nvml = FakeNvml(directory / "nvml", gpus=len(lab.gpu_ids))
        for index, uuid in enumerate(lab.gpu_ids):
            nvml.gpu(index, uuid=uuid, retired_known=1, links=4)
        bots = [stack.enter_context(WeComBot()) for _ in range(2)]
        bots[1].force = 93000  # this bot was removed from its group
        urls = {"wecom": bots[0].url, "revoked": bots[1].url, "dead": bots[0].url.replace(str(bots[0].port), "9")}
        receivers = [{"name": name, "kind": "wecom", "url": url} for name, url in urls.items()]
        stack.enter_context(add_ons(lab))
        keys = write_keys(directory)
        environ = quick_agent(lab, directory, port, ["/", str(nas.point), "/mnt/not-there"], keys)
        process = stack.enter_context(
            running(logged(directory / "agent.log", *command("agent")), environ | nvml.environment())
        )
        agent = f"{ADDRESS}:{port}"
        page, known = stack.enter_context(daemon(directory, daemon_settings(lab, agent, receivers, keys)))
        yield Node(lab, nvml, nas, disks, agent, page, known, process, keys.signer())


@contextmanager
def trouble(node: Node) -> Iterator[None]:
    """Start all lasting incidents."""
    fill_disks(node.disks)
    with running_pods(node), trouble_cards(node):
        act(node)
        try:
            yield
        finally:
            node.nas.release()  # otherwise the blocked process never exits


@contextmanager
def running_pods(node: Node) -> Iterator[None]:
    """Create running and failing pods on the node."""
    with Scene(node.lab, "scraped") as scene:
        node.pods = make_pods(node.lab, scene)
        try:
            yield
        finally:
            node.lab.delete_pods(*node.pods)


def make_pods(lab: Lab, scene: Scene) -> list[Any]:
    """Create the pods: a training job, an agent's pod, and those that never start or have ended."""
    scene.create("/apis/" + VOLCANO + "/queues", {
        "apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "vc-nlp"}, "spec": {"capability": {GPU: "8"}},
    })  # fmt: skip
    labels = {"FC_FRAMEWORK_NAME": "bert", "userName": "li.lei", "virtualCluster": "vc-nlp"}
    limits = {"limits": {GPU: "2", "cpu": "50m", "memory": "512Mi"}}
    trains = lab.run_pod(
        "bert-0", phase=None, labels=labels, command=("sh", "-c", TRAIN), container={"resources": limits}
    )
    own = lab.run_pod("gpuwarden-agent-x7k2p", phase=None, container={"name": "agent"})
    waits = lab.run_pod("waits", phase=None, gpus=9, labels=labels)
    no_image = lab.run_pod("no-image", phase=None, gpus=1, image=f"{lab.registry}/nlp/nothing:1", labels=labels)
    over = lab.run_pod("over", phase=None, command=("echo", "done"))
    lab.cluster.wait_for_phase(trains, "Running", 30)
    lab.cluster.wait_for_phase(over, "Succeeded", 30)
    return [trains, own, waits, no_image, over]


def fill_disks(disks: list[Path]) -> None:
    """Fill one disk, exhaust the inodes of the second, mostly fill the third, and remount the last read-only."""
    full, many, fills, readonly = disks
    fill(full)
    for disk, share in ((many, 0.96), (fills, 0.85)):
        for number in range(int(1024 * share)):
            (disk / f"f{number}").touch()
    (fills / "data").write_bytes(bytes(24 * MIB))
    run_program("mount", "-o", "remount,ro", readonly)


@contextmanager
def trouble_cards(node: Node) -> Iterator[None]:
    """One busy GPU, one idle, and every other with a different problem."""
    nvml, (works, idle) = node.nvml, node.cards_of(node.pods[0])
    orphan, ghost, wedged, lost, sick, hot = (index for index in range(8) if index not in (works, idle))
    nvml.gpu(works, util=97, memory_util=40, memory_used=40 * GIB, power_mw=330000, temperature=71)
    nvml.process(works, node.lab.container_pid(node.pods[0]), 40 * GIB)
    nvml.gpu(ghost, memory_used=30 * GIB, throttle=POWER_BRAKE)
    nvml.gpu(hot, throttle=THERMAL, temperature=93, pcie_replays=3)
    nvml.gpu(
        sick, volatile_uncorrected_dram=1, volatile_corrected_dram=2, remap_failed=1, remap_pending=1,
        retired_pending=1, recovery_action=1,
    )  # fmt: skip
    nvml.link(sick, 0, active=False, replay=2)
    for code in XIDS:
        nvml.xid(sick, code)
    wait_until(node.xids, 20, "the XIDs are heard: nobody hears any from a driver that is gone or has lost a card")
    nvml.reload_driver()  # GPU health is read once a minute, or with a new driver session
    wait_until(lambda: node.card(sick).recovery_action not in (None, "none"), 20, "the sick card is seen")
    nvml.lose(lost)
    node.nas.hang()
    with subprocess.Popen(["sleep", "600"]) as stranger, waiting_for(node.nas.point) as stuck:
        nvml.process(orphan, stranger.pid)
        nvml.process(wedged, stuck.pid)
        try:
            yield
        finally:
            stranger.kill()


@contextmanager
def waiting_for(hung: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was killed and cannot exit: it is blocked in a filesystem that does not respond."""
    process = subprocess.Popen(["stat", "-f", str(hung)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    where = Path(f"/proc/{process.pid}/wchan")
    wait_until(lambda: "fuse" in where.read_text() or "request_wait" in where.read_text(), 10, "it waits")
    process.terminate()
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)  # until the mount responds


def act(node: Node) -> None:
    """Let the agent perform and refuse actions, and run the policy."""
    now = time.time()
    image = RemoveImage(runtime=node.lab.engine.runtime, image_id=f"sha256:{'0' * 64}", min_age_seconds=0.0)
    request = ActionRequest(id="scraped-1", issued_at=now, expires_at=now + 60, policy="images", plan="p", action=image)
    agent = AgentTarget(NODE, node.agent)
    ActionClient(Access(node.signer), threading.Event()).submit(agent, request)
    with suppress(AgentRefusesError):
        ActionClient(Access(RequestSigner(generate_keys().private)), threading.Event()).submit(agent, request)
    answer = run("cleanup", "run", "pods", environ=node.environ)
    assert answer.returncode == 0, answer.stderr


def break_agent(node: Node) -> None:
    """Hang the driver and corrupt the kubelet's configuration, which only a new kubelet would read."""
    config = node.lab.kubelet_root / "config.yaml"
    if config.exists():
        config.rename(config.with_suffix(".kept"))
    config.write_text("{")
    node.nvml.hang()


def mend_agent(node: Node) -> None:
    node.nvml.release()
    config = node.lab.kubelet_root / "config.yaml"
    config.unlink(missing_ok=True)
    kept = config.with_suffix(".kept")
    if kept.exists():
        kept.rename(config)


def stop_agent(node: Node) -> None:
    """Make the agent unresponsive."""
    node.process.send_signal(signal.SIGSTOP)
