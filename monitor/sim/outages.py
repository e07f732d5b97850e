"""The outages of a real operations log, one after the other: how each begins in the simulated cluster, and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.sim import manifests
from monitor.sim.cluster import TIB, SimCluster, SimPod
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB

NO_SUCH_HOST = ("dns", "no-such-host", "dial tcp: lookup harbor.lab on 10.0.0.2:53: no such host")


@dataclass
class OutageContext:
    """What an outage may touch: the cluster, and whether the platform's portal is well."""

    cluster: SimCluster
    portal_status: int = 200
    pods: dict[str, list[SimPod]] = field(default_factory=dict)  # by outage, those it brought about

    def submit(self, outage: str, work: Workload, node: str | None = None) -> SimPod:
        """Submit work that belongs to an outage, and goes when it ends."""
        pod = self.cluster.submit(work, node=node)
        self.pods.setdefault(outage, []).append(pod)
        return pod

    def node_with_room(self, gpus: int) -> str | None:
        """Return a node that has so many free cards and can pull images; None if there is none."""
        fits = (node for node in self.cluster.nodes.values() if node.answering and node.probe_failure is None)
        return next((node.name for node in fits if len(node.free_gpu_indexes()) >= gpus), None)

    def withdraw(self, outage: str) -> None:
        """Delete what an outage brought about."""
        for pod in self.pods.pop(outage, []):
            if pod.uid in self.cluster.pods:
                self.cluster.delete_pod(pod.work.namespace, pod.work.name, 0)


@dataclass(frozen=True)
class Outage:
    """An outage: when it begins and how long it lasts, in seconds of the story."""

    name: str
    at: float
    lasts: float
    begin: Callable[[OutageContext], None]
    end: Callable[[OutageContext], None]


def image(team: str, name: str) -> str:
    """Return the name of an image in the lab's registry."""
    return f"harbor.lab/{team}/{name}"


def _lose_registry(stage: OutageContext) -> None:
    for name in list(stage.cluster.nodes)[1:3]:
        stage.cluster.nodes[name].probe_failure = NO_SUCH_HOST
        for number in (1, 2):
            work = Workload(f"resnet-{name}-{number}", "vision", "li", "vc-vision", 0, image("vision", f"resnet:{number}"))
            stage.submit("registry", work, node=name)


def _find_registry(stage: OutageContext) -> None:
    for node in stage.cluster.nodes.values():
        node.probe_failure = None
    stage.withdraw("registry")


def _zombie(stage: OutageContext) -> None:
    work = Workload("bert-large-0", "nlp", "zhang", "vc-nlp", 2, image("nlp", "bert:3"))
    pod = stage.submit("zombie", work, stage.node_with_room(2))
    if pod.node is not None:
        stage.cluster.finish(pod, keep_processes=True)


def _bury(stage: OutageContext) -> None:
    for pod in stage.pods.get("zombie", []):
        if pod.node is not None:
            stage.cluster.nodes[pod.node].end(pod.uid)
    stage.withdraw("zombie")


def _idle_notebook(stage: OutageContext) -> None:
    work = Workload("jupyter-wang", "notebooks", "wang", "vc-dev", 1, image("dev", "jupyter:9"), kind="notebook", busy=0.0)
    stage.submit("idle", work, stage.node_with_room(1))


def _fill_disk(stage: OutageContext) -> None:
    node = list(stage.cluster.nodes.values())[3]
    disk, now = node.runtime_disk, stage.cluster.clock()
    number = 0
    while disk.used < 0.78 * disk.size:
        node.add_image(image("old", f"experiment:{number}"), 25 * GIB, now, now - (9 + number) * 86400, shared=0.1)
        number += 1
    disk.growth = disk.size * 0.001  # somebody commits images, one after the other


def _stop_filling(stage: OutageContext) -> None:
    node = list(stage.cluster.nodes.values())[3]
    node.runtime_disk.growth = 0.0
    for name in [name for name in node.images if "/old/" in name]:
        node.remove_image(node.images[name].id)
    node.runtime_disk.used = min(node.runtime_disk.used, node.runtime_disk.size * 0.5)


def _oversize(stage: OutageContext) -> None:
    node, now = list(stage.cluster.nodes.values())[4], stage.cluster.clock()
    node.add_image(image("zhao", "saved-env:latest"), 59 * GIB, now, now)


def _remove_oversize(stage: OutageContext) -> None:
    for node in stage.cluster.nodes.values():
        if (held := node.images.get(image("zhao", "saved-env:latest"))) is not None:
            node.remove_image(held.id)


def _overflow_shm(stage: OutageContext) -> None:
    work = Workload("detr-0", "vision", "li", "vc-vision", 1, image("vision", "detr:5"))
    pod = stage.submit("shm", work, stage.node_with_room(1))
    for node in stage.cluster.nodes.values():
        for container in node.containers.values():
            if container.pod_uid == pod.uid:
                container.shm_size, container.shm_used = 64 << 20, 62 << 20


def _no_node_fits(stage: OutageContext) -> None:
    stage.submit("fit", Workload("llama-8gpu-0", "nlp", "zhang", "vc-nlp", 8, image("nlp", "llama:2")))


def _lose_node(stage: OutageContext) -> None:
    name = list(stage.cluster.nodes)[-1]
    node = stage.cluster.nodes[name]
    node.answering = False
    stage.cluster.objects.put(
        "nodes", manifests.node(name, len(node.cards), node.booted_at, silent_since=stage.cluster.clock())
    )


def _find_node(stage: OutageContext) -> None:
    name = list(stage.cluster.nodes)[-1]
    node = stage.cluster.nodes[name]
    node.answering = True
    stage.cluster.objects.put("nodes", manifests.node(name, len(node.cards), node.booted_at))


def _bad_gateway(stage: OutageContext) -> None:
    stage.portal_status = 502


def _good_gateway(stage: OutageContext) -> None:
    stage.portal_status = 200


def _delete_data(stage: OutageContext) -> None:
    for node in stage.cluster.nodes.values():
        share = next(disk for disk in node.disks if "nas" in disk.roles)
        share.used, share.inodes_used = share.used - 60 * TIB, share.inodes_used * 0.6


def _bring_data_back(stage: OutageContext) -> None:
    for node in stage.cluster.nodes.values():
        share = next(disk for disk in node.disks if "nas" in disk.roles)
        share.used, share.inodes_used = share.used + 60 * TIB, share.inodes_used / 0.6


def _withdraw(name: str) -> Callable[[OutageContext], None]:
    return lambda stage: stage.withdraw(name)


OUTAGES = (
    Outage("registry lost on two nodes", 5, 75, _lose_registry, _find_registry),
    Outage("zombie job", 12, 150, _zombie, _bury),
    Outage("idle notebook", 15, 200, _idle_notebook, _withdraw("idle")),
    Outage("8-GPU job that fits no node", 20, 120, _no_node_fits, _withdraw("fit")),
    Outage("disk filling", 30, 140, _fill_disk, _stop_filling),
    Outage("59 GB image", 45, 120, _oversize, _remove_oversize),
    Outage("shm overflow", 60, 90, _overflow_shm, _withdraw("shm")),
    Outage("portal answers 502", 75, 60, _bad_gateway, _good_gateway),
    Outage("node down", 90, 70, _lose_node, _find_node),
    Outage("mass deletion", 120, 90, _delete_data, _bring_data_back),
)
CYCLE_SECONDS = 260.0  # seconds, after which the story begins anew
