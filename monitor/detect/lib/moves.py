"""The fewest pods to move to other nodes so that one node has enough free GPUs. A small exact search, bounded. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from monitor.explain.fit import TOLERANCE, NodeFit, fit, gpu_resource
from monitor.facts.cluster_facts import World
from monitor.facts.kube import PodFact

MAX_MOVES = 3  # who has to move more had better wait
MAX_TARGETS = 24
MAX_PODS = 10
MAX_DESTINATIONS = 8
MAX_FIT_CHECKS = 600  # how often, in all, it may be asked whether a pod fits somewhere
UNMOVABLE = ("DaemonSet", "Node")


@dataclass(frozen=True)
class Move:
    """A pod that goes from one node to another, and how many GPUs it takes along."""

    pod: PodFact
    gpus: int
    source: str
    target: str


@dataclass
class _MoveSearch:
    """One search: who waits, what is free on each node, and how much may still be asked."""

    waiting: PodFact
    facts: World
    free: dict[str, int]
    resource: str
    asked: int
    left: int = MAX_FIT_CHECKS
    fitting: dict[tuple[str, str], bool] = field(default_factory=dict)

    def fits(self, pod: PodFact, node: str) -> bool:
        """Return whether a pod could go to a node as that is now. Once too much has been asked: no."""
        key = pod.uid, node
        if key not in self.fitting:
            if self.left <= 0:
                return False
            self.left -= 1
            self.fitting[key] = fit(pod, self.facts.node_by_name[node], self.facts, self.resource).fits
        return self.fitting[key]


def fewest_moves(waiting: PodFact, fits: Sequence[NodeFit], facts: World) -> tuple[Move, ...] | None:
    """Given a pod that waits and the nodes as it sees them, return the fewest moves that make room, or None."""
    resource = gpu_resource(waiting, facts)
    asked = round(waiting.requests.get(resource, 0.0))
    search = _MoveSearch(waiting, facts, {each.node.name: each.free for each in fits}, resource, asked)
    targets = sorted((each for each in fits if each.usable and each.total >= asked), key=lambda each: -each.free)
    movable = {each.node.name: _movable(each.node.name, facts, resource) for each in targets[:MAX_TARGETS]}
    for count in range(1, MAX_MOVES + 1):
        plans = [plan for node, pods in movable.items() if (plan := _clear(node, pods, count, search)) is not None]
        if plans:
            return min(plans, key=lambda plan: (sum(move.gpus for move in plan), plan[0].source))
    return None


def _movable(node: str, facts: World, resource: str) -> list[tuple[PodFact, int]]:
    """Return the pods with GPUs that could be elsewhere: the smallest first, and of those the one that ran least."""
    found = [
        (pod, gpus)
        for pod in facts.bound.get(node, ())
        if (gpus := round(pod.requests.get(resource, 0.0))) > 0
        and pod.deletion_at is None
        and (pod.owner is None or pod.owner.kind not in UNMOVABLE)
    ]
    return sorted(found, key=lambda each: (each[1], -(each[0].created_at or 0.0), each[0].uid))[:MAX_PODS]


def _clear(node: str, pods: list[tuple[PodFact, int]], count: int, search: _MoveSearch) -> tuple[Move, ...] | None:
    """Return how to clear a node by moving so many pods, as few GPUs as can be, or None."""
    need = search.asked - search.free[node]
    enough = (chosen for chosen in combinations(pods, count) if sum(gpus for _, gpus in chosen) >= need)
    for chosen in sorted(enough, key=lambda each: sum(gpus for _, gpus in each)):
        if not _has_room(node, [pod for pod, _ in chosen], search):
            continue
        places = dict(search.free)
        del places[node]
        largest_first = sorted(chosen, key=lambda each: -each[1])
        if (targets := _place(largest_first, places, search)) is not None:
            pairs = zip(largest_first, targets, strict=True)
            return tuple(Move(pod, gpus, node, target) for (pod, gpus), target in pairs)
    return None


def _has_room(node: str, leaving: list[PodFact], search: _MoveSearch) -> bool:
    """Whether the pod that waits also gets its CPUs and its memory once these have left."""
    fact = search.facts.node_by_name[node]
    for name, need in search.waiting.requests.items():
        freed = sum(pod.requests.get(name, 0.0) for pod in leaving)
        if name != search.resource and need > search.facts.free(fact, name) + freed + TOLERANCE:
            return False
    return True


def _place(pods: list[tuple[PodFact, int]], places: dict[str, int], search: _MoveSearch) -> list[str] | None:
    """Return a node for each pod, or None. Nodes that are nearly full come first, so that no new gaps arise."""
    if not pods:
        return []
    (pod, gpus), rest = pods[0], pods[1:]
    for node in _destinations(pod, gpus, places, search):
        places[node] -= gpus
        if (others := _place(rest, places, search)) is not None:
            return [node, *others]
        places[node] += gpus
    return None


def _destinations(pod: PodFact, gpus: int, places: dict[str, int], search: _MoveSearch) -> Iterator[str]:
    options = sorted((free, node) for node, free in places.items() if free >= gpus)
    found = (node for _, node in options if search.fits(pod, node))
    for _, node in zip(range(MAX_DESTINATIONS), found, strict=False):
        yield node
