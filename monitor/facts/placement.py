"""Which nodes a pod may run on according to its selectors and tolerations and the labels and taints of nodes."""

from __future__ import annotations

from monitor.facts.kube import NodeFact, NodeRequirementFact, PodFact, TaintFact, TolerationFact

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
_OF_STATE = "node.kubernetes.io/"  # taints by which Kubernetes repeats the state of a node


def may_run_on(pod: PodFact, node: NodeFact) -> bool:
    """Whether the pod may run on the node once that is ready, not cordoned and has room."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    lasting = (taint for taint in node.taints if not taint.key.startswith(_OF_STATE))
    blocked = any(taint.effect in BLOCKING_EFFECTS and not is_tolerated(pod, taint) for taint in lasting)
    return not blocked and affinity_matches(pod, node)


def is_tolerated(pod: PodFact, taint: TaintFact) -> bool:
    """Whether a toleration of the pod matches the taint."""
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


def affinity_matches(pod: PodFact, node: NodeFact) -> bool:
    """Whether the node satisfies the required node affinity of the pod, if it has any."""
    return not pod.node_affinity or any(_term_matches(term, node) for term in pod.node_affinity)


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
