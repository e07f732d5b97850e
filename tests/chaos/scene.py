"""The whole product in the lab on its own disks, with every component that can be made to fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chaos.clock import Clock
from tests.chaos.images import MEGABYTES, POLICY, USED, Images
from tests.chaos.inbox import Forger, Hook
from tests.chaos.ledger import Ledger, Ours, Trouble
from tests.chaos.network import Cable, cable
from tests.chaos.page import HOOK, Page
from tests.chaos.programs import Program
from tests.e2e.small_disk import engine_on_small_disk
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.nvml import FakeNvml
from tests.support import free_port
from tests.support.action_keys import ActionKeys, write_keys
from tests.support.command import command, quiet_environment
from tests.support.filesystems import StallingMount, ext4_disk, stalling_mount
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import LocalServer

CABLED, FORGED = "gpu-02", "gpu-03"
NODES = (NODE, CABLED, FORGED)
CARDS = 2  # per node without a kubelet
SERVICES, DISKS = 8, 8  # each is in trouble at most three times: further recurrences count as flapping
QUICK = ("gpu", "gpu_processes", "pod_devices", "containers", "disk", "images", "mounts")
ELSEWHERE = ("disk", "disk_io", "shm", "images", "mounts", "logs")  # three agents on one machine see the same disks
SILENT_AFTER, DOWN_AFTER = 20.0, 8.0
START = 90.0  # seconds until the daemon must see everything for the first time
OVER = {"resolve_after": "3s"}
TOLD = ("agent_silent", "disk_full", "disk_filling", "gpu_zombie", "image_pull", "mount_lost", "service_down")
RULES = {
    "agent_silent": {"silent_after": SILENT_AFTER},
    "service_down": {"after": "2s", "overrides": [{"match": {"service": "kubernetes"}, "after": DOWN_AFTER}]},
    "gpu_zombie": {"finished_after": "3s"},
    "mount_lost": {"after": "3s"},
    "actions_refused": {"quiet": "10s"},  # with a wrong clock, the daemon's actions are too old or from the future
    "image_cache_large": {"share": 0.95},  # the disk holds only images, and cleanup thresholds are lower
    # These depend on the load of this shared machine.
    "disk_io_saturated": {"enabled": False},
    "shm_pressure": {"enabled": False},
    # Its log reports faults of a whole day, also those that tests provoked on other loop devices.
    "kernel_fault": {"enabled": False},
}


@dataclass
class Scene:
    """Everything that can be made to fail, and its known state."""

    lab: Lab
    directory: Path
    state: Path
    disks: tuple[Path, ...]
    nas: StallingMount
    nvml: FakeNvml
    cable: Cable
    clock: Clock
    hook: Hook
    group: WeComBot
    forger: Forger
    services: tuple[LocalServer, ...]
    agents: dict[str, Program]
    daemon: Program
    page: Page
    images: Images
    canary: Any  # a pod as a Kubernetes object
    ledger: Ledger
    present: list[Trouble] = field(default_factory=list)  # currently active

    @contextmanager
    def explained(self, what: str, alert: str | None, must: bool = False, **labels: str) -> Iterator[Trouble]:
        """Let a fault account for such alerts while it lasts; with `must`, they are required."""
        trouble = Trouble(what, alert, labels, time.time(), must=must)
        self.ledger.troubles.append(trouble)
        try:
            yield trouble
        finally:
            trouble.ended = time.time()

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.daemon, *self.agents.values())


@contextmanager
def scene(lab: Lab, directory: Path) -> Iterator[Scene]:
    """Build the scene, yield it once the daemon sees every node, and tear it down."""
    with ExitStack() as stack:
        ledger = Ledger()
        engine_disk = stack.enter_context(engine_on_small_disk(lab, megabytes=MEGABYTES))
        images = Images(lab, engine_disk)
        state = stack.enter_context(ext4_disk(directory, "state", megabytes=24))
        disks = tuple(stack.enter_context(ext4_disk(directory, f"data-{each}", 8)) for each in range(DISKS))
        nas = stack.enter_context(stalling_mount(directory))
        wire = stack.enter_context(cable())
        ours = _below(directory, engine_disk)
        hook = stack.enter_context(Hook(ledger, ours))
        group = stack.enter_context(WeComBot())
        services = tuple(stack.enter_context(LocalServer()) for _ in range(SERVICES))
        canary = _add_objects(lab, stack)
        keys = write_keys(directory)
        agents, nvml = _agents(lab, directory, nas.point, wire, keys)
        for agent in agents.values():
            stack.callback(agent.kill)
            agent.start()
        forger = stack.enter_context(Forger(_address(agents[FORGED])))
        clock, port = Clock(directory), free_port()
        targets = [_address(agents[NODE]), _address(agents[CABLED]), forger.target]
        config = _config(lab, targets, keys, hook, group, services)
        daemon = _daemon(directory, state, port, config, clock)
        stack.callback(daemon.kill)
        stack.callback(nvml.release)
        stack.callback(nas.release)  # before the agent ends: a thread blocked in FUSE cannot be killed
        daemon.start()
        made = Scene(
            lab, directory, state, disks, nas, nvml, wire, clock, hook, group, forger, services, agents, daemon,
            Page(f"http://127.0.0.1:{port}", ours), images, canary, ledger,
        )  # fmt: skip
        _wait_well(made)
        yield made


def _below(*roots: Path) -> Ours:
    """Predicate for alerts of this run: about no disk, or about one below these paths."""
    names = tuple(map(str, roots))
    return lambda labels: labels.get("mount", names[0]).startswith(names)


def _add_objects(lab: Lab, stack: ExitStack) -> Any:
    """Add nodes without a kubelet and a pod that must stay, as must its image; return the pod."""
    for name in (CABLED, FORGED):
        lab.add_fake_node(name, CARDS)
        stack.callback(lab.fake_nodes.remove, name)
    canary = lab.run_pod("canary", image=USED)
    stack.callback(lab.delete_pods, canary)
    return canary


def _daemon(directory: Path, state: Path, port: int, config: Mapping[str, Any], clock: Clock) -> Program:
    file = directory / "gpuwarden.yml"
    file.write_text(yaml.safe_dump(config))
    listen = f"127.0.0.1:{port}"
    environ = quiet_environment(state, CONFIG=str(file), DAEMON__LISTEN=listen, DAEMON__KUBERNETES__ENABLED="yes")
    return Program("daemon", command("daemon"), environ | clock.environment(), directory / "daemon.log")


def _wait_well(made: Scene) -> None:
    """Wait until the daemon sees everything; fail with what is missing or with its last log lines."""
    deadline = time.monotonic() + START
    while (why := made.page.unwell(NODES, [])) is not None:
        if time.monotonic() > deadline or not made.daemon.runs:
            pytest.fail(f"the daemon does not see everything: {why}; {made.daemon.said()[-2000:]}")
        time.sleep(0.2)


def _agents(lab: Lab, directory: Path, nas: Path, wire: Cable, keys: ActionKeys) -> tuple[dict[str, Program], FakeNvml]:
    """A real agent per node: the lab's own, which acts, one behind the cable, and one standalone."""
    nvml = FakeNvml(directory / "nvml", gpus=len(lab.gpu_ids))
    for index, uuid in enumerate(lab.gpu_ids):
        nvml.gpu(index, uuid=uuid)
    real = {
        **lab.agent_settings(),
        "AGENT__ACTIONS": keys.agent_actions(", limits: {images_per_hour: 100000}"),
        "AGENT__MOUNTS": f"[{{path: {nas}, writable: false}}]",
    }
    off = {f"AGENT__COLLECTORS__{name.upper()}": "{enabled: false}" for name in ELSEWHERE}
    made = {
        NODE: _agent(directory, NODE, "127.0.0.1", nvml, real),
        CABLED: _agent(directory, CABLED, wire.there, _cards(directory, CABLED), off, wire.inside),
        FORGED: _agent(directory, FORGED, "127.0.0.1", _cards(directory, FORGED), off),
    }
    return made, nvml


