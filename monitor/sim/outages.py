"""Outages from a real operations log, and how each begins and ends in the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.sim import manifests
from monitor.sim.cluster import TIB, SimCluster, SimPod
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB, SimNode

NO_SUCH_HOST = ("dns", "no-such-host", "dial tcp: lookup harbor.lab on 10.0.0.2:53: no such host")
NODES = {"disk": 3, "image": 4, "lost": -1}  # index of the node that a scene is about


@dataclass
class OutageContext:
    """State that outages change: the cluster, and the HTTP status of the platform portal."""

    cluster: SimCluster
    portal_status: int = 200
    pods: dict[str, list[SimPod]] = field(default_factory=dict)  # by outage that submitted them

    def submit(self, outage: str, work: Workload, node: str | None = None) -> SimPod:
        """Submit a pod that is deleted when the outage ends."""
        pod = self.cluster.submit(work, node=node)
        self.pods.setdefault(outage, []).append(pod)
        return pod

    def node_with_room(self, gpus: int) -> str | None:
        """Name of a node with that many free GPUs that can pull images, or None."""
        fits = (node for node in self.cluster.nodes.values() if node.answering and node.probe_failure is None)
        return next((node.name for node in fits if len(node.free_gpu_indexes()) >= gpus), None)

    def node(self, role: str) -> SimNode:
        """The node with a role in the story; in a small cluster a node may have several."""
        nodes = list(self.cluster.nodes.values())
        return nodes[NODES[role] % len(nodes)]

    def withdraw(self, outage: str) -> None:
        """Delete the pods of an outage."""
        for pod in self.pods.pop(outage, []):
            if pod.uid in self.cluster.pods:
                self.cluster.delete_pod(pod.work.namespace, pod.work.name, 0)


@dataclass(frozen=True)
class Outage:
    """An outage with its start and duration in seconds of the story."""

    name: str
    at: float
    lasts: float
    begin: Callable[[OutageContext], None]
    end: Callable[[OutageContext], None]


def image(team: str, name: str) -> str:
    """Name of an image in the registry of the lab."""
    return f"harbor.lab/{team}/{name}"


def _lose_registry(context: OutageContext) -> None:
    for name in list(context.cluster.nodes)[1:3]:
        context.cluster.nodes[name].probe_failure = NO_SUCH_HOST
        for number in (1, 2):
            work = Workload(
                f"resnet-{name}-{number}", "vision", "li", "vc-vision", 0, image("vision", f"resnet:{number}")
            )
            context.submit("registry", work, node=name)


def _find_registry(context: OutageContext) -> None:
    for node in context.cluster.nodes.values():
        node.probe_failure = None
    context.withdraw("registry")


def _zombie(context: OutageContext) -> None:
    work = Workload("bert-large-0", "nlp", "zhang", "vc-nlp", 2, image("nlp", "bert:3"))
    pod = context.submit("zombie", work, context.node_with_room(2))
    if pod.node is not None:
        context.cluster.finish(pod, keep_processes=True)


def _bury(context: OutageContext) -> None:
    for pod in context.pods.get("zombie", []):
        if pod.node is not None:
            context.cluster.nodes[pod.node].end(pod.uid)
    context.withdraw("zombie")


def _idle_notebook(context: OutageContext) -> None:
    work = Workload(
        "jupyter-wang", "notebooks", "wang", "vc-dev", 1, image("dev", "jupyter:9"), kind="notebook", busy=0.0
    )
    context.submit("idle", work, context.node_with_room(1))


def _fill_disk(context: OutageContext) -> None:
    node = context.node("disk")
    disk, now = node.runtime_disk, context.cluster.clock()
    number = 0
    while disk.used < 0.78 * disk.size:
        node.add_image(image("old", f"experiment:{number}"), 25 * GIB, now, now - (9 + number) * 86400, shared=0.1)
        number += 1
    disk.growth = disk.size * 0.001  # a user commits one image after another


def _stop_filling(context: OutageContext) -> None:
    node = context.node("disk")
    node.runtime_disk.growth = 0.0
    for name in [name for name in node.images if "/old/" in name]:
        node.remove_image(node.images[name].id)
    node.runtime_disk.used = min(node.runtime_disk.used, node.runtime_disk.size * 0.5)


def _oversize(context: OutageContext) -> None:
    node, now = context.node("image"), context.cluster.clock()
    node.add_image(image("zhao", "saved-env:latest"), 59 * GIB, now, now)


def _remove_oversize(context: OutageContext) -> None:
    for node in context.cluster.nodes.values():
        if (held := node.images.get(image("zhao", "saved-env:latest"))) is not None:
            node.remove_image(held.id)


def _overflow_shm(context: OutageContext) -> None:
    work = Workload("detr-0", "vision", "li", "vc-vision", 1, image("vision", "detr:5"))
    pod = context.submit("shm", work, context.node_with_room(1))
    for node in context.cluster.nodes.values():
        for container in node.containers.values():
            if container.pod_uid == pod.uid:
                container.shm_size, container.shm_used = 64 << 20, 62 << 20


def _no_node_fits(context: OutageContext) -> None:
    context.submit("fit", Workload("llama-8gpu-0", "nlp", "zhang", "vc-nlp", 8, image("nlp", "llama:2")))


def _lose_node(context: OutageContext) -> None:
    node = context.node("lost")
    name = node.name
    node.answering = False
    context.cluster.objects.put(
        "nodes", manifests.node(name, len(node.gpus), node.booted_at, silent_since=context.cluster.clock())
    )


def _find_node(context: OutageContext) -> None:
    node = context.node("lost")
    name = node.name
    node.answering = True
    context.cluster.objects.put("nodes", manifests.node(name, len(node.gpus), node.booted_at))


def _bad_gateway(context: OutageContext) -> None:
    context.portal_status = 502


def _good_gateway(context: OutageContext) -> None:
    context.portal_status = 200


def _delete_data(context: OutageContext) -> None:
    for node in context.cluster.nodes.values():
        share = next(disk for disk in node.disks if "nas" in disk.roles)
        share.used, share.inodes_used = share.used - 60 * TIB, share.inodes_used * 0.6


def _bring_data_back(context: OutageContext) -> None:
    for node in context.cluster.nodes.values():
        share = next(disk for disk in node.disks if "nas" in disk.roles)
        share.used, share.inodes_used = share.used + 60 * TIB, share.inodes_used / 0.6


def _withdraw(name: str) -> Callable[[OutageContext], None]:
    return lambda context: context.withdraw(name)


OUTAGES = (
    Outage("registry lost on two nodes", 20, 50, _lose_registry, _find_registry),
    Outage("zombie job", 65, 75, _zombie, _bury),
    Outage("idle notebook", 110, 90, _idle_notebook, _withdraw("idle")),
    Outage("8-GPU job that fits no node", 155, 60, _no_node_fits, _withdraw("fit")),
    Outage("disk filling", 200, 80, _fill_disk, _stop_filling),
    Outage("59 GB image", 250, 60, _oversize, _remove_oversize),
    Outage("shm overflow", 295, 60, _overflow_shm, _withdraw("shm")),
    Outage("portal answers 502", 340, 50, _bad_gateway, _good_gateway),
    Outage("node down", 385, 65, _lose_node, _find_node),
    Outage("mass deletion", 440, 60, _delete_data, _bring_data_back),
)
