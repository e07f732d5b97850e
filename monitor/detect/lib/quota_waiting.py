"""Jobs waiting for GPU quota: refused pods, and pods and groups in a queue."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from monitor.explain.fit import gpu_resource
from monitor.explain.quota_message import DENIAL_REASONS, limited_resource, parse_denial
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_requests import main_resource
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import PodFact


@dataclass(frozen=True)
class WaitingJob:
    """A waiting job, how much of a GPU resource it needs to start, and when it was refused, if it was."""

    name: str
    resource: str
    gpus: float
    refused_at: float | None = None


def refused_jobs(namespaces: set[str], facts: ClusterFacts, since: float) -> dict[tuple[str, str], list[WaitingJob]]:
    """Jobs denied GPUs after `since`, by namespace and quota. Their pods do not exist, so events name them."""
    jobs: defaultdict[tuple[str, str], list[WaitingJob]] = defaultdict(list)
    for (_, namespace, name), events in facts.events_by_name.items():
        at = events[-1].last_at or 0.0
        if namespace not in namespaces or events[-1].reason not in DENIAL_REASONS or at <= since:
            continue
        why = parse_denial(events[-1].message or "")
        resource = limited_resource(str(why.values.get("resource", "")))
        if why.cause == "quota" and (resource == facts.resource or resource_kind(resource) is not None):
            needs = _amount(str(why.values.get("needs", "")))
            if needs is not None:
                jobs[namespace, str(why.values["quota"])].append(WaitingJob(name, resource, needs, at))
    return jobs


def _amount(text: str) -> float | None:
    """A GPU count; anything but a plain number is ignored."""
    return float(text) if text.isascii() and text.isdecimal() else None


def queued_jobs(facts: ClusterFacts) -> dict[tuple[str, str], list[WaitingJob]]:
    """Jobs waiting for GPUs, by kind and name of the queue. A Kueue job counts for its ClusterQueue."""
    jobs: defaultdict[tuple[str, str], list[WaitingJob]] = defaultdict(list)
    parents = {(q.namespace, q.name): q.parent for q in facts.queues if q.kind == "LocalQueue"}
    for workload in facts.workloads:
        resource = main_resource(workload.requests, facts.resource)
        parent = parents.get((workload.namespace, workload.queue or ""))
        if workload.phase == "pending" and workload.active is not False and resource and parent:
            name = workload.owner.name if workload.owner else workload.name
            jobs["ClusterQueue", parent].append(WaitingJob(name, resource, workload.requests[resource]))
    seen = set[str]()
    for pod in facts.pending_pods:
        queue, waiting, uid = _in_volcano(pod, facts)
        if queue and waiting.gpus and uid not in seen:
            jobs["VolcanoQueue", queue].append(waiting)
            seen.add(uid)
    return jobs


def _in_volcano(pod: PodFact, facts: ClusterFacts) -> tuple[str | None, WaitingJob, str]:
    """Queue, job and UID of what is waiting; a gang counts once."""
    group, resource = facts.group_of(pod), gpu_resource(pod, facts)
    gpus = pod.requests.get(resource, 0.0)
    if group is None:
        queue = facts.identity(pod).queue if pod.scheduler == "volcano" else None
        return queue, WaitingJob(pod.name, resource, gpus), pod.uid
    name = group.owner.name if group.owner else group.name
    needs = gpus if group.running else max(gpus, group.min_resources.get(resource, 0.0))
    return group.queue, WaitingJob(name, resource, needs), group.uid
