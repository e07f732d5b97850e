"""Nodes with enough GPUs that the pod may not use (taints, selectors, cordons) or that lack another resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from monitor.explain.fit import NodeFit, amount_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, compact_number, pending_diagnosis
from monitor.explain.placement import EXCLUSIONS, ObstacleKind
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

MAX_NAMED_NODES = 5
# Taints that Kubernetes sets for node conditions: the condition needs fixing, not a toleration.
CONDITION_TAINT_ADVICE = {
    "node.kubernetes.io/disk-pressure": Key.TAINT_DISK_ADVICE,
    "node.kubernetes.io/memory-pressure": Key.TAINT_TROUBLE_ADVICE,
    "node.kubernetes.io/pid-pressure": Key.TAINT_TROUBLE_ADVICE,
    "node.kubernetes.io/network-unavailable": Key.TAINT_TROUBLE_ADVICE,
    "node.kubernetes.io/not-ready": Key.TAINT_TROUBLE_ADVICE,
    "node.kubernetes.io/unreachable": Key.TAINT_TROUBLE_ADVICE,
}


def explain(pod: PodFact, candidates: Sequence[NodeFit]) -> PodDiagnosis:
    """Diagnosis of a pod that may use none of `candidates`, the nodes with enough GPUs."""
    # If the pod selects some of the nodes, only those are relevant, however many others there are.
    selected = [fit for fit in candidates if ObstacleKind.SELECTOR not in fit.exclusions()]
    relevant = selected or candidates
    kind = _main_exclusion(relevant)
    others = (
        *_other_exclusions(relevant, kind),
        *_other_exclusions(candidates if selected else (), kind, (ObstacleKind.SELECTOR,)),
    )
    if kind is ObstacleKind.TAINT:
        return _tainted(relevant, others)
    if kind is ObstacleKind.SELECTOR:
        return _not_selected(pod, relevant, others)
    values: dict[str, Value] = {"nodes": _names(fit for fit in relevant if kind in fit.exclusions())}
    if kind is ObstacleKind.CORDONED:
        return pending_diagnosis(PendingCause.OTHER, Key.NODES_CORDONED, Key.UNCORDON_ADVICE, values, others)
    return pending_diagnosis(PendingCause.OTHER, Key.NODES_NOT_READY, Key.NODE_BACK_ADVICE, values, others)


def _main_exclusion(candidates: Sequence[NodeFit]) -> ObstacleKind:
    """The exclusion that alone keeps the pod off the most nodes, else the most common one."""
    alone = Counter(fit.exclusions()[0] for fit in candidates if len(fit.obstacles) == 1)
    total = Counter(kind for fit in candidates for kind in fit.exclusions())
    return max(EXCLUSIONS, key=lambda kind: (alone[kind], total[kind], -EXCLUSIONS.index(kind)))


def _tainted(candidates: Sequence[NodeFit], others: tuple[Text, ...]) -> PodDiagnosis:
    nodes = [fit for fit in candidates if ObstacleKind.TAINT in fit.exclusions()]
    # A node in trouble can be repaired; one that is reserved, like the control plane's, was never meant for the pod.
    nodes = [fit for fit in nodes if any(_key(text) in CONDITION_TAINT_ADVICE for text in _taints(fit))] or nodes
    taints = Counter(text for fit in nodes for text in _taints(fit))
    taint = max(taints, key=lambda text: (_key(text) in CONDITION_TAINT_ADVICE, taints[text]))
    names = _names(nodes)
    values: dict[str, Value] = {"taint": ", ".join(sorted(taints)), "count": len(nodes), "nodes": names}
    key = _key(taint)
    headline = Text(Key.TAINT_TROUBLE if key in CONDITION_TAINT_ADVICE else Key.TAINT, values)
    advice = Text(CONDITION_TAINT_ADVICE.get(key, Key.TAINT_ADVICE), {"taint": taint, "nodes": names})
    return PodDiagnosis(PodStatus.PENDING, PendingCause.TAINT, headline, others, (advice,))


def _taints(fit: NodeFit) -> list[str]:
    return [obstacle.detail for obstacle in fit.obstacles if obstacle.kind is ObstacleKind.TAINT]


def _key(taint: str) -> str:
    return taint.partition("=")[0].partition(":")[0]


def _not_selected(pod: PodFact, candidates: Sequence[NodeFit], others: tuple[Text, ...]) -> PodDiagnosis:
    requirements = Counter(o.detail for fit in candidates for o in fit.obstacles if o.kind is ObstacleKind.SELECTOR)
    values: dict[str, Value] = {"wanted": "; ".join(sorted(requirements)), "count": len(candidates)}
    evidence = (*_label_values(pod, candidates), *others)
    return pending_diagnosis(PendingCause.SELECTOR, Key.SELECTOR, Key.SELECTOR_ADVICE, values, evidence)


def _label_values(pod: PodFact, candidates: Sequence[NodeFit]) -> Iterable[Text]:
    """The label values of the nodes where the pod requires another value: usually a typo."""
    keys = dict.fromkeys([*pod.node_selector, *(r.key for term in pod.node_affinity for r in term if not r.field)])
    for key in keys:
        present = Counter(fit.node.labels[key] for fit in candidates if key in fit.node.labels)
        if pod.node_selector.get(key) in present:
            continue
        if present:
            values = ", ".join(f"{value} ({count})" for value, count in present.most_common(MAX_NAMED_NODES))
            yield Text(Key.LABEL_VALUES, {"label": key, "values": values})
        else:
            yield Text(Key.LABEL_ABSENT, {"label": key})


def _other_exclusions(
    candidates: Sequence[NodeFit], main: ObstacleKind, kinds: Sequence[ObstacleKind] = EXCLUSIONS
) -> Iterable[Text]:
    """Nodes excluded for a reason other than `main`, by kind."""
    keys = {
        ObstacleKind.TAINT: Key.ALSO_TAINTED,
        ObstacleKind.SELECTOR: Key.ALSO_NOT_SELECTED,
        ObstacleKind.CORDONED: Key.ALSO_CORDONED,
        ObstacleKind.NOT_READY: Key.ALSO_NOT_READY,
    }
    for kind in kinds:
        affected = [fit for fit in candidates if kind is not main and kind in fit.exclusions()]
        if affected:
            yield Text(keys[kind], {"count": len(affected), "nodes": _names(affected)})


def _names(nodes: Iterable[NodeFit]) -> str:
    names = [fit.node.name for fit in nodes]
    return ", ".join(names[:MAX_NAMED_NODES]) + (" …" if len(names) > MAX_NAMED_NODES else "")


def lacks_other_resource(pod: PodFact, able: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a pod for which `able` nodes have enough GPUs but lack another resource."""
    keys = {
        ObstacleKind.CPU: Key.SHORT_OF_CPU,
        ObstacleKind.MEMORY: Key.SHORT_OF_MEMORY,
        ObstacleKind.PODS: Key.SHORT_OF_PODS,
    }
    lacking = [fit for fit in able if not fit.lacks_gpus]
    nearest = min(lacking, key=lambda fit: (len(fit.obstacles), -fit.obstacles[0].free, fit.node.name))
    obstacle = nearest.obstacles[0]
    values: dict[str, Value] = {
        "resource": obstacle.detail,
        "needs": compact_number(obstacle.needs),
        "free": compact_number(obstacle.free),
        "node": nearest.node.name,
    }
    idle = sum(fit.free for fit in lacking)
    waiting: dict[str, Value] = {"gpus": amount_in_words(pod, idle, facts), "nodes": len(lacking)}
    evidence = (Text(Key.GPUS_WAIT_FOR_REST, waiting),) if idle and requested_gpus(pod, facts) else ()
    headline = keys.get(obstacle.kind, Key.SHORT_OF_RESOURCE)
    advice = Key.SHORT_OF_PODS_ADVICE if obstacle.kind is ObstacleKind.PODS else Key.SHORT_OF_ADVICE
    return pending_diagnosis(PendingCause.OTHER, headline, advice, values, evidence)
