"""The fewest pods to move so that one node has enough free GPUs: an exact search with bounded cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from monitor.explain.fit import MAX_ROUNDING_ERROR, NodeFit, fit, gpu_resource
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact

MAX_MOVES = 3  # with more moves, waiting is cheaper
MAX_TARGETS = 24
MAX_PODS = 10
MAX_DESTINATIONS = 8
MAX_FIT_CHECKS = 600  # per search
UNMOVABLE = ("DaemonSet", "Node")


@dataclass(frozen=True)
class Move:
    """A pod moved between nodes, and its number of GPUs."""

    pod: PodFact
    gpus: int
    source: str
    target: str


@dataclass
class _MoveSearch:
    """State of a search: the pending pod, free GPUs by node, and the remaining fit checks."""

    waiting: PodFact
    facts: ClusterFacts
    free: dict[str, int]
    resource: str
    asked: int
    left: int = MAX_FIT_CHECKS
    fitting: dict[tuple[str, str], bool] = field(default_factory=dict)

    def fits(self, pod: PodFact, node: str) -> bool:
        """Whether a pod fits on a node as it is now; False once the fit checks are used up."""
        key = pod.uid, node
        if key not in self.fitting:
            if self.left <= 0:
                return False
            self.left -= 1
            self.fitting[key] = fit(pod, self.facts.node_by_name[node], self.facts, self.resource).fits
        return self.fitting[key]


def fewest_moves(waiting: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> tuple[Move, ...] | None:
    """The fewest moves that make room for a pending pod, or None; `fits` are the nodes as that pod sees them."""
    resource = gpu_resource(waiting, facts)
    asked = round(waiting.requests.get(resource, 0.0))
    search = _MoveSearch(waiting, facts, {node.node.name: node.free for node in fits}, resource, asked)
    targets = sorted((node for node in fits if node.usable and node.total >= asked), key=lambda node: -node.free)
    movable = {node.node.name: _movable(node.node.name, facts, resource) for node in targets[:MAX_TARGETS]}
    for count in range(1, MAX_MOVES + 1):
        plans = [plan for node, pods in movable.items() if (plan := _clear(node, pods, count, search)) is not None]
        if plans:
            return min(plans, key=lambda plan: (sum(move.gpus for move in plan), plan[0].source))
    return None


def _movable(node: str, facts: ClusterFacts, resource: str) -> list[tuple[PodFact, int]]:
    """Pods with GPUs that may be moved, smallest first; among equals the one that started last."""
    movable = [
        (pod, gpus)
        for pod in facts.bound.get(node, ())
        if (gpus := round(pod.requests.get(resource, 0.0))) > 0
        and pod.deletion_at is None
        and (pod.owner is None or pod.owner.kind not in UNMOVABLE)
    ]
    return sorted(movable, key=lambda item: (item[1], -(item[0].created_at or 0.0), item[0].uid))[:MAX_PODS]


def _clear(node: str, pods: list[tuple[PodFact, int]], count: int, search: _MoveSearch) -> tuple[Move, ...] | None:
    """Moves of `count` pods that free enough GPUs on a node, moving as few GPUs as possible, or None."""
    need = search.asked - search.free[node]
    enough = (chosen for chosen in combinations(pods, count) if sum(gpus for _, gpus in chosen) >= need)
    for chosen in sorted(enough, key=lambda item: sum(gpus for _, gpus in item)):
        if not _has_room(node, [pod for pod, _ in chosen], search):
            continue
        free = dict(search.free)
        del free[node]
        largest_first = sorted(chosen, key=lambda item: -item[1])
        if (targets := _place(largest_first, free, search)) is not None:
            pairs = zip(largest_first, targets, strict=True)
            return tuple(Move(pod, gpus, node, target) for (pod, gpus), target in pairs)
    return None


def _has_room(node: str, leaving: list[PodFact], search: _MoveSearch) -> bool:
    """Whether CPU and memory also suffice for the pending pod once these pods have left."""
    fact = search.facts.node_by_name[node]
    for name, need in search.waiting.requests.items():
        freed = sum(pod.requests.get(name, 0.0) for pod in leaving)
        if name != search.resource and need > search.facts.free(fact, name) + freed + MAX_ROUNDING_ERROR:
            return False
    return True


def _place(pods: list[tuple[PodFact, int]], free: dict[str, int], search: _MoveSearch) -> list[str] | None:
    """A node for each pod, or None. The fullest nodes are tried first, which avoids new fragments."""
    if not pods:
        return []
    (pod, gpus), rest = pods[0], pods[1:]
    for node in _destinations(pod, gpus, free, search):
        free[node] -= gpus
        if (others := _place(rest, free, search)) is not None:
            return [node, *others]
        free[node] += gpus
    return None


def _destinations(pod: PodFact, gpus: int, free_by_node: dict[str, int], search: _MoveSearch) -> Iterator[str]:
    options = sorted((free, node) for node, free in free_by_node.items() if free >= gpus)
    fitting = (node for _, node in options if search.fits(pod, node))
    for _, node in zip(range(MAX_DESTINATIONS), fitting, strict=False):
        yield node
