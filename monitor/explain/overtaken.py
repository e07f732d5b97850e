"""Pods created later that got GPUs first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monitor.explain.fit import gpu_resource, gpus_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis
from monitor.explain.placement import ObstacleKind, PlacementCheck
from monitor.facts.base import Fact
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

SHORTAGE_CAUSES = (PendingCause.NOT_ENOUGH_GPUS, PendingCause.NO_SINGLE_NODE_FITS)
QUEUE_CAUSES = (PendingCause.QUOTA, PendingCause.QUEUE_CLOSED)
HELD_BACK_CAUSES = (*QUEUE_CAUSES, PendingCause.GANG_INCOMPLETE, PendingCause.VOLUME)


class Overtaker(Fact, frozen=True):
    """A later pod that runs, and the taint of its node that excludes the earlier pod, if any."""

    pod: PodFact
    node: str
    gpus: int
    taint: str | None


def add_overtakers(diagnosis: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """The diagnosis extended by the pods that overtook this one.

    Being overtaken becomes the headline if this pod would run with the later pods' GPUs.
    """
    overtakers = find_overtakers(pod, facts)
    if not overtakers:
        return diagnosis
    first = min(overtakers, key=lambda overtaker: (-overtaker.gpus, overtaker.pod.created_at or 0.0, overtaker.pod.uid))
    reasons = [_who(first, pod, facts), _why(first, diagnosis, pod, facts)]
    if len(overtakers) > 1:
        reasons.append(Text(Key.OVERTAKEN_OTHERS, {"count": len(overtakers) - 1}))
    if diagnosis.cause in SHORTAGE_CAUSES and _would_run(overtakers, pod, facts):
        evidence = (*reasons[1:], diagnosis.headline, *diagnosis.evidence)
        return replace(diagnosis, cause=PendingCause.OVERTAKEN, headline=reasons[0], evidence=evidence)
    return replace(diagnosis, evidence=(*diagnosis.evidence, *reasons))


def find_overtakers(pod: PodFact, facts: ClusterFacts) -> list[Overtaker]:
    """Later pods that hold GPUs on nodes which the pending pod also selects."""
    if pod.created_at is None or not requested_gpus(pod, facts):
        return []
    resource, placement = gpu_resource(pod, facts), PlacementCheck(pod)
    overtakers = []
    for node in facts.nodes:
        later = _later_pods(facts.bound.get(node.name, ()), pod, resource, facts)
        if not later:
            continue
        obstacles = placement.exclusions(node)
        # Pods on nodes that this pod does not select do not compete with it.
        if any(obstacle.kind is ObstacleKind.SELECTOR for obstacle in obstacles):
            continue
        taint = next((obstacle.detail for obstacle in obstacles if obstacle.kind is ObstacleKind.TAINT), None)
        overtakers += [Overtaker(other, node.name, round(other.requests[resource]), taint) for other in later]
    return overtakers


def _later_pods(others: Sequence[PodFact], pod: PodFact, resource: str, facts: ClusterFacts) -> list[PodFact]:
    """Pods with GPUs that were created after `pod`, except for terminating pods and those of the same job."""
    created = pod.created_at or 0.0
    later = [
        other
        for other in others
        if (other.created_at or 0.0) > created and other.requests.get(resource) and other.deletion_at is None
    ]
    job = facts.identity(pod).job if later else None
    if job is None:
        return later
    return [other for other in later if other.namespace != pod.namespace or facts.identity(other).job != job]


def _would_run(overtakers: Sequence[Overtaker], pod: PodFact, facts: ClusterFacts) -> bool:
    resource, needs = gpu_resource(pod, facts), requested_gpus(pod, facts)
    held: dict[str, int] = {}
    for overtaker in overtakers:
        if overtaker.taint is None:
            held[overtaker.node] = held.get(overtaker.node, 0) + overtaker.gpus
    return any(facts.free_gpus(facts.node_by_name[node], resource) + gpus >= needs for node, gpus in held.items())


def _who(first: Overtaker, pod: PodFact, facts: ClusterFacts) -> Text:
    values: dict[str, Value] = {
        "pod": f"{first.pod.namespace}/{first.pod.name}",
        "user": facts.user(first.pod),
        "gpus": gpus_in_words(first.pod, facts),
        "node": first.node,
        "later": (first.pod.created_at or 0.0) - (pod.created_at or 0.0),
    }
    return Text(Key.OVERTAKEN, values)


def _why(first: Overtaker, diagnosis: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> Text:
    other = first.pod
    if first.taint is not None:
        return Text(Key.OVERTAKEN_TAINT, {"taint": first.taint, "node": first.node})
    queue, own_queue = facts.identity(other).queue, facts.identity(pod).queue
    if diagnosis.cause in QUEUE_CAUSES and queue is not None and queue != own_queue:
        return Text(Key.OVERTAKEN_QUEUE, {"queue": queue, "own": own_queue or "?"})
    if diagnosis.cause in HELD_BACK_CAUSES:
        return Text(Key.OVERTAKEN_HELD)
    if (other.priority or 0) > (pod.priority or 0):
        return Text(Key.OVERTAKEN_PRIORITY, {"priority": other.priority or 0, "own": pod.priority or 0})
    needs = requested_gpus(pod, facts)
    if first.gpus < needs:
        words: dict[str, Value] = {"gpus": gpus_in_words(other, facts), "needs": gpus_in_words(pod, facts)}
        return Text(Key.OVERTAKEN_SMALLER, words)
    return Text(Key.OVERTAKEN_UNKNOWN)
