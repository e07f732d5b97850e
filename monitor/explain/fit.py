"""How a pod fits on each node: free GPUs, and the obstacles to placing the pod there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.explain.placement import EXCLUSIONS, Obstacle, ObstacleKind, PlacementCheck
from monitor.facts.base import Fact
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_requests import amount_value, brief, gpu_amounts, main_resource
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import Amounts, NodeFact, PodFact
from monitor.facts.text import Value

MAX_ROUNDING_ERROR = 1e-6  # amounts are sums of floats
_NOTHING: Mapping[str, float] = {}
Needs = Sequence[tuple[str, float, float, ObstacleKind]]  # resource, amount, rounding error, kind


class NodeFit(Fact, frozen=True):
    """How a pod fits on one node. `free` and `total` are amounts of its GPU resource; 0 where that has another unit."""

    node: NodeFact
    free: int
    total: int
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the pod may run there, regardless of free resources. Exclusions precede other obstacles."""
        return not self.obstacles or self.obstacles[0].kind not in EXCLUSIONS

    @property
    def fits(self) -> bool:
        return not self.obstacles

    @property
    def lacks_gpus(self) -> bool:
        return any(obstacle.kind is ObstacleKind.GPU for obstacle in self.obstacles)

    def exclusions(self) -> tuple[ObstacleKind, ...]:
        """Distinct exclusions that keep the pod off the node."""
        return tuple(kind for kind in EXCLUSIONS if any(obstacle.kind is kind for obstacle in self.obstacles))


def gpu_resource(pod: PodFact, facts: ClusterFacts) -> str:
    """Name of the GPU resource that the pod is counted by: MIG slices, shares and other accelerators have their own."""
    return main_resource(pod.requests, facts.resource) or facts.resource


def requested_gpus(pod: PodFact, facts: ClusterFacts) -> int:
    """How much of its GPU resource the pod requests: a number of GPUs, or of shares in their unit."""
    return round(pod.requests.get(gpu_resource(pod, facts), 0.0))


def listed_gpus(pod: PodFact, facts: ClusterFacts) -> int:
    """The same, as far as nodes list the resource: 0 for what a pod asks for in an annotation."""
    kind = resource_kind(gpu_resource(pod, facts))
    return 0 if kind is not None and kind.annotated else requested_gpus(pod, facts)


def gpus_in_words(pod: PodFact, facts: ClusterFacts) -> Value:
    """What the pod requests of GPUs, shares included, for a text (format `gpus`)."""
    return amount_value(gpu_request(pod, facts), facts.resource)


def gpu_request(pod: PodFact, facts: ClusterFacts) -> dict[str, float]:
    """What the pod requests of GPUs, by resource; GPUs under the name as which they are counted."""
    return gpu_amounts(pod.requests, facts.resource, facts.gpu_nodes.counted_as(pod))


def total_in_words(pods: Iterable[PodFact], facts: ClusterFacts) -> Value:
    """What the pods request of GPUs together, for a text (format `gpus`)."""
    total: dict[str, float] = {}
    for pod in pods:
        for name, amount in gpu_request(pod, facts).items():
            total[name] = total.get(name, 0.0) + amount
    return amount_value(total, facts.resource)


def amount_in_words(pod: PodFact, amount: float, facts: ClusterFacts) -> Value:
    """An amount of the pod's GPU resource for a text (format `gpus`)."""
    return amount_value({next(iter(gpu_request(pod, facts)), facts.resource): amount}, facts.resource)


def amount_in_units(pod: PodFact, amount: float, facts: ClusterFacts) -> Value:
    """An amount of the pod's GPU resource with its unit, but without a noun: 8, `10 GiB`, `50%`."""
    return brief(gpu_resource(pod, facts), amount)


def fit_all(pod: PodFact, facts: ClusterFacts) -> tuple[NodeFit, ...]:
    """Fit of the pod on every node."""
    resource, placement = gpu_resource(pod, facts), PlacementCheck(pod)
    needs = _needs(pod, resource)
    alike = facts.gpu_nodes.counts_alike
    return tuple(
        _fit(placement, node, facts, resource, needs, _offers(pod, node, facts), alike(pod, node.name))
        for node in facts.nodes
    )


