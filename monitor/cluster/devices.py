"""GPUs of Dynamic Resource Allocation, joined into pods and nodes: what claims ask for, hold, and could hold.

A pod's claimed GPUs are added to its requests and a node's claimable ones to its capacity, so that everything that
counts GPUs counts both mechanisms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from monitor.facts.agents import AgentFact
from monitor.facts.devices import (
    AllocatedDeviceFact,
    ClaimKey,
    DeviceFact,
    DeviceFacts,
    DeviceKey,
    ResourceClaimFact,
    ResourceSliceFact,
    is_gpu,
    is_whole_gpu,
)
from monitor.facts.gpu_drivers import is_gpu_driver
from monitor.facts.kube import Amounts, NodeFact, PodFact


class ClaimedGpu(NamedTuple):
    """A GPU, or a part of one, that a claim holds for a pod. `uuids`: its own, and that of the GPU it is part of."""

    pod_uid: str
    pod_name: str
    namespace: str
    uuids: tuple[str, ...]


class _OfferedGpus(NamedTuple):
    """Whole GPUs in the slices of a node."""

    all: int = 0
    untainted: int = 0


class DeviceIndex:
    """Claims, slices and device classes of one moment. `resource` is the one as which GPUs are counted."""

    def __init__(self, resource: str, facts: DeviceFacts | None = None) -> None:
        facts = facts or DeviceFacts()
        self._resource = resource
        self._facts = facts
        self._claims = {claim.key: claim for claim in facts.claims}
        self._classes = {each.name: each for each in facts.classes}
        self._devices: dict[DeviceKey, tuple[str | None, DeviceFact]] = {}
        self._slices: defaultdict[str, list[ResourceSliceFact]] = defaultdict(list)  # by node
        for each in _latest(facts.slices):
            self._devices |= {(each.driver, each.pool, device.name): (each.node, device) for device in each.devices}
            if each.node is not None:
                self._slices[each.node].append(each)
        self._claimed: defaultdict[str, list[ClaimedGpu]] = defaultdict(list)
        for claim in facts.claims:
            for node, gpu in self._held(claim):
                self._claimed[node].append(gpu)

    def pod(self, pod: PodFact) -> PodFact:
        """The pod, its requests including the GPUs of its claims."""
        gpus = sum(self._gpus_for(pod, claim.claim) for claim in pod.device_claims if claim.claim is not None)
        if not gpus:
            return pod
        return replace(pod, requests=_plus(pod.requests, self._resource, gpus), claimed_gpus=gpus)

    def node(self, node: NodeFact, gpu_count: int | None) -> NodeFact:
        """The node, its capacity including the GPUs that drivers offer. `gpu_count` is the number of all, if known."""
        offered = self._offered(node.name)
        if not offered.all:
            return node
        capacity, allocatable = (amounts.get(self._resource, 0.0) for amounts in (node.capacity, node.allocatable))
        return replace(
            node,
            capacity=node.capacity | {self._resource: _total(capacity, offered.all, gpu_count)},
            allocatable=node.allocatable | {self._resource: _total(allocatable, offered.untainted, gpu_count)},
            claimable_gpus=offered.untainted,
            plugin_gpus=allocatable,
        )

    def claimed(self, node: str) -> tuple[ClaimedGpu, ...]:
        """GPUs of a node that claims hold for pods."""
        return tuple(self._claimed.get(node, ()))

    def uuids(self, key: DeviceKey) -> tuple[str, ...]:
        """UUIDs of a device and of the GPU it is part of, as far as they are known."""
        _, device = self._devices.get(key, (None, None))
        return tuple(uuid for uuid in (device.uuid, device.parent_uuid) if uuid) if device is not None else ()

    def changed(self, after: DeviceIndex) -> tuple[set[ClaimKey], set[str]]:
        """Claims that count differently, and nodes whose GPUs are offered or held differently, in another index."""
        same = self._facts.slices == after._facts.slices and self._facts.classes == after._facts.classes
        keys = self._claims.keys() | after._claims.keys()
        claims = {key for key in keys if not same or self._claims.get(key) != after._claims.get(key)}
        nodes = self._slices.keys() | after._slices.keys() | self._claimed.keys() | after._claimed.keys()
        return (
            {key for key in claims if self._count(key) != after._count(key)},
            {name for name in nodes if self._on(name) != after._on(name)},
        )

    def _count(self, key: ClaimKey) -> tuple[object, ...]:
        claim = self._claims.get(key)
        return (claim, self._gpus(claim)) if claim is not None else ()

    def _on(self, node: str) -> tuple[object, ...]:
        return self._slices.get(node), self._claimed.get(node)

    def _offered(self, node: str) -> _OfferedGpus:
        gpus = [d for each in self._slices.get(node, ()) for d in each.devices if is_whole_gpu(each.driver, d)]
        return _OfferedGpus(len(gpus), sum(not gpu.tainted for gpu in gpus))

    def _held(self, claim: ResourceClaimFact) -> Iterable[tuple[str, ClaimedGpu]]:
        """GPUs that a claim holds, with their nodes."""
        for result in claim.devices:
            node, device = self._devices.get(result.key, (None, None))
            name = node or claim.node
            if result.admin or name is None or not is_gpu(result.driver, device):
                continue
            for consumer in claim.reserved_for:
                yield name, ClaimedGpu(consumer.uid, consumer.name, claim.namespace, self.uuids(result.key))

    def _gpus_for(self, pod: PodFact, name: str) -> float:
        """GPUs that a claim adds to a pod's requests: pods that share a claim have a part each."""
        claim = self._claims.get((pod.namespace, name))
        if claim is None:
            return 0.0
        if not claim.allocated:
            return float(self._gpus(claim))
        holds = any(consumer.uid == pod.uid for consumer in claim.reserved_for)
        return self._gpus(claim) / len(claim.reserved_for) if holds else 0.0

    def _gpus(self, claim: ResourceClaimFact) -> int:
        """Whole GPUs that a claim holds or asks for."""
        if claim.allocated:
            return sum(self._is_whole_gpu(result) for result in claim.devices)
        wanted = [r for r in claim.requests if not r.admin and self._asks_for_gpus(r.device_class)]
        return sum(1 if request.count is None else request.count for request in wanted)

    def _is_whole_gpu(self, result: AllocatedDeviceFact) -> bool:
        _, device = self._devices.get(result.key, (None, None))
        return not result.admin and is_whole_gpu(result.driver, device)

    def _asks_for_gpus(self, class_name: str | None) -> bool:
        device_class = self._classes.get(class_name or "")
        if device_class is None or not device_class.drivers:
            return is_gpu_driver(class_name or "")
        whole = not device_class.types or "gpu" in device_class.types
        return whole and any(is_gpu_driver(driver) for driver in device_class.drivers)


