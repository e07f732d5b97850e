"""A daemon that cleans up the lab with minimal permissions, and problems for it to clean up."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from monitor.cleanup.journal_records import ItemState, RunState
from monitor.facts.cluster import ClusterView, GpuView
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import ImageFact
from monitor.present.cleanup import ShownPlan, ShownRun
from tests.e2e.detecting import acting_node, agent_of
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import free_port, need, wait_until
from tests.support.command import command, get, quiet_environment, run, running

NODE = "gpu-01"
QUICK = ("gpu", "gpu_processes", "pod_devices", "containers", "disk", "images")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
READING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
DELETING = (
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
)


# The node


@contextmanager
def dead_kubelet(lab: Lab) -> Iterator[None]:
    """Stop the kubelet temporarily: containers of deleted pods keep running and their status is not updated."""
    lab.kill_component("kubelet")
    # Its socket is stale; its checkpoint files remain.
    (lab.kubelet_root / "pod-resources" / "kubelet.sock").unlink(missing_ok=True)
    try:
        yield
    finally:
        lab.start_component("kubelet")


def end_containers(lab: Lab, *pods: Any) -> None:
    """Kill the containers of pods and their sandboxes behind the kubelet's back."""
    for pod in pods:
        lab.engine.kill_containers_of(pod.metadata.uid)


@contextmanager
def left_by(pid: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that outlives its container: in the cgroup of the pod, outside that of the container.

    A runtime that stops a container kills the container's cgroup; the rest of the pod is up to the kubelet.
    """
    memory = Path("/sys/fs/cgroup/memory")
    need(memory.is_dir(), "cgroups of version 1")
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    (path,) = [line.split(":", 2)[2] for line in lines if "memory" in line.split(":")[1].split(",")]
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            (memory / path.lstrip("/")).parent.joinpath("cgroup.procs").write_text(str(process.pid))
            yield process
        finally:
            process.kill()


# Pods


class Pods:
    """Pods of a test in the scene's namespace, deleted afterwards."""

    def __init__(self, lab: Lab, namespace: str) -> None:
        self._lab = lab
        self._namespace = namespace
        self.made: list[Any] = []

    def run(self, name: str, **fields: Any) -> Any:
        """Create a pod and wait until it runs or reaches the given phase."""
        self.made.append(self._lab.run_pod(name, namespace=self._namespace, **fields))
        return self.made[-1]

    def now(self, pod: Any) -> Any | None:
        """The current pod; None if it is gone."""
        try:
            return self._lab.cluster.read_pod(pod)
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    def delete(self, pod: Any) -> None:
        """Request deletion of a pod."""
        named = pod.metadata
        self._lab.cluster.core.delete_namespaced_pod(named.name, named.namespace, _request_timeout=60)

    def keep(self, pod: Any, finalizers: list[str] | None) -> None:
        """Set the finalizers of a pod."""
        named, body = pod.metadata, {"metadata": {"finalizers": finalizers}}
        self._lab.cluster.core.patch_namespaced_pod(named.name, named.namespace, body, _request_timeout=60)

    def clear(self) -> None:
        for pod in self.made:
            if (left := self.now(pod)) is not None and left.metadata.finalizers:
                self.keep(pod, None)
        self._lab.delete_pods(*self.made)


# The account of the daemon


class Account:
    """A service account with read access to everything, and permission to delete pods while granted."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._deleting = f"{scene.name}-deletes"
        scene.create_here("v1", "serviceaccounts", "gpuwarden")
        self._role(f"{scene.name}-reads", READING)
        self._bind(f"{scene.name}-reads")
        self._role(self._deleting, *DELETING)
        self.grant()

    def grant(self) -> None:
        """Grant deletion and eviction of pods."""
        self._bind(self._deleting)
        wait_until(self._may_delete, 10, "it may delete pods")

    def revoke(self) -> None:
        """Revoke it."""
        self._scene.api.delete(f"{RBAC}/clusterrolebindings/{self._deleting}")
        wait_until(lambda: not self._may_delete(), 10, "it may not delete pods")

    def kubeconfig(self, admin: Path, directory: Path) -> Path:
        """Write a kubeconfig for this account from an administrator's."""
        path = self._scene.path("v1", "serviceaccounts", "gpuwarden/token")
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        config = yaml.safe_load(admin.read_text())
        config["users"][0]["user"] = {"token": self._scene.api.create(path, wanted)["status"]["token"]}
        own = directory / "kubeconfig"
        own.write_text(yaml.safe_dump(config))
        return own

    def _may_delete(self) -> bool:
        """Whether the API server, which needs a moment for new permissions, allows deletion."""
        wanted = {"verb": "delete", "resource": "pods", "namespace": self._scene.name}
        spec = {"user": f"system:serviceaccount:{self._scene.name}:gpuwarden", "resourceAttributes": wanted}
        review = self._scene.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        return bool(review["status"]["allowed"])

    def _role(self, name: str, *rules: Mapping[str, Any]) -> None:
        self._scene.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})

    def _bind(self, role: str) -> None:
        subject = {"kind": "ServiceAccount", "name": "gpuwarden", "namespace": self._scene.name}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
        self._scene.create(f"{RBAC}/clusterrolebindings", body)


# The daemon


