"""The simulated cluster of the scorecard, with a fake clock and operations that outages need."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field, replace
from typing import Any

from monitor.detect.base import CleanupDeletion
from monitor.facts import MountFact
from monitor.sim import manifests
from monitor.sim.cluster import SimCluster, SimPod
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB, SimContainer, SimDisk, SimNode
from monitor.sim.objects import Object, SimObjects
from monitor.sim.outages import image

BEGIN = 1_780_272_000.0  # a Monday, midnight
NODES, GPUS = 8, 8
SHARE = "/mnt/share"
EVERYDAY_CARDS = 4  # per node; the others are reserved for outages


@dataclass
class Service:
    """A platform service; `failure` is the error of its probe."""

    name: str
    kind: str
    target: str
    failure: dict[str, Any] | None = None


@dataclass
class Clock:
    """A clock that only advances when set."""

    now: float = BEGIN

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """The cluster and its operations. `full_until` suspends everyday work."""

    seed: int
    clock: Clock = field(default_factory=Clock)
    objects: SimObjects = field(default_factory=SimObjects)
    api_up: bool = True
    full_until: float = 0.0
    own_deletions: list[CleanupDeletion] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.cluster = SimCluster(self.objects, self.clock, chance=random.Random(self.seed + 1))
        self.services = {
            each.name: each
            for each in (
                Service("portal", "http", "http://portal.lab/"),
                Service("postgres", "postgresql", "postgres.lab:5432"),
                Service("harbor", "harbor", "https://harbor.lab"),
                Service("license", "tcp", "license.lab:27000"),
            )
        }
        self._numbers = itertools.count(1)
        self._stepped = self.clock.now

    def populate(self) -> None:
        """Add the nodes with the images and disks of an ordinary Monday."""
        for number in range(1, NODES + 1):
            node = self.cluster.add_node(f"gpu{number:02d}", GPUS)
            node.chance = random.Random(self.seed * 100 + number)
            node.mounts = [MountFact(path=SHARE, state="ok", since=self.clock.now)]
            disk(node, "/data").used = disk(node, "/data").size * 0.5
            node.add_image(image("base", "pytorch:2.3"), 18 * GIB, self.clock.now, self.clock.now - 3600)
            self.renew_node(node.name)

    @property
    def nodes(self) -> list[SimNode]:
        return list(self.cluster.nodes.values())

    def pass_to(self, moment: float) -> None:
        """Advance the time."""
        self.clock.now = moment
        self.cluster.step(moment - self._stepped)
        self._stepped = moment

    def submit(
        self, work: Workload, node: str | None = None, lasts: float | None = None, *, held: bool = False
    ) -> SimPod:
        """Submit work; a named node must have capacity."""
        if node is not None and not held:
            assert len(self.cluster.nodes[node].free_gpu_indexes()) >= work.gpus, f"no room for {work.name} on {node}"
        return self.cluster.submit(work, node=node, lasts=lasts, held=held)

    def container(self, pod: SimPod) -> SimContainer:
        """A pod's container."""
        node = self.cluster.nodes[pod.node or ""]
        return next(each for each in node.containers.values() if each.pod_uid == pod.uid)

    def withdraw(self, pod: SimPod) -> None:
        """Remove a pod with all its leftovers immediately."""
        if pod.node is not None:
            self.cluster.nodes[pod.node].end(pod.uid)
        self.objects.remove("pods", pod.uid)
        self.cluster.pods.pop(pod.uid, None)

    def keep_work(self, until: float, node: str | None = None) -> None:
        """Let no work end before a time, on one node or anywhere."""
        for pod in self.cluster.pods.values():
            if pod.ends_at is not None and pod.ends_at <= until and (node is None or pod.node == node):
                pod.ends_at = until + self.chance.randrange(600, 6000)

    def change_pod(self, pod: SimPod, change: dict[str, Any]) -> None:
        """Update a pod's object by nested fields: {"metadata": {"finalizers": [...]}}."""
        item = self.cluster.pod_object(pod)
        self.cluster.put_pod(item | {part: item[part] | more for part, more in change.items()})

    def renew_node(self, name: str, conditions: tuple[Object, ...] = (), **given: Any) -> None:
        """Set a node's state: `down_since`, `ready_since`, `ready_message`, `capacity`, `allocatable`, `cordoned`."""
        node = self.cluster.nodes[name]
        node.cordoned = bool(given.get("cordoned"))
        item = manifests.node(
            name, GPUS, node.booted_at, silent_since=given.get("down_since"), cordoned=node.cordoned
        )  # fmt: skip
        status = item["status"]
        if "ready_since" in given:
            status["conditions"][0]["lastTransitionTime"] = manifests.rfc3339(given["ready_since"])
        if "ready_message" in given:
            status["conditions"][0] |= {"status": "False", "reason": "KubeletNotReady"}
            status["conditions"][0]["message"] = given["ready_message"]
        for part in ("capacity", "allocatable"):
            status[part] = status[part] | {manifests.GPU_RESOURCE: str(given.get(part, GPUS))}
        status["conditions"] += conditions
        self.objects.put("nodes", item)

    def pull(self, pod: SimPod, seconds: int | None = None, size: int = 0) -> None:
        """Emit the event that a pod's image is being pulled, or was pulled in this many seconds."""
        named = f'image "{pod.work.image}"'
        if seconds is None:
            self.cluster.record_event(pod, "Pulling", f"Pulling {named}")
        else:
            took = f"in {seconds}s ({seconds}s including waiting). Image size: {size} bytes."
            self.cluster.record_event(pod, "Pulled", f"Successfully pulled {named} {took}")

    def refuse(self, namespace: str, job: str, message: str) -> None:
        """Emit the event that a job's pods could not be created."""
        number = next(self._numbers)
        now = manifests.rfc3339(self.clock.now)
        meta = {"name": f"{job}.{number}", "namespace": namespace, "uid": f"refusal-{number}"}
        about = {"kind": "Job", "name": job, "namespace": namespace, "uid": f"job-{job}"}
        self.objects.put(
            "events",
            {"metadata": meta, "involvedObject": about, "type": "Warning", "reason": "FailedCreate", "message": message,
             "count": 1, "firstTimestamp": now, "lastTimestamp": now},
        )  # fmt: skip

    def waiting_pod(self, work: Workload, message: str, **spec: Any) -> str:
        """Create an unschedulable pod and return its uid; it is never placed."""
        uid = f"waiting-{next(self._numbers)}"
        pod = manifests.unschedulable(manifests.workload_pod(work, uid, self.clock.now), message, self.clock.now)
        self.objects.put("pods", pod | {"spec": pod["spec"] | spec})
        return uid


def disk(node: SimNode, mount: str) -> SimDisk:
    """A node's disk by mount point."""
    return next(each for each in node.disks if each.mount == mount)


def set_mount(node: SimNode, state: str, now: float, error: str | None = None) -> None:
    """Set the state of the share on a node."""
    node.mounts = [MountFact(path=SHARE, state=state, since=now, error=error)]


def change_processes(node: SimNode, pod: SimPod, **change: Any) -> None:
    """Change a pod's processes on its GPUs."""
    node.processes = [replace(each, **change) if each.pod_uid == pod.uid else each for each in node.processes]