def _cards(directory: Path, node: str) -> FakeNvml:
    nvml = FakeNvml(directory / f"nvml-{node}", gpus=CARDS)
    for index in range(CARDS):
        nvml.gpu(index, uuid=f"GPU-{node[-2:]}{index:06d}-0000-4000-8000-000000000000")
    return nvml


def _agent(
    directory: Path,
    node: str,
    host: str,
    nvml: FakeNvml,
    settings: Mapping[str, str],
    inside: Callable[[list[str]], list[str]] = lambda line: line,
) -> Program:
    quick = {f"AGENT__COLLECTORS__{name.upper()}": "{interval: 500ms, limit: 2s}" for name in QUICK}
    listen = {"AGENT__LISTEN": f"{host}:{free_port()}", "AGENT__NODE_NAME": node}
    environ = quiet_environment(directory / f"agent-{node}", **(quick | dict(settings) | listen))
    line = inside(command("agent"))
    return Program(node, line, environ | nvml.environment(), directory / f"{node}.log")


def _address(agent: Program) -> str:
    return agent.environ["GPUWARDEN_AGENT__LISTEN"]


def _config(
    lab: Lab, targets: list[str], keys: ActionKeys, hook: Hook, group: WeComBot, services: tuple[LocalServer, ...]
) -> dict[str, Any]:
    probed = [
        {"name": f"portal-{number}", "url": f"{each.base}/", "interval": "1s", "limit": "2s"}
        for number, each in enumerate(services)
    ]
    alerts = {
        "receivers": [
            {"kind": "webhook", "name": HOOK, "url": f"{hook.base}/", "timeout": "3s"},
            {"kind": "wecom", "name": "group", "url": group.url, "timeout": "3s"},
        ],
        "group_by": ["alertname", "node", "mount", "pod", "gpu", "service"],
        "rules": dict.fromkeys(TOLD, OVER) | {"monitor_blind": OVER},
    }
    daemon = {
        "cycle": "1s",
        "agents": {"static": targets, "interval": "500ms", "limit": "2s"},
        "kubernetes": {"enabled": "yes", "kubeconfig": str(lab.kubeconfig)},
        "gpu": {"stale_after": "10s", "settle": "3s"},
        "services": probed,
        "rules": RULES,
        "alerts": alerts,
        "cleanup": {"agents": {"private_key_file": str(keys.private_file)}, "policies": [POLICY]},
    }
    return {"log_level": "info", "daemon": daemon}
