"""How many cards a node has: as the driver counts them, and as Kubernetes does. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.detect.base import RuleContext

REPLICAS_LABEL = "nvidia.com/gpu.replicas"


@dataclass(frozen=True)
class GpuCounts:
    """The figures of one node."""

    gpus: int
    capacity: int
    allocatable: int


def gpu_counts_by_node(context: RuleContext) -> dict[str, GpuCounts]:
    """Return the nodes of which all three figures are known."""
    view = context.facts.view
    return {
        node.name: GpuCounts(node.cards, node.capacity, node.allocatable)
        for node in (view.nodes if view else ())
        if node.in_kubernetes and node.cards is not None and node.capacity is not None and node.allocatable is not None
    }


def gpus_are_shared(context: RuleContext, node: str, counts: GpuCounts) -> bool:
    """Return whether a node's cards are handed out several times over or in slices: then the figures differ rightly.

    A device plugin that says nothing of it is known by its figure: each card so many times.
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