class JoinedDevices:
    """The current index, and the pods with claims that it is joined into."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._pods: dict[str, PodFact] = {}  # as Kubernetes has them
        self.index = DeviceIndex(resource)

    def build(self, facts: DeviceFacts, pods: Iterable[PodFact]) -> list[PodFact]:
        """Replace everything, and return the joined pods."""
        self.index, self._pods = DeviceIndex(self._resource, facts), {}
        return [self.put(pod) for pod in pods]

    def change(self, facts: DeviceFacts) -> tuple[dict[str, PodFact], set[str]]:
        """Replace the facts, and return the pods and the nodes to join again."""
        before, self.index = self.index, DeviceIndex(self._resource, facts)
        claims, nodes = before.changed(self.index)
        pods = self._pods.items()
        return {
            uid: pod for uid, pod in pods if any((pod.namespace, each.claim) in claims for each in pod.device_claims)
        }, nodes

    def put(self, pod: PodFact) -> PodFact:
        """Add or update a pod, and return it joined."""
        if not pod.device_claims:
            return pod
        self._pods[pod.uid] = pod
        return self.index.pod(pod)

    def drop(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def node(self, node: NodeFact | None, agent: AgentFact | None) -> NodeFact | None:
        """A node joined, given its agent."""
        inventory = agent.snapshot.gpu if agent is not None and agent.snapshot is not None else None
        return self.index.node(node, len(inventory.gpus) if inventory else None) if node is not None else None


def _latest(slices: Iterable[ResourceSliceFact]) -> list[ResourceSliceFact]:
    """Slices of the latest generation of each pool."""
    generations: dict[tuple[str, str], int] = {}
    slices = tuple(slices)
    for each in slices:
        pool = each.driver, each.pool
        generations[pool] = max(each.generation, generations.get(pool, 0))
    return [each for each in slices if each.generation >= generations[each.driver, each.pool]]


def _total(plugin: float, offered: int, gpu_count: int | None) -> float:
    """GPUs of a node by device plugin and by DRA. Those that both offer count once."""
    both = min(plugin, offered)
    if gpu_count is not None:
        both = min(both, max(0.0, plugin + offered - gpu_count))
    return plugin + offered - both


def _plus(amounts: Mapping[str, float], resource: str, amount: float) -> Amounts:
    return {**amounts, resource: amounts.get(resource, 0.0) + amount}
