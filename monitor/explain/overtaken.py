"""A pod that came later and got GPUs first: which, whose, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from monitor.explain.fit import ObstacleKind, gpu_resource, requested_gpus, placement_obstacles
from monitor.explain.keys import Key
from monitor.explain.reasons import PodDiagnosis, PendingCause
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


def add_overtakers(answer: PodDiagnosis, pod: PodFact, world: ClusterFacts) -> PodDiagnosis:
    """Given why a pod waits, add who overtook it.

    It becomes the headline when with the later pods' GPUs this one would run: then they are what it waits for.
    """
    found = find_overtakers(pod, world)
    if not found:
        return answer
    first = min(found, key=lambda each: (-each.gpus, each.pod.created_at or 0.0, each.pod.uid))
    reasons = [_who(first, pod, world), _why(first, answer, pod, world)]
    if len(found) > 1:
        reasons.append(Text(Key.OVERTAKEN_OTHERS, {"count": len(found) - 1}))
    if answer.cause in SHORTAGE_CAUSES and _would_run(found, pod, world):
        evidence = (*reasons[1:], answer.headline, *answer.evidence)
        return replace(answer, cause=PendingCause.OVERTAKEN, headline=reasons[0], evidence=evidence)
    return replace(answer, evidence=(*answer.evidence, *reasons))


def find_overtakers(pod: PodFact, world: ClusterFacts) -> list[Overtaker]:
    """Given a waiting pod, return the later pods that hold GPUs on nodes which it selects as well."""
    if pod.created_at is None or not requested_gpus(pod, world):
        return []
    resource = gpu_resource(pod, world)
    found = []
    for node in world.nodes:
        later = [other for other in world.bound.get(node.name, ()) if _is_later(other, pod, resource, world)]
        if not later:
            continue
        obstacles = placement_obstacles(pod, node)
        # Another pool of nodes is another queue: nobody overtakes there.
        if any(each.kind is ObstacleKind.SELECTOR for each in obstacles):
            continue
        taint = next((each.detail for each in obstacles if each.kind is ObstacleKind.TAINT), None)
        found += [Overtaker(each, node.name, round(each.requests[resource]), taint) for each in later]
    return found


def _is_later(other: PodFact, pod: PodFact, resource: str, world: ClusterFacts) -> bool:
    """A pod of the same job is no stranger, and a pod that is on its way out overtakes nobody any more."""
    if (other.created_at or 0.0) <= (pod.created_at or 0.0):
        return False
    if not other.requests.get(resource) or other.deletion_at is not None:
        return False
    job = world.identity(pod).job
    return job is None or job != world.identity(other).job or other.namespace != pod.namespace


def _would_run(found: Sequence[Overtaker], pod: PodFact, world: ClusterFacts) -> bool:
    resource, asked = gpu_resource(pod, world), requested_gpus(pod, world)
    held: dict[str, int] = {}
    for each in found:
        if each.taint is None:
            held[each.node] = held.get(each.node, 0) + each.gpus
    return any(world.free_gpus(world.node_by_name[node], resource) + gpus >= asked for node, gpus in held.items())


def _who(first: Overtaker, pod: PodFact, world: ClusterFacts) -> Text:
    values: dict[str, Value] = {
        "pod": f"{first.pod.namespace}/{first.pod.name}",
        "user": world.user(first.pod),
        "gpus": first.gpus,
        "node": first.node,
        "later": (first.pod.created_at or 0.0) - (pod.created_at or 0.0),
    }
    return Text(Key.OVERTAKEN, values)


def _why(first: Overtaker, answer: PodDiagnosis, pod: PodFact, world: ClusterFacts) -> Text:
    other = first.pod
    if first.taint is not None:
        return Text(Key.OVERTAKEN_TAINT, {"taint": first.taint, "node": first.node})
    queue, own = world.identity(other).queue, world.identity(pod).queue
    if answer.cause in QUEUE_CAUSES and queue is not None and queue != own:
        return Text(Key.OVERTAKEN_QUEUE, {"queue": queue, "own": own or "?"})
    if answer.cause in HELD_BACK_CAUSES:
        return Text(Key.OVERTAKEN_HELD)
    if (other.priority or 0) > (pod.priority or 0):
        return Text(Key.OVERTAKEN_PRIORITY, {"priority": other.priority or 0, "own": pod.priority or 0})
    asked = requested_gpus(pod, world)
    if first.gpus < asked:
        return Text(Key.OVERTAKEN_SMALLER, {"gpus": first.gpus, "needs": asked})
    return Text(Key.OVERTAKEN_UNKNOWN)
