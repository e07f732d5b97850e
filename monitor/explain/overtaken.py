"""A pod that came later and got GPUs first: which, whose, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from monitor.explain.fit import ObstacleKind, gpu_resource, placement_obstacles, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

SHORTAGE_CAUSES = (PendingCause.NOT_ENOUGH_GPUS, PendingCause.NO_SINGLE_NODE_FITS)
QUEUE_CAUSES = (PendingCause.QUOTA, PendingCause.QUEUE_CLOSED)
HELD_BACK_CAUSES = (*QUEUE_CAUSES, PendingCause.GANG_INCOMPLETE, PendingCause.VOLUME)


@dataclass(frozen=True)
class Overtaker:
    """A later pod that runs, and the taint of its node that keeps the earlier one off, if there is one."""

    pod: PodFact
    node: str
    gpus: int
    taint: str | None


def add_overtakers(answer: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Given why a pod waits, add who overtook it.

    It becomes the headline when with the later pods' GPUs this one would run: then they are what it waits for.
    """
    overtakers = find_overtakers(pod, facts)
    if not overtakers:
        return answer
    first = min(overtakers, key=lambda overtaker: (-overtaker.gpus, overtaker.pod.created_at or 0.0, overtaker.pod.uid))
    reasons = [_who(first, pod, facts), _why(first, answer, pod, facts)]
    if len(overtakers) > 1:
        reasons.append(Text(Key.OVERTAKEN_OTHERS, {"count": len(overtakers) - 1}))
    if answer.cause in SHORTAGE_CAUSES and _would_run(overtakers, pod, facts):
        evidence = (*reasons[1:], answer.headline, *answer.evidence)
        return replace(answer, cause=PendingCause.OVERTAKEN, headline=reasons[0], evidence=evidence)
    return replace(answer, evidence=(*answer.evidence, *reasons))


def find_overtakers(pod: PodFact, facts: ClusterFacts) -> list[Overtaker]:
    """Given a waiting pod, return the later pods that hold GPUs on nodes which it selects as well."""
    if pod.created_at is None or not requested_gpus(pod, facts):
        return []
    resource = gpu_resource(pod, facts)
    overtakers = []
    for node in facts.nodes:
        later = [other for other in facts.bound.get(node.name, ()) if _is_later(other, pod, resource, facts)]
        if not later:
            continue
        obstacles = placement_obstacles(pod, node)
        # Another pool of nodes is another queue: nobody overtakes there.
        if any(obstacle.kind is ObstacleKind.SELECTOR for obstacle in obstacles):
            continue
        taint = next((obstacle.detail for obstacle in obstacles if obstacle.kind is ObstacleKind.TAINT), None)
        overtakers += [Overtaker(other, node.name, round(other.requests[resource]), taint) for other in later]
    return overtakers


def _is_later(other: PodFact, pod: PodFact, resource: str, facts: ClusterFacts) -> bool:
    """A pod of the same job is no stranger, and a pod that is on its way out overtakes nobody any more."""
    if (other.created_at or 0.0) <= (pod.created_at or 0.0):
        return False
    if not other.requests.get(resource) or other.deletion_at is not None:
        return False
    job = facts.identity(pod).job
    return job is None or job != facts.identity(other).job or other.namespace != pod.namespace


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
        "gpus": first.gpus,
        "node": first.node,
        "later": (first.pod.created_at or 0.0) - (pod.created_at or 0.0),
    }
    return Text(Key.OVERTAKEN, values)


def _why(first: Overtaker, answer: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> Text:
    other = first.pod
    if first.taint is not None:
        return Text(Key.OVERTAKEN_TAINT, {"taint": first.taint, "node": first.node})
    queue, own_queue = facts.identity(other).queue, facts.identity(pod).queue
    if answer.cause in QUEUE_CAUSES and queue is not None and queue != own_queue:
        return Text(Key.OVERTAKEN_QUEUE, {"queue": queue, "own": own_queue or "?"})
    if answer.cause in HELD_BACK_CAUSES:
        return Text(Key.OVERTAKEN_HELD)
    if (other.priority or 0) > (pod.priority or 0):
        return Text(Key.OVERTAKEN_PRIORITY, {"priority": other.priority or 0, "own": pod.priority or 0})
    needs = requested_gpus(pod, facts)
    if first.gpus < needs:
        return Text(Key.OVERTAKEN_SMALLER, {"gpus": first.gpus, "needs": needs})
    return Text(Key.OVERTAKEN_UNKNOWN)
