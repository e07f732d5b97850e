"""GPUs of a node as counted by the driver and by Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.detect.subjects import NodeSubject
from monitor.facts.gpu_resources import Unit, resource_kinds
from monitor.facts.gpu_sharing import counts_slots, shares_gpus


@dataclass(frozen=True)
class GpuCounts:
    """Counts of one node; `gpus` is the driver's."""

    gpus: int
    capacity: int
    allocatable: int


def gpu_counts(node: NodeSubject, resource: str) -> GpuCounts | None:
    """Counts of a node in Kubernetes, if all three are known. If its GPUs are shared, Kubernetes counts shares."""
    if node.view is None or node.view.cards is None or node.fact is None:
        return None
    amounts = node.fact.capacity.get(resource, 0), node.fact.allocatable.get(resource, 0)
    return GpuCounts(node.view.cards, *(int(amount) for amount in amounts))


def gpus_are_shared(node: NodeSubject, counts: GpuCounts, resource: str) -> bool:
    """Whether a node's GPUs are shared or partitioned, so that the counts rightly differ.

    A device plugin that does not say so is recognised by its count: a multiple of the GPUs.
    """
    if node.fact is not None:
        kinds = resource_kinds(name for name, amount in node.fact.capacity.items() if amount and name != resource)
        if shares_gpus(node.fact) or any(kind.unit not in (Unit.GPU, Unit.DEVICE) for kind in kinds):
            return True
    if node.current is not None:
        snapshot = node.current.snapshot
        if any(device.replica is not None for device in snapshot.pod_devices or ()):
            return True
        if snapshot.gpu is not None and any(gpu.mig_enabled for gpu in snapshot.gpu.gpus):
            return True
    return counts_slots(counts.capacity, counts.gpus)
