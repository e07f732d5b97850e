"""Which jobs have to finish before a job fits: a set in which each is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from monitor.explain.fit import MAX_ROUNDING_ERROR, requirements_on
from monitor.explain.fits.jobs import Job, jobs_of
from monitor.explain.fits.room import stays
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import NodeFact, PodFact

Amounts = Mapping[str, float]


class _NodePlan:
    """Free amounts of a node while jobs are released."""

    def __init__(self, node: NodeFact, pod: PodFact, facts: ClusterFacts) -> None:
        self._needs, have = requirements_on(pod, node, facts)
        if "pods" in node.allocatable:
            self._needs = {**self._needs, "pods": 1.0}
        used = facts.used.get(node.name, {})
        self._free = {name: have.get(name, 0.0) - used.get(name, 0.0) for name in self._needs}

    def pods(self) -> int:
        """How many of the requested pods fit."""
        counts = (int((self._free[name] + MAX_ROUNDING_ERROR) // amount) for name, amount in self._needs.items())
        return max(0, min(counts))

    def short_of(self, resource: str) -> float:
        """How much of a resource is missing for one more pod."""
        amount = self._needs.get(resource, 0.0)
        return max(0.0, (self.pods() + 1) * amount - self._free.get(resource, 0.0))

    def release(self, pods: Iterable[PodFact], sign: int = 1) -> int:
        """Release pods (or with -1 undo that), and return how many more of the requested pods fit."""
        before = self.pods()
        for pod in pods:
            for name in self._needs:
                self._free[name] += sign * (1.0 if name == "pods" else pod.requests.get(name, 0.0))
        return self.pods() - before


def jobs_to_wait_for(
    pod: PodFact, wanted: int, nodes: Iterable[NodeFact], resource: str, facts: ClusterFacts
) -> list[Job]:
    """Jobs after which `wanted` pods like `pod` fit on the nodes; none if that never happens.

    Jobs that are ending come first, then those whose GPUs make room for the most pods, small ones before large ones.
    """
    plans = {node.name: _NodePlan(node, pod, facts) for node in nodes}
    room = sum(plan.pods() for plan in plans.values())
    held = (each for name in plans for each in facts.bound.get(name, ()) if not stays(each))
    order = sorted(jobs_of(held, facts), key=lambda job: _rank(job, plans, wanted - room, resource))
    released: list[Job] = []
    for job in order:
        if room >= wanted:
            break
        room += _release(job, plans)
        released.append(job)
    if room < wanted:
        return []
    return _pruned(released, lambda job: _undo(job, plans), room - wanted, lambda job: _release(job, plans))


def jobs_of_amount(jobs: Sequence[Job], resource: str, missing: float) -> list[Job]:
    """Jobs that together hold the missing amount of a resource, as few large ones as needed; none if all hold less."""
    order = sorted(jobs, key=lambda job: (not job.terminating, job.lasting, -job.amount(resource), job.key))
    chosen, total = list[Job](), 0.0
    for job in order:
        if total >= missing - MAX_ROUNDING_ERROR:
            break
        if job.amount(resource):
            chosen.append(job)
            total += job.amount(resource)
    if total < missing - MAX_ROUNDING_ERROR:
        return []
    spare = total - missing
    for job in reversed(list(chosen)):
        if job.amount(resource) <= spare + MAX_ROUNDING_ERROR:
            chosen.remove(job)
            spare -= job.amount(resource)
    return chosen


def _pruned(released: list[Job], undo: Callable[[Job], int], spare: int, release: Callable[[Job], int]) -> list[Job]:
    """The jobs without those that are not needed; the last ones are tried first."""
    needed = list(released)
    for job in reversed(released):
        lost = -undo(job)
        if lost <= spare:
            spare -= lost
            needed.remove(job)
        else:
            release(job)
    return needed


def _rank(job: Job, plans: Mapping[str, _NodePlan], missing: int, resource: str) -> tuple[object, ...]:
    gain = _release(job, plans)
    _undo(job, plans)
    nearest = min((plans[node].short_of(resource) for node in job.nodes if node in plans), default=0.0)
    amount = job.amount(resource)
    return (not job.terminating, job.lasting, -min(gain, missing), nearest, not amount, amount, job.key)


def _release(job: Job, plans: Mapping[str, _NodePlan], sign: int = 1) -> int:
    by_node: defaultdict[str, list[PodFact]] = defaultdict(list)
    for pod in job.pods:
        if pod.node in plans:
            by_node[pod.node or ""].append(pod)
    return sum(plans[node].release(pods, sign) for node, pods in by_node.items())


def _undo(job: Job, plans: Mapping[str, _NodePlan]) -> int:
    return _release(job, plans, -1)