@dataclass(frozen=True)
class Cleaner:
    """An agent and a daemon that clean up, as seen by an administrator on the command line."""

    nvml: FakeNvml
    agent: str
    page: str
    environ: dict[str, str]

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `gpuwarden cleanup`."""
        return run("cleanup", *arguments, environ=self.environ)

    def plan(self, policy: str) -> ShownPlan:
        """Current plan of a cluster-wide policy."""
        (plan,) = msgspec.json.decode(
            get(f"{self.page}/v1/cleanup/plan?policy={policy}")[2], type=tuple[ShownPlan, ...]
        )
        return plan

    def history(self, policy: str) -> tuple[ShownRun, ...]:
        """Runs of a policy, newest first."""
        body = get(f"{self.page}/v1/cleanup/history?policy={policy}")[2]
        return msgspec.json.decode(body, type=tuple[ShownRun, ...])

    def run(self, policy: str) -> ShownRun:
        """Run a policy now and return its result."""
        before = len(self.history(policy))
        answer = self.ask("run", policy)
        assert answer.returncode == 0, answer.stderr
        return self.wait_run(policy, before, 30)

    def wait_run(self, policy: str, before: int, limit: float) -> ShownRun:
        """Wait for the next run to finish and return it."""

        def over() -> bool:
            runs = self.history(policy)
            return len(runs) > before and runs[0].run.state is not RunState.RUNNING

        wait_until(over, limit, f"a run of {policy} is over")
        return self.history(policy)[0]

    def finds(self, rule: str, cause: str, **labels: str) -> bool:
        """Whether a rule reports this cause for the subject with these labels."""
        found = json.loads(get(f"{self.page}/v1/findings")[2])
        return any(
            (each["rule"], each["cause"]) == (rule, cause) and labels.items() <= each["labels"].items()
            for each in found
        )

    def image(self, name: str) -> ImageFact | None:
        """The agent's facts about an image."""
        snapshot = msgspec.json.decode(get(f"http://{self.agent}/v1/snapshot")[2], type=NodeSnapshot)
        found = (image for cache in snapshot.images or () for image in cache.images)
        return next((image for image in found if name in image.names), None)

    def cards(self) -> dict[str, GpuView]:
        """The daemon's view of each GPU."""
        view = msgspec.json.decode(get(f"{self.page}/v1/view")[2], type=ClusterView)
        return {gpu.uuid or "": gpu for gpu in view.gpus}

    def card_of(self, pod: Any) -> GpuView:
        """GPU the kubelet assigned to a pod, once the daemon knows it."""

        def found() -> list[GpuView]:
            uid = pod.metadata.uid
            return [gpu for gpu in self.cards().values() if uid in {holder.pod_uid for holder in gpu.holders}]

        wait_until(found, 30, f"the card of {pod.metadata.name} is known")
        return found()[0]

    def release_zombie(self, lab: Lab, uuid: str, pid: int, left: subprocess.Popen[bytes], *pods: Any) -> None:
        """End the containers of deleted pods, with `left` instead of `pid` on their GPU, and release it."""
        index = lab.gpu_ids.index(uuid)
        end_containers(lab, *pods)
        self.nvml.end_process(index, pid)
        self.nvml.process(index, left.pid)
        self.becomes(uuid, "zombie", left.pid)
        wait_until(lambda: self.plan("gpus").items, 10, "what is left is planned for")
        released = self.ask("release", NODE, str(index))
        assert released.returncode == 0, released.stdout + released.stderr
        assert left.wait(60) == -signal.SIGTERM
        self.nvml.end_process(index, left.pid)  # like a driver

    def has_released(self, uuid: str) -> None:
        """The last release ended a process, and the GPU is free."""
        (entry,) = self.history("release")[0].items
        assert (entry.state, entry.outcome) == (ItemState.DONE, "killed")
        self.becomes(uuid, "free")

    def becomes(self, uuid: str, state: str, *pids: int, limit: float = 30) -> None:
        """Wait until a GPU is in a state with these processes on it."""
        deadline, card = time.monotonic() + limit, self.cards()[uuid]
        while (card.state.value, card.pids) != (state, pids):
            if time.monotonic() > deadline:
                pytest.fail(f"not within {limit} s: {state} with {pids}, but {card}")
            time.sleep(0.1)
            card = self.cards()[uuid]


@contextmanager
def cleaning(
    lab: Lab,
    kubeconfig: Path,
    directory: Path,
    policies: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> Iterator[Cleaner]:
    """Run a real agent that acts and a real daemon with these policies, and `more` settings."""
    key, nvml, on_node = acting_node(lab, directory)
    port = free_port()
    config = directory / "gpuwarden.yml"
    daemon = {
        "cycle": "500ms",
        "agents": {"interval": "500ms"},
        "kubernetes": {"enabled": "yes", "kubeconfig": str(kubeconfig)},
        "gpu": {"stale_after": "5s", "settle": "3s", "terminating_grace": "5s"},
        "rules": dict(rules),
        "cleanup": {"agents": {"private_key_file": str(key)}, "policies": list(policies)},
        **(more or {}),
    }
    # At `info` the daemon logs every cycle into a pipe that is not read.
    config.write_text(yaml.safe_dump({"log_level": "warning", "daemon": daemon}))
    with ExitStack() as stack:
        agent = stack.enter_context(agent_of(directory / "agent", QUICK, nvml.environment(), **on_node))
        environ = quiet_environment(
            directory / "daemon",
            CONFIG=str(config),
            DAEMON__LISTEN=f"127.0.0.1:{port}",
            DAEMON__AGENTS__STATIC=f"['{agent}']",
            DAEMON__KUBERNETES__ENABLED="yes",
        )
        stack.enter_context(running(command("daemon"), environ, stdout=subprocess.DEVNULL))
        cleaner = Cleaner(nvml, agent, f"http://127.0.0.1:{port}", environ)
        wait_until(lambda: _knows(cleaner, len(lab.gpu_ids)), 30, "the daemon knows all cards")
        yield cleaner


def _knows(cleaner: Cleaner, cards: int) -> bool:
    try:
        states = [card.state.value for card in cleaner.cards().values()]
        return len(states) == cards and "unknown" not in states
    except OSError:
        return False
