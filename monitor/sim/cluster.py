"""Simulated cluster: nodes, pods, scheduling and deletion."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.sim import manifests
from monitor.sim.agents import agent_address
from monitor.sim.manifests import Workload
from monitor.sim.node import FIRST_LOG_BYTES, GIB, LOG_BYTES_PER_SECOND, SimContainer, SimDisk, SimGpu, SimNode
from monitor.sim.objects import Object, SimObjects

TIB = 1 << 40
DAY_SECONDS = 86400.0
GRACE_SECONDS = 2.0  # simulated pods terminate quickly


@dataclass
class SimPod:
    """A submitted pod."""

    work: Workload
    uid: str
    node: str | None = None
    started: bool = False
    ends_at: float | None = None
    gone_at: float | None = None  # when a deletion takes effect
    stuck: bool = False  # deletion has no effect
    held: bool = False  # never starts


@dataclass
class SimCluster:
    """Nodes and pods. The clock is read once per step, so that all changes of a step have the same time."""

    objects: SimObjects
    clock: Callable[[], float]
    nodes: dict[str, SimNode] = field(default_factory=dict)
    pods: dict[str, SimPod] = field(default_factory=dict)
    chance: random.Random = field(default_factory=lambda: random.Random(11))  # noqa: S311  # no secret
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add_node(self, name: str, gpus: int) -> SimNode:
        """Add a node with its agent."""
        now = self.clock()
        sim_gpus = [SimGpu(index, self._uuid("GPU")) for index in range(gpus)]
        node = SimNode(name, agent_address(len(self.nodes)), sim_gpus, _disks(self.chance), now - 40 * DAY_SECONDS)
        self.nodes[name] = node
        self.objects.put("nodes", manifests.node(name, gpus, node.booted_at))
        self.objects.put("pods", manifests.agent_pod(name, node.address, now - DAY_SECONDS))
        return node

    def submit(
        self,
        work: Workload,
        *,
        node: str | None = None,
        lasts: float | None = None,
        held: bool = False,
        age: float = 0.0,
    ) -> SimPod:
        """Submit a pod to the given node, or to the fullest one with room; without one, it stays pending.

        A `held` pod is scheduled and does not start. With an `age`, it was submitted that many seconds ago.
        """
        now = self.clock()
        pod = SimPod(work, self._uuid(), ends_at=None if lasts is None else now + lasts, held=held)
        self.pods[pod.uid] = pod
        self.objects.put("pods", manifests.workload_pod(work, pod.uid, now - age))
        self._place(pod, node, now - age)
        return pod

    def _place(self, pod: SimPod, wanted: str | None, now: float) -> None:
        node = self._room(pod.work.gpus) if wanted is None else self.nodes[wanted]
        if node is None:
            total = len(self.nodes)
            message = f"0/{total} nodes are available: {total} Insufficient {manifests.GPU_RESOURCE}."
            self.put_pod(manifests.unschedulable(self.pod_object(pod), message, now))
            self.record_event(pod, "FailedScheduling", message)
            return
        pod.node = node.name
        self.put_pod(manifests.placed(self.pod_object(pod), node.name))
        if pod.held:
            return
        if node.probe_failure is None or pod.work.image in node.images:
            self._run(pod, node, now)
        else:
            self.fail_to_pull(pod)

    def _room(self, gpus: int) -> SimNode | None:
        """Node with the fewest free GPUs that are enough."""
        usable = (node for node in self.nodes.values() if node.answering and not node.cordoned)
        fits = [node for node in usable if len(node.free_gpu_indexes()) >= gpus]
        return min(fits, key=lambda node: len(node.free_gpu_indexes()), default=None)

    def _run(self, pod: SimPod, node: SimNode, now: float) -> None:
        work, pod.started = pod.work, True
        container = SimContainer(
            self._uuid().replace("-", "") * 2, pod.uid, work.name, work.namespace, work.image, now, work.user,
            tuple(node.free_gpu_indexes()[: work.gpus]), work.busy,
            log_bytes=int(FIRST_LOG_BYTES + LOG_BYTES_PER_SECOND * (self.clock() - now)),
        )  # fmt: skip
        if work.image not in node.images:
            node.add_image(work.image, int(self.chance.uniform(6, 14) * GIB), now, now)
        node.start(container, now)
        self.put_pod(manifests.running(self.pod_object(pod), container.id, now))

    def fail_to_pull(self, pod: SimPod) -> None:
        """Set the status that a kubelet reports if it cannot resolve the name of the registry."""
        node = self.nodes[pod.node or ""]
        error = node.probe_failure[2] if node.probe_failure else "manifest unknown"
        message = f'Failed to pull image "{pod.work.image}": rpc error: code = Unknown desc = Error response from '
        message += f'daemon: Get "https://harbor.lab/v2/": {error}'
        self.put_pod(manifests.waiting(self.pod_object(pod), "ErrImagePull", message, self.clock()))
        self.record_event(pod, "Failed", message)

    def finish(self, pod: SimPod, phase: str = "Succeeded", *, keep_processes: bool = False) -> None:
        """Let a pod finish. `keep_processes` leaves its processes on the GPUs: a zombie."""
        if pod.node is not None:
            self.nodes[pod.node].end(pod.uid, keep_processes=keep_processes)
        self.put_pod(manifests.finished(self.pod_object(pod), phase, self.clock()))
        pod.ends_at = None

    def delete_pod(self, namespace: str, name: str, grace: float | None) -> bool:
        """Delete a pod as the API server does. Return whether it exists."""
        pods = [pod for pod in self.pods.values() if (pod.work.namespace, pod.work.name) == (namespace, name)]
        for pod in pods:
            seconds = GRACE_SECONDS if grace is None else min(grace, GRACE_SECONDS)
            self.put_pod(manifests.terminating(self.pod_object(pod), self.clock(), seconds))
            pod.gone_at = self.clock() + seconds
        return bool(pods)

    def cordon(self, name: str, cordoned: bool) -> bool:
        """Cordon or uncordon a node. Return whether it exists."""
        if (node := self.nodes.get(name)) is None:
            return False
        node.cordoned = cordoned
        self.objects.put("nodes", manifests.node(name, len(node.gpus), node.booted_at, cordoned=cordoned))
        return True

    def step(self, seconds: float) -> None:
        """Advance time: deletions take effect, pods finish, pending pods are retried, disks fill."""
        now = self.clock()
        for pod in list(self.pods.values()):
            if pod.gone_at is not None and pod.gone_at <= now and not pod.stuck:
                self._forget(pod)
            elif pod.ends_at is not None and pod.ends_at <= now and pod.started:
                self.finish(pod)
            elif pod.gone_at is None and not pod.started and not pod.held:
                self._retry(pod, now)
        for node in self.nodes.values():
            node.pass_time(seconds)

    def _retry(self, pod: SimPod, now: float) -> None:
        if pod.node is not None:
            if self.nodes[pod.node].probe_failure is None:
                self._run(pod, self.nodes[pod.node], now)
        elif self._room(pod.work.gpus) is not None:
            self._place(pod, None, now)

    def _forget(self, pod: SimPod) -> None:
        if pod.node is not None:
            self.nodes[pod.node].end(pod.uid)
        self.objects.remove("pods", pod.uid)
        del self.pods[pod.uid]

    def pod_object(self, pod: SimPod) -> Object:
        """Kubernetes object of a pod."""
        return self.objects.get("pods", pod.uid)

    def put_pod(self, item: Object) -> None:
        self.objects.put("pods", item)

    def record_event(self, pod: SimPod, reason: str, message: str) -> None:
        """Record an event about a pod."""
        item = manifests.event(self.pod_object(pod), next(self._numbers), reason, message, self.clock())
        self.objects.put("events", item)

    def _uuid(self, prefix: str = "") -> str:
        made = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        return f"{prefix}-{made}" if prefix else made


def _disks(chance: random.Random) -> list[SimDisk]:
    return [
        SimDisk("/", "/dev/nvme0n1p2", ("system", "kubelet"), 894 * GIB, 894 * GIB * chance.uniform(0.25, 0.4)),
        SimDisk("/var/lib/docker", "/dev/nvme1n1", ("runtime",), TIB, 8 * GIB),
        SimDisk("/data", "/dev/nvme2n1", ("data",), 7 * TIB, 7 * TIB * chance.uniform(0.4, 0.6)),
        SimDisk("/mnt/share", "nas:/share", ("nas",), 200 * TIB, 200 * TIB * 0.62, inodes_used=4.1e7),
    ]
