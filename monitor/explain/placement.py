"""Where a pod may be placed, regardless of free resources: node state, taints, selectors and node affinity."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from monitor.facts.base import Fact
from monitor.facts.kube import NodeFact, NodeRequirementFact, PodFact, TaintFact
from monitor.facts.placement import BLOCKING_EFFECTS, affinity_matches, is_tolerated

CORDON_TAINT = "node.kubernetes.io/unschedulable"
NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NOT_NAMED = object()  # any value of a label that the pod does not name


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


class Obstacle(Fact, frozen=True):
    """One obstacle. `detail` is the taint, the requirement or the resource."""

    kind: ObstacleKind
    detail: str = ""
    needs: float = 0.0
    free: float = 0.0


class PlacementCheck:
    """Exclusions of one pod by node. Nodes that are equal in everything the pod depends on are examined once."""

    def __init__(self, pod: PodFact) -> None:
        self._pod = pod
        self._labels, self._names = _named_values(pod)
        self._known: dict[tuple[object, ...], tuple[Obstacle, ...]] = {}

    def exclusions(self, node: NodeFact) -> tuple[Obstacle, ...]:
        """Obstacles that more free resources would not remove."""
        labels, name = node.labels, node.name
        alike: list[object] = [
            node.ready,
            node.ready_reason,
            node.unschedulable,
            node.taints,
            name if name in self._names else None,
        ]
        for key, named in self._labels:
            value = labels.get(key)
            alike.append(value if value is None or named is None or value in named else _NOT_NAMED)
        found = self._known.get(tuple(alike))
        if found is None:
            found = (*_state(self._pod, node), *_taints(self._pod, node), *_selection(self._pod, node))
            self._known[tuple(alike)] = found
        return found


def _named_values(pod: PodFact) -> tuple[list[tuple[str, set[str] | None]], set[str]]:
    """Labels that the pod depends on, with the values that it names, and the nodes that it names.

    All other values of a label have the same effect, unless they are compared as numbers (None).
    """
    labels = {key: {value} for key, value in pod.node_selector.items()}
    numbers, nodes = set[str](), set[str]()
    for requirement in (requirement for term in pod.node_affinity for requirement in term):
        named = nodes if requirement.field else labels.setdefault(requirement.key, set())
        named.update(requirement.values)
        if requirement.operator in ("Gt", "Lt"):
            numbers.add(requirement.key)
    return [(key, None if key in numbers else named) for key, named in labels.items()], nodes


def _state(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    if node.ready is not True:
        yield Obstacle(ObstacleKind.NOT_READY, node.ready_reason or "")
    cordon = TaintFact(key=CORDON_TAINT, effect="NoSchedule")
    if node.unschedulable and not is_tolerated(pod, cordon):
        yield Obstacle(ObstacleKind.CORDONED)


def _taints(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    """Untolerated taints, except those that only repeat the node's state."""
    for taint in node.taints:
        repeated = (node.unschedulable and taint.key == CORDON_TAINT) or (
            node.ready is not True and taint.key in NOT_READY_TAINTS
        )
        if taint.effect in BLOCKING_EFFECTS and not repeated and not is_tolerated(pod, taint):
            yield Obstacle(ObstacleKind.TAINT, taint_text(taint))


def taint_text(taint: TaintFact) -> str:
    """The taint in kubectl syntax."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _selection(pod: PodFact, node: NodeFact) -> Iterable[Obstacle]:
    for key, value in sorted(pod.node_selector.items()):
        if node.labels.get(key) != value:
            yield Obstacle(ObstacleKind.SELECTOR, f"{key}={value}")
    if not affinity_matches(pod, node):
        yield Obstacle(ObstacleKind.SELECTOR, affinity_text(pod.node_affinity))


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
