"""The lab's API for tests: start, stop, break and repair a real cluster."""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab import host, process
from tests.lab.cluster import Cluster, FakeNodes, is_ready
from tests.lab.components import ENGINE_ENVIRONMENT, command_lines
from tests.lab.engine import Engine
from tests.lab.errors import LabError, wait_for
from tests.lab.files import write_files
from tests.lab.images import root_file_system
from tests.lab.layout import GPU_RESOURCE, KUBELET_SOCKET, LOOPBACK, NODE, PRODUCT_USER, Layout, gpu_ids, state_dir
from tests.lab.lock import locked
from tests.lab.logs import tail
from tests.lab.manifests import pod_manifest
from tests.lab.ports import choose_ports
from tests.lab.probes import readiness
from tests.lab.programs import SEARCH
from tests.lab.registry import push_layer
from tests.lab.state import State, load, save
from tests.lab.teardown import tear_down
from tests.lab.variants import chosen, named

REPOSITORY = Path(__file__).resolve().parents[2]
# One lab per machine: the kubelet's device plugin socket has a fixed path.
START_LOCK = Path("/run/gpuwarden-lab.lock")
START_LIMIT = 60.0
STOP_LIMIT = 3.0


class Lab:
    """A running cluster."""

    def __init__(self, layout: Layout, state: State) -> None:
        self._layout = layout
        self._state = state
        self.variant = named(state.variant)
        self.engine: Engine = self.variant.engine(layout)
        self._programs = self.variant.find_programs()
        self._commands = command_lines(self.variant, layout, state.ports, self._programs, state.gpu_ids)
        self._ready = readiness(layout, state, self.engine) | self.variant.readiness(layout)
        self._cluster: Cluster | None = None
        self._fake_nodes: FakeNodes | None = None

    # Starting and stopping

    @classmethod
    def start(cls, root: Path | None = None, *, ids: Sequence[str] | None = None, owned: bool = False) -> Lab:
        """Start a lab and return it once a pod with GPUs can run; leftovers of a crashed lab are removed first.

        An owned lab counts as crashed when the process that started it has ended. LabError, with nothing left running,
        if a program is missing, another lab or kubelet runs, or a component does not start.
        """
        layout = Layout.at(root or state_dir())
        if os.geteuid() != 0:
            raise LabError("the lab needs root: it starts a container engine and a kubelet")
        variant = chosen()
        programs = variant.find_programs()
        with locked(START_LOCK, START_LIMIT):
            clear(layout)
            state = State(
                variant=variant.name,
                ports=choose_ports(),
                token=secrets.token_hex(16),
                gpu_ids=tuple(ids or gpu_ids()),
                host=host.remember(),
                owner=process.this_process() if owned else None,
            )
            layout.logs.mkdir(parents=True, mode=0o700)
            save(state, layout.state)
            lab = cls(layout, state)
            try:
                write_files(layout, state.ports, state.token, programs)
                variant.write_files(layout, state.ports, programs)
                lab._start_all()
            except BaseException:  # also on an interrupt: a lab that failed to start leaves nothing behind
                lab.stop()
                raise
        return lab

    @classmethod
    def attach(cls, root: Path | None = None) -> Lab:
        """Attach to the running lab; LabError if there is none."""
        layout = Layout.at(root or state_dir())
        state = load(layout.state)
        if state is None or not _is_up(state):
            raise LabError(f"no lab runs in {layout.root}")
        return cls(layout, state)

    def stop(self) -> None:
        """Stop and remove everything; LabError names what remains."""
        self.close()
        tear_down(self._layout)

    def close(self) -> None:
        """Detach from a lab that keeps running."""
        if self._fake_nodes is not None:
            self._fake_nodes.close()
        if self._cluster is not None:
            self._cluster.close()
        self._fake_nodes = self._cluster = None

    def _start_all(self) -> None:
        for name in ("etcd", self.engine.component, "registry"):
            self._spawn(name)
        self._wait_ready("etcd")
        self._spawn("apiserver")
        self._wait_ready(self.engine.component)
        self.engine.import_images(self.busybox)
        self._wait_ready("apiserver")
        for name in ("scheduler", "controller-manager", "kubelet", "device-plugin"):
            self._spawn(name)
        for name in ("registry", "scheduler", "controller-manager", "kubelet"):
            self._wait_ready(name)
        self._wait_gpus()

    # Paths and addresses

    @property
    def kubeconfig(self) -> Path:
        return self._layout.kubeconfig

    @property
    def product_kubeconfig(self) -> Path:
        """Credentials of an administrator whose requests are all in the audit log."""
        return self._layout.product_kubeconfig

    def audited(self) -> list[dict[str, Any]]:
        """Requests of that administrator in the audit log of the API server, oldest first."""
        lines = self._layout.audit_log.read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["user"]["username"] == PRODUCT_USER]

    @property
    def busybox(self) -> str:
        return self._programs["busybox"]

    @property
    def kubelet_root(self) -> Path:
        return self._layout.kubelet_root

    def agent_settings(self) -> dict[str, str]:
        """Settings of an agent on the lab's node: paths of kubelet and container engine."""
        return {"AGENT__PATHS__KUBELET": str(self.kubelet_root), **self.engine.agent_settings()}

    @property
    def registry(self) -> str:
        return f"{LOOPBACK}:{self._state.ports.registry}"

    @property
    def api_address(self) -> str:
        return f"{LOOPBACK}:{self._state.ports.apiserver}"

    @property
    def gpu_ids(self) -> tuple[str, ...]:
        return self._state.gpu_ids

    @property
    def cluster(self) -> Cluster:
        """The cluster through the Python client, as administrator."""
        if self._cluster is None:
            self._cluster = Cluster(self.kubeconfig)
        return self._cluster

    def running(self) -> dict[str, bool]:
        """Whether each component's process runs."""
        known = self._state.processes
        expected = [name for name in self._commands if name in known or name not in self.variant.optional]
        return {name: name in known and process.is_running(known[name]) for name in expected}

    # Breaking and repairing

    def start_component(self, name: str) -> None:
        """Start a stopped component and wait until it responds; LabError if it does not."""
        if name == "kubelet":
            KUBELET_SOCKET.unlink(missing_ok=True)  # of the previous plugin
        self._spawn(name)
        self._wait_ready(name)
        if name in ("kubelet", "device-plugin"):
            self._wait_gpus()

    def stop_component(self, name: str) -> None:
        """Terminate a component and wait for its end."""
        process.stop([self._state.processes[name]], STOP_LIMIT)

    def kill_component(self, name: str) -> None:
        """Kill a component and wait for its end."""
        process.send(self._state.processes[name], signal.SIGKILL)
        process.stop([self._state.processes[name]], STOP_LIMIT)

    def kill_apiserver(self) -> None:
        self.kill_component("apiserver")

    def restart_apiserver(self) -> None:
        self.stop_component("apiserver")
        self.start_component("apiserver")

    def stop_registry(self) -> None:
        self.stop_component("registry")

    def start_registry(self) -> None:
        self.start_component("registry")

    # Images, pods, nodes

    def push_image(self, name: str) -> str:
        """Push an image such as `team/train:1` to the registry and return its full name."""
        return push_layer(self.registry, name, root_file_system(self.busybox))

    def run_pod(self, name: str, *, phase: str | None = "Running", limit: float = 60.0, **fields: Any) -> Any:
        """Create a pod (fields: see `pod_manifest`) and wait for `phase`, or return immediately if it is None.

        LabError with the pod's events if it does not get there in time.
        """
        pod = self.cluster.create_pod(pod_manifest(name, **fields))
        return pod if phase is None else self.cluster.wait_for_phase(pod, phase, limit)

    def delete_pods(self, *pods: Any, limit: float = 60.0) -> None:
        """Delete pods and wait until they and their containers are gone."""
        self.cluster.delete_pods(pods, limit)

    def container_pid(self, pod: Any) -> int:
        """Host pid of the first process of the pod's first container."""
        container = self.cluster.read_pod(pod).status.container_statuses[0].container_id
        return self.engine.container_pid(container.partition("://")[2])

    def add_fake_node(
        self,
        name: str,
        gpus: int,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add a node object without a kubelet, kept alive until it is removed, silenced, or the test run ends."""
        self.fake_nodes.add(name, gpus, labels, taints)

    @property
    def fake_nodes(self) -> FakeNodes:
        if self._fake_nodes is None:
            self._fake_nodes = FakeNodes(self.cluster)
        return self._fake_nodes

    # Internals

    def _spawn(self, name: str) -> None:
        environment = {
            "HOME": str(self._layout.root),
            "PATH": os.pathsep.join((str(self.variant.bin_dir()), SEARCH)),
            "PYTHONPATH": str(REPOSITORY),
            process.MARK: str(self._layout.root),
            **(ENGINE_ENVIRONMENT if name == self.engine.component else {}),
        }
        self._state.processes[name] = process.spawn(name, self._commands[name], environment, self._log(name))
        save(self._state, self._layout.state)

    def _log(self, name: str) -> Path:
        return self._layout.logs / f"{name}.log"

    def _wait_ready(self, name: str) -> None:
        deadline = time.monotonic() + START_LIMIT
        while not self._ready[name]():
            if not process.is_running(self._state.processes[name]):
                raise LabError(f"{name} has ended; the end of its log:\n{tail(self._log(name))}")
            if time.monotonic() > deadline:
                raise LabError(f"{name} does not answer; the end of its log:\n{tail(self._log(name))}")
            time.sleep(0.1)

    def _wait_gpus(self) -> None:
        """Wait until the node is ready with all its GPUs; LabError with the logs if it is not."""
        self._wait_ready("device-plugin")
        try:
            wait_for(self._has_gpus, START_LIMIT, f"node {NODE} ready with {len(self.gpu_ids)} {GPU_RESOURCE}")
        except LabError as error:
            ends = [f"{name}:\n{tail(self._log(name))}" for name in ("kubelet", "device-plugin")]
            raise LabError("\n".join([str(error), *ends])) from None

    def _has_gpus(self) -> bool:
        node = self.cluster.node(NODE)
        if node is None or not is_ready(node):
            return False
        return bool(node.status.allocatable.get(GPU_RESOURCE) == str(len(self.gpu_ids)))


def _is_up(state: State) -> bool:
    return any(process.is_running(found) for found in state.processes.values())


def clear(layout: Layout) -> None:
    """Remove the remains of a crashed lab; LabError if one runs in this directory or it is not a lab's."""
    state = load(layout.state)
    if state is None:
        if layout.root.exists() and any(layout.root.iterdir()):
            raise LabError(f"{layout.root} is in use for something else")
        return
    orphaned = state.owner is not None and not process.is_running(state.owner)
    if _is_up(state) and not orphaned:
        raise LabError(f"a lab runs in {layout.root}: set LAB_DIR to use it, or end it by `python -m tests.lab down`")
    tear_down(layout)
