"""How a pod fits on each node: free GPUs, and the obstacles to placing the pod there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import NodeFact, NodeRequirementFact, PodFact, TaintFact, TolerationFact

CORDON_TAINT = "node.kubernetes.io/unschedulable"
NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
MAX_ROUNDING_ERROR = 1e-6  # amounts are sums of floats
Requests = Sequence[tuple[str, float]]  # sorted by name


class ObstacleKind(StrEnum):
    """Kind of obstacle to placing a pod on a node."""

    NOT_READY = "not-ready"
    CORDONED = "cordoned"
    TAINT = "taint"
    SELECTOR = "selector"
    GPU = "gpu"
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    OTHER = "other-resource"


# Obstacles that more free resources would not remove.
EXCLUSIONS = (ObstacleKind.NOT_READY, ObstacleKind.CORDONED, ObstacleKind.TAINT, ObstacleKind.SELECTOR)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One obstacle. `detail` is the taint, the requirement or the resource."""

    kind: ObstacleKind
    detail: str = ""
    needs: float = 0.0
    free: float = 0.0


@dataclass(frozen=True, slots=True)
class NodeFit:
    """How a pod fits on one node. `free` and `total` count GPUs."""

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

    def exclusions(self) -> tuple[ObstacleKind, ...]:
        """Distinct exclusions that keep the pod off the node."""
        return tuple(kind for kind in EXCLUSIONS if any(obstacle.kind is kind for obstacle in self.obstacles))


def gpu_resource(pod: PodFact, facts: ClusterFacts) -> str:
    """Name of the GPU resource that the pod requests: MIG slices and shared GPUs have their own."""
    if pod.requests.get(facts.resource):
        return facts.resource
    names = [name for name, amount in pod.requests.items() if amount and "/" in name]
    return next((name for name in sorted(names) if "gpu" in name or "/mig-" in name), facts.resource)


def requested_gpus(pod: PodFact, facts: ClusterFacts) -> int:
    """Number of GPUs that the pod requests."""
    return round(pod.requests.get(gpu_resource(pod, facts), 0.0))


def fit_all(pod: PodFact, facts: ClusterFacts) -> tuple[NodeFit, ...]:
    """Fit of the pod on every node."""
    resource, requests = gpu_resource(pod, facts), sorted(pod.requests.items())
    return tuple(_fit(pod, node, facts, resource, requests) for node in facts.nodes)


def fit(pod: PodFact, node: NodeFact, facts: ClusterFacts, resource: str) -> NodeFit:
    """Fit of the pod on one node, with all obstacles."""
    return _fit(pod, node, facts, resource, sorted(pod.requests.items()))


def placement_obstacles(pod: PodFact, node: NodeFact) -> tuple[Obstacle, ...]:
    """Taints and requirements that exclude the pod from the node, regardless of free resources."""
    return (*_taints(pod, node), *_selection(pod, node))


def _fit(pod: PodFact, node: NodeFact, facts: ClusterFacts, resource: str, requests: Requests) -> NodeFit:
    obstacles = (*_state(pod, node), *placement_obstacles(pod, node), *_room(requests, node, facts, resource))
    total = int(node.allocatable.get(resource, 0.0))
    # The view may be older than the pods and must not offer GPUs that the scheduler has just assigned.
    free = min(facts.free_gpus(node, resource), max(0, int(facts.free(node, resource) + MAX_ROUNDING_ERROR)))
    return NodeFit(node, free if total else 0, total, obstacles)


def _state(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    if node.ready is not True:
        yield Obstacle(ObstacleKind.NOT_READY, node.ready_reason or "")
    cordon = TaintFact(key=CORDON_TAINT, effect="NoSchedule")
    if node.unschedulable and not _tolerated(pod, cordon):
        yield Obstacle(ObstacleKind.CORDONED)


def _taints(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    """Untolerated taints, except those that only repeat the node's state."""
    for taint in node.taints:
        repeated = (node.unschedulable and taint.key == CORDON_TAINT) or (
            node.ready is not True and taint.key in NOT_READY_TAINTS
        )
        if taint.effect in BLOCKING_EFFECTS and not repeated and not _tolerated(pod, taint):
            yield Obstacle(ObstacleKind.TAINT, taint_text(taint))


def taint_text(taint: TaintFact) -> str:
    """The taint in kubectl syntax."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _tolerated(pod: PodFact, taint: TaintFact) -> bool:
    return any(tolerates(toleration, taint) for toleration in pod.tolerations)


def tolerates(toleration: TolerationFact, taint: TaintFact) -> bool:
    """Whether the toleration matches the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("Equal", "") and (toleration.value or "") == (taint.value or "")


def _selection(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    for key, value in sorted(pod.node_selector.items()):
        if node.labels.get(key) != value:
            yield Obstacle(ObstacleKind.SELECTOR, f"{key}={value}")
    if pod.node_affinity and not any(_term_matches(term, node) for term in pod.node_affinity):
        yield Obstacle(ObstacleKind.SELECTOR, affinity_text(pod.node_affinity))


def _term_matches(term: tuple[NodeRequirementFact, ...], node: NodeFact) -> bool:
    """A term without requirements matches no node, as in Kubernetes."""
    return bool(term) and all(_matches(requirement, node) for requirement in term)


def _matches(requirement: NodeRequirementFact, node: NodeFact) -> bool:
    fields = {"metadata.name": node.name} if requirement.field else node.labels
    value = fields.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: NodeRequirementFact, value: str | None) -> bool:
    try:
        have, limit = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return have > limit if requirement.operator == "Gt" else have < limit


def affinity_text(terms: Iterable[Iterable[NodeRequirementFact]]) -> str:
    """Required terms as text: `zone in (a, b) and gpu exists or ...`."""
    return " or ".join(
        " and ".join(_requirement_text(requirement) for requirement in term) or "nothing" for term in terms
    )


def _requirement_text(requirement: NodeRequirementFact) -> str:
    operators = {"In": "in", "NotIn": "not in", "Exists": "exists", "DoesNotExist": "absent", "Gt": ">", "Lt": "<"}
    values = ", ".join(requirement.values)
    if requirement.operator == "In" and len(requirement.values) == 1:
        return f"{requirement.key}={values}"
    operator = operators.get(requirement.operator, requirement.operator)
    if requirement.operator in ("In", "NotIn"):
        return f"{requirement.key} {operator} ({values})"
    return f"{requirement.key} {operator} {values}".rstrip()


def _room(requests: Requests, node: NodeFact, facts: ClusterFacts, gpu: str) -> Iterable[Obstacle]:
    """Insufficient resources, by requests as the scheduler counts them, not by usage."""
    have, used = node.allocatable, facts.used.get(node.name, {})
    for name, needs in requests:
        free = have.get(name, 0.0) - used.get(name, 0.0)
        if needs > free and needs > 0 and needs > free + max(MAX_ROUNDING_ERROR, needs * 1e-9):
            kinds = {gpu: ObstacleKind.GPU, "cpu": ObstacleKind.CPU, "memory": ObstacleKind.MEMORY}
            yield Obstacle(kinds.get(name, ObstacleKind.OTHER), name, needs, max(0.0, free))
    if "pods" in node.allocatable and facts.free(node, "pods") < 1:
        yield Obstacle(ObstacleKind.PODS, "pods", 1, 0)