def fit(pod: PodFact, node: NodeFact, facts: ClusterFacts, resource: str) -> NodeFit:
    """Fit of the pod on one node, with all obstacles."""
    needs, have = _needs(pod, resource), _offers(pod, node, facts)
    return _fit(PlacementCheck(pod), node, facts, resource, needs, have, facts.gpu_nodes.counts_alike(pod, node.name))


def pods_with_room(pod: PodFact, node: NodeFact, facts: ClusterFacts) -> int:
    """How many pods like this one the free resources of a node hold together, but for exclusions and pod slots."""
    have, used = _offers(pod, node, facts), facts.used.get(node.name, _NOTHING)
    counts = (
        int((have.get(name, 0.0) - used.get(name, 0.0) + rounding_error) // amount)
        for name, amount, rounding_error, _ in _needs(pod, gpu_resource(pod, facts))
    )
    return max(0, min(counts, default=0))


def requirements_on(pod: PodFact, node: NodeFact, facts: ClusterFacts) -> tuple[Amounts, Mapping[str, float]]:
    """What the pod needs of a node, and what it can get there."""
    needs = {name: amount for name, amount, _, _ in _needs(pod, gpu_resource(pod, facts))}
    return needs, _offers(pod, node, facts)


def _offers(pod: PodFact, node: NodeFact, facts: ClusterFacts) -> Mapping[str, float]:
    """What the pod can get of the node: not GPUs that only claims reach, or with a claim those of a device plugin."""
    if not facts.devices.slices:
        return node.allocatable
    if pod.claimed_gpus:
        reachable = bool(node.claimable_gpus)
    else:
        reachable = node.plugin_gpus != 0 or facts.devices.serves(facts.resource)
    return node.allocatable if reachable else {**node.allocatable, facts.resource: 0.0}


def _needs(pod: PodFact, gpu: str) -> Needs:
    """Requests of the pod, sorted by resource. Whether a card has room for a share only its scheduler knows."""
    kinds = {gpu: ObstacleKind.GPU, "cpu": ObstacleKind.CPU, "memory": ObstacleKind.MEMORY}
    return [
        (name, amount, max(MAX_ROUNDING_ERROR, amount * 1e-9), kinds.get(name, ObstacleKind.OTHER))
        for name, amount in sorted(pod.requests.items())
        if amount > 0
        and ((kind := resource_kind(name)) is None or not (kind.annotated or (kind.per_card and name != gpu)))
    ]


def _fit(
    placement: PlacementCheck,
    node: NodeFact,
    facts: ClusterFacts,
    resource: str,
    needs: Needs,
    have: Mapping[str, float],
    comparable: bool,
) -> NodeFit:
    used = facts.used.get(node.name, _NOTHING)
    obstacles = (*placement.exclusions(node), *_shortages(needs, have, used))
    total = int(have.get(resource, 0.0)) if comparable else 0
    if not total:
        return NodeFit(node, 0, total, obstacles)
    # The view may be older than the pods and must not offer GPUs that the scheduler has just assigned.
    unassigned = int(have[resource] - used.get(resource, 0.0) + MAX_ROUNDING_ERROR)
    return NodeFit(node, min(facts.free_gpus(node, resource), max(0, unassigned)), total, obstacles)


def _shortages(needs: Needs, have: Mapping[str, float], used: Mapping[str, float]) -> Sequence[Obstacle]:
    """Insufficient resources, by requests as the scheduler counts them, not by usage."""
    short = []
    for name, amount, rounding_error, kind in needs:
        free = have.get(name, 0.0) - used.get(name, 0.0)
        if amount > free + rounding_error:
            short.append(Obstacle(kind, name, amount, max(0.0, free)))
    if "pods" in have and have["pods"] - used.get("pods", 0.0) < 1:
        short.append(Obstacle(ObstacleKind.PODS, "pods", 1, 0))
    return short
