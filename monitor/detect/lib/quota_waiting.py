"""What waits for a quota: pods that were refused, pods and groups that stand in a queue. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from monitor.explain.quota_message import DENIAL_REASONS, parse_denial
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact


@dataclass(frozen=True)
class Waiting:
    """A job that waits, and how many GPUs it needs to start."""

    name: str
    gpus: float


def refused(namespaces: set[str], world: ClusterFacts, since: float) -> dict[tuple[str, str], list[Waiting]]:
    """Return what was refused its GPUs since then, by namespace and quota. Pods that are refused do not exist."""
    found: defaultdict[tuple[str, str], list[Waiting]] = defaultdict(list)
    for (_, namespace, name), events in world.events_by_name.items():
        if (
            namespace not in namespaces
            or events[-1].reason not in DENIAL_REASONS
            or (events[-1].last_at or 0.0) < since
        ):
            continue
        why = parse_denial(events[-1].message or "")
        if why.cause == "quota" and world.resource in str(why.values.get("resource", "")):
            needs = _amount(str(why.values.get("needs", "")))
            if needs is not None:
                found[namespace, str(why.values["quota"])].append(Waiting(name, needs))
    return found


def _amount(text: str) -> float | None:
    """GPUs are counted: anything but a plain number says nothing about them."""
    return float(text) if text.isascii() and text.isdecimal() else None


def waiting_in_queues(world: ClusterFacts) -> dict[tuple[str, str], list[Waiting]]:
    """Return what waits for GPUs, by kind and name of the queue. A Kueue job counts for the ClusterQueue behind."""
    found: defaultdict[tuple[str, str], list[Waiting]] = defaultdict(list)
    parents = {(q.namespace, q.name): q.parent for q in world.queues if q.kind == "LocalQueue"}
    for workload in world.workloads:
        gpus, parent = workload.requests.get(world.resource), parents.get((workload.namespace, workload.queue or ""))
        if workload.phase == "pending" and workload.active is not False and gpus and parent:
            found["ClusterQueue", parent].append(
                Waiting(workload.owner.name if workload.owner else workload.name, gpus)
            )
    seen = set[str]()
    for pod in world.pods:
        if pod.node is None and pod.deletion_at is None and not pod.finished:
            queue, waiting, uid = _in_volcano(pod, world)
            if queue and waiting.gpus and uid not in seen:
                found["VolcanoQueue", queue].append(waiting)
                seen.add(uid)
    return found


def _in_volcano(pod: PodFact, world: ClusterFacts) -> tuple[str | None, Waiting, str]:
    """Return the queue, what waits, and by what it is known: a group that starts as one waits as one."""
    group, gpus = world.group_of(pod), pod.requests.get(world.resource, 0.0)
    if group is None:
        return (world.identity(pod).queue if pod.scheduler == "volcano" else None), Waiting(pod.name, gpus), pod.uid
    name = group.owner.name if group.owner else group.name
    needs = gpus if group.running else max(gpus, group.min_resources.get(world.resource, 0.0))
    return group.queue, Waiting(name, needs), group.uid
