"""GPUs per node as counted by the driver and by Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.detect.base import RuleContext

REPLICAS_LABEL = "nvidia.com/gpu.replicas"


@dataclass(frozen=True)
class GpuCounts:
    """Counts of one node; `gpus` is the driver's."""

    gpus: int
    capacity: int
    allocatable: int


def gpu_counts_by_node(context: RuleContext) -> dict[str, GpuCounts]:
    """Nodes for which all three counts are known."""
    view = context.facts.view
    return {
        node.name: GpuCounts(node.cards, node.capacity, node.allocatable)
        for node in (view.nodes if view else ())
        if node.in_kubernetes and node.cards is not None and node.capacity is not None and node.allocatable is not None
    }


def gpus_are_shared(context: RuleContext, node: str, counts: GpuCounts) -> bool:
    """Whether a node's GPUs are shared or partitioned, so that the counts rightly differ.

    A device plugin that does not say so is recognised by its count: a multiple of the GPUs.
    """
    fact, snapshot = context.facts.node_by_name.get(node), context.facts.snapshots.get(node)
    if fact is not None:
        if fact.labels.get(REPLICAS_LABEL, "1") not in ("0", "1", ""):
            return True
        resource = context.facts.resource
        if any(
            amount and ("/mig-" in name or name.startswith(f"{resource}.")) for name, amount in fact.capacity.items()
        ):
            return True
    if snapshot is not None:
        if any(device.replica is not None for device in snapshot.pod_devices or ()):
            return True
        if snapshot.gpu is not None and any(gpu.mig_enabled for gpu in snapshot.gpu.gpus):
            return True
    return counts.gpus > 0 and counts.capacity >= 2 * counts.gpus and counts.capacity % counts.gpus == 0
