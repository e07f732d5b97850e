"""Informers for all watched resources: one store and one reflector per resource."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from monitor.facts.devices import DeviceClassFact, DeviceFacts, ResourceClaimFact, ResourceSliceFact
from monitor.facts.kube import EventFact, NamespaceFact, NodeFact, OwnerFact, PodFact, SourceFact
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from monitor.kube import resources
from monitor.kube.client import KubeApi
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.reflector import OnChange, Reflector, WatchTiming
from monitor.kube.resources import Resource
from monitor.kube.store import ObjectStore


class KubeInformers:
    """Stores of all resources, kept up to date between start() and stop()."""

    def __init__(
        self,
        api: KubeApi,
        keep: PodFieldFilter,
        *,
        on_change: OnChange | None = None,
        timing: WatchTiming | None = None,
        now: Callable[[], float] = time.time,
        job_ends: bool = False,
    ) -> None:
        """With `job_ends`, Jobs are read with how they end, which costs more than their metadata."""
        self.pods = ObjectStore[PodFact]()
        self.nodes = ObjectStore[NodeFact]()
        self.events = ObjectStore[EventFact]()
        self.quotas = ObjectStore[QuotaFact]()
        self.namespaces = ObjectStore[NamespaceFact]()
        self.replica_sets = ObjectStore[OwnerFact]()
        self.jobs = ObjectStore[OwnerFact]()  # with `job_ends`, of JobFact
        self.volcano_queues = ObjectStore[QueueFact]()
        self.pod_groups = ObjectStore[PodGroupFact]()
        self.cluster_queues = ObjectStore[QueueFact]()
        self.local_queues = ObjectStore[QueueFact]()
        self.workloads = ObjectStore[WorkloadFact]()
        self.resource_claims = ObjectStore[ResourceClaimFact]()
        self.resource_slices = ObjectStore[ResourceSliceFact]()
        self.device_classes = ObjectStore[DeviceClassFact]()
        self._queued: tuple[int, dict[str, OwnerFact]] = (-1, {})  # version of the workloads, and their owners
        self._reflectors = [
            Reflector(api, resource, store, on_change=on_change, timing=timing, now=now)
            for resource, store in self._watched(keep, resources.ENDING_JOBS if job_ends else resources.JOBS)
        ]

    def _watched(
        self, keep: PodFieldFilter, jobs: Resource = resources.JOBS
    ) -> tuple[tuple[Resource, ObjectStore[Any]], ...]:
        return (
            (resources.pods(keep), self.pods),
            (resources.NODES, self.nodes),
            (resources.EVENTS, self.events),
            (resources.QUOTAS, self.quotas),
            (resources.NAMESPACES, self.namespaces),
            (resources.REPLICA_SETS, self.replica_sets),
            (jobs, self.jobs),
            (resources.VOLCANO_QUEUES, self.volcano_queues),
            (resources.POD_GROUPS, self.pod_groups),
            (resources.CLUSTER_QUEUES, self.cluster_queues),
            (resources.LOCAL_QUEUES, self.local_queues),
            (resources.WORKLOADS, self.workloads),
            (resources.RESOURCE_CLAIMS, self.resource_claims),
            (resources.RESOURCE_SLICES, self.resource_slices),
            (resources.DEVICE_CLASSES, self.device_classes),
        )

    def start(self) -> None:
        for reflector in self._reflectors:
            reflector.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Stop all threads. A thread stuck in connecting is abandoned after `timeout` seconds."""
        for reflector in self._reflectors:
            reflector.stop()
        deadline = time.monotonic() + timeout
        for reflector in self._reflectors:
            reflector.join(max(0.0, deadline - time.monotonic()))

    def wait_settled(self, timeout: float) -> bool:
        """Whether each resource is synced, forbidden or absent within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        return all(reflector.wait_settled(max(0.0, deadline - time.monotonic())) for reflector in self._reflectors)

    def sources(self) -> tuple[SourceFact, ...]:
        return tuple(reflector.fact() for reflector in self._reflectors)

    def queues(self) -> tuple[QueueFact, ...]:
        """Queues of all schedulers."""
        stores = (self.volcano_queues, self.cluster_queues, self.local_queues)
        return tuple(queue for store in stores for queue in store.snapshot().items)

    def devices(self) -> DeviceFacts:
        """Everything about Dynamic Resource Allocation."""
        states = {source.resource: source.state for source in self.sources()}
        return DeviceFacts(
            claims=self.resource_claims.snapshot().items,
            slices=self.resource_slices.snapshot().items,
            classes=self.device_classes.snapshot().items,
            known=all(states.get(resource.name) == "synced" for resource in resources.DEVICE_RESOURCES),
        )

    def owner(self, key: str) -> OwnerFact | None:
        """The ReplicaSet or Job with this uid, or the object that Kueue queues by this name. Implements OwnerLookup."""
        return self.replica_sets.get(key) or self.jobs.get(key) or self._queued_owners().get(key)

    def _queued_owners(self) -> dict[str, OwnerFact]:
        workloads = self.workloads.snapshot()
        if self._queued[0] != workloads.version:
            self._queued = (workloads.version, queued_owners(workloads.items))
        return self._queued[1]

    def namespace_owners(self) -> dict[str, str]:
        """User by namespace, where the namespace names one."""
        return {namespace.name: namespace.owner for namespace in self.namespaces.snapshot().items if namespace.owner}


def queued_owners(workloads: Iterable[WorkloadFact]) -> dict[str, OwnerFact]:
    """Objects that Kueue queues, with their queue, by `namespace/kind/name`: the pods of most carry no queue."""
    queued = ((each, each.owner) for each in workloads if each.owner is not None and each.queue is not None)
    return {
        f"{each.namespace}/{owner.kind}/{owner.name}": OwnerFact(
            uid=owner.uid or each.uid, name=owner.name, namespace=each.namespace, queue=each.queue
        )
        for each, owner in queued
    }
