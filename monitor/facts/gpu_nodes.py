"""What one GPU of a request is: a whole one or a share, depending on the nodes on which the pod runs or may run.

Decided here and nowhere else, for the view and for explanations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from monitor.facts.cluster import NodeView
from monitor.facts.gpu_requests import is_hami
from monitor.facts.gpu_resources import GPU_RESOURCE, SHARED_GPU, WHOLE_OR_SHARED
from monitor.facts.gpu_sharing import shares_gpus
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.placement import may_run_on

MAX_ANSWERS = 4096  # shapes of pending pods
_Shape = tuple[object, ...]


class _GpuNode(NamedTuple):
    """A node that offers GPUs. The rest of it decides which pods may run there."""

    shared: bool
    node: NodeFact


@dataclass
class GpuNodes:
    """Nodes of Kubernetes that offer GPUs, and which of them share theirs. Used from one thread."""

    resource: str = GPU_RESOURCE
    _nodes: dict[str, _GpuNode] = field(default_factory=dict)
    _unit: str | None = field(default=None, compare=False)  # None: not determined yet
    _answers: dict[_Shape, str] = field(default_factory=dict, compare=False)
    _changed: set[str] = field(default_factory=set, compare=False)  # nodes whose GPUs are or were shared
    _unit_before: str = field(default=GPU_RESOURCE, compare=False)
    _placement_changed: bool = field(default=False, compare=False)

    def put(self, name: str, node: NodeFact | None, view: NodeView | None) -> None:
        """Update a node; `view` also knows of sharing that only the kubelet's allocations show."""
        shared = self._shares(node, view)
        if node is None or shared is None:
            self.drop(name)
            return
        before, self._nodes[name] = self._nodes.get(name), _GpuNode(shared, node)
        if before is not None and before.shared is shared and _same_place(before.node, node):
            return
        self._note(name, shared is not (before is not None and before.shared))

    def drop(self, name: str) -> None:
        """Remove a node, or note that it offers no GPUs."""
        before = self._nodes.pop(name, None)
        if before is not None:
            self._note(name, before.shared)

    def _note(self, name: str, changed: bool) -> None:
        self._unit, self._placement_changed = None, True
        self._answers.clear()
        if changed:
            self._changed.add(name)

    def _shares(self, node: NodeFact | None, view: NodeView | None) -> bool | None:
        """Whether a node shares its GPUs; None if it offers none."""
        if view is not None and any(share.resource == self.resource for share in view.shares):
            return True
        return shares_gpus(node) if node is not None and node.capacity.get(self.resource) else None

    @property
    def unit(self) -> str:
        """What one GPU is where no node is named, such as in the limit of a queue, as the name of a resource."""
        if self._unit is None:
            self._unit = _unit({known.shared for known in self._nodes.values()})
        return self._unit

    def counted_as(self, pod: PodFact) -> str:
        """The name of the resource as which GPUs of a pod are counted: whole ones, shares, or either.

        GPUs of a pending pod are what they are on all nodes on which it may run.
        """
        if not pod.requests.get(self.resource):
            return GPU_RESOURCE
        if is_hami(pod.annotations, pod.scheduler, pod.requests):
            return SHARED_GPU
        if pod.node is not None:
            known = self._nodes.get(pod.node)
            return SHARED_GPU if known is not None and known.shared else GPU_RESOURCE
        return self._by_place(pod) if self.unit == WHOLE_OR_SHARED else self.unit

    def counts_alike(self, pod: PodFact, name: str) -> bool:
        """Whether an amount of GPUs of a node is in the unit in which those of a pod are counted."""
        known = self._nodes.get(name)
        if known is None or self.unit != WHOLE_OR_SHARED or not pod.requests.get(self.resource):
            return True
        unit = self.counted_as(pod)
        return unit == WHOLE_OR_SHARED or known.shared is (unit == SHARED_GPU)

    def _by_place(self, pod: PodFact) -> str:
        shape = (tuple(sorted(pod.node_selector.items())), pod.node_affinity, pod.tolerations)
        if shape not in self._answers:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            kinds = {known.shared for known in self._nodes.values() if may_run_on(pod, known.node)}
            self._answers[shape] = _unit(kinds or {True, False})
        return self._answers[shape]

    def take_changes(self) -> tuple[set[str], bool]:
        """Since the last call: nodes that began or ceased to share, and whether pending pods may count otherwise."""
        nodes, self._changed = self._changed, set()
        before, self._unit_before = self._unit_before, self.unit
        moved, self._placement_changed = self._placement_changed, False
        return nodes, before != self.unit or (moved and self.unit == WHOLE_OR_SHARED)


def _unit(kinds: set[bool]) -> str:
    if len(kinds) > 1:
        return WHOLE_OR_SHARED
    return SHARED_GPU if True in kinds else GPU_RESOURCE


def _same_place(one: NodeFact, other: NodeFact) -> bool:
    """Whether the same pods may run on both."""
    return one is other or (one.labels == other.labels and one.taints == other.taints)
