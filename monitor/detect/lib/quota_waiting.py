"""What waits for a quota: pods that were refused, pods and groups that stand in a queue. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from monitor.explain.quota_message import REASONS, denial
from monitor.facts.cluster_facts import FINISHED, World
from monitor.facts.kube import PodFact


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits, and how many GPUs it needs to start."""

    name: str
    gpus: float


def refused_jobs(namespaces: set[str], facts: World, since: float) -> dict[tuple[str, str], list[WaitingJob]]:
    """Return what was refused its GPUs since then, by namespace and quota. Pods that are refused do not exist."""
    found: defaultdict[tuple[str, str], list[WaitingJob]] = defaultdict(list)
    for (_, namespace, name), events in facts.events_by_name.items():
        if namespace not in namespaces or events[-1].reason not in REASONS or (events[-1].last_at or 0.0) < since:
            continue
        why = denial(events[-1].message or "")
        if why.cause == "quota" and facts.resource in str(why.values.get("resource", "")):
            needs = _amount(str(why.values.get("needs", "")))
            if needs is not None:
                found[namespace, str(why.values["quota"])].append(WaitingJob(name, needs))
    return found


def _amount(text: str) -> float | None:
    """GPUs are counted: anything but a plain number says nothing about them."""
    return float(text) if text.isascii() and text.isdecimal() else None


def queued_jobs(facts: World) -> dict[tuple[str, str], list[WaitingJob]]:
    """Return what waits for GPUs, by kind and name of the queue. A Kueue job counts for the ClusterQueue behind."""
    found: defaultdict[tuple[str, str], list[WaitingJob]] = defaultdict(list)
    parents = {(q.namespace, q.name): q.parent for q in facts.queues if q.kind == "LocalQueue"}
    for workload in facts.workloads:
        gpus, parent = workload.requests.get(facts.resource), parents.get((workload.namespace, workload.queue or ""))
        if workload.phase == "pending" and workload.active is not False and gpus and parent:
            found["ClusterQueue", parent].append(
                WaitingJob(workload.owner.name if workload.owner else workload.name, gpus)
            )
    seen = set[str]()
    for pod in facts.pods:
        if pod.node is None and pod.deletion_at is None and pod.phase not in FINISHED:
            queue, waiting, uid = _in_volcano(pod, facts)
            if queue and waiting.gpus and uid not in seen:
                found["VolcanoQueue", queue].append(waiting)
                seen.add(uid)
    return found


def _in_volcano(pod: PodFact, facts: World) -> tuple[str | None, WaitingJob, str]:
    """Return the queue, what waits, and by what it is known: a group that starts as one waits as one."""
    group, gpus = facts.group_of(pod), pod.requests.get(facts.resource, 0.0)
    if group is None:
        return (facts.identity(pod).queue if pod.scheduler == "volcano" else None), WaitingJob(pod.name, gpus), pod.uid
    name = group.owner.name if group.owner else group.name
    needs = gpus if group.running else max(gpus, group.min_resources.get(facts.resource, 0.0))
    return group.queue, WaitingJob(name, needs), group.uid
