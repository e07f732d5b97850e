"""Which jobs have to finish before a job fits: a set in which each is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from monitor.explain.fit import MAX_ROUNDING_ERROR, requirements_on
from monitor.explain.fits.jobs import Job, jobs_of
from monitor.explain.fits.room import stays
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import NodeFact, PodFact

Released = Mapping[str, Sequence[float]]  # amounts that a job releases, by node, in the order of what a pod needs


class _NodePlan:
    """Free amounts of a node while jobs are released, and `pods`, how many of the requested pods fit."""

    def __init__(self, node: NodeFact, pod: PodFact, facts: ClusterFacts) -> None:
        needs, have = requirements_on(pod, node, facts)
        if "pods" in node.allocatable:
            needs = {**needs, "pods": 1.0}
        used = facts.used.get(node.name, {})
        self._needs, self._amounts = needs, tuple(needs.values())
        self._free = [have.get(name, 0.0) - used.get(name, 0.0) for name in needs]
        self.pods = self._count(self._free)

    def _count(self, free: Sequence[float]) -> int:
        counts = [(left + MAX_ROUNDING_ERROR) // amount for left, amount in zip(free, self._amounts, strict=True)]
        return max(0, int(min(counts)))

    def released_by(self, pods: Sequence[PodFact]) -> list[float]:
        """What the pods occupy of each resource that counts."""
        return [
            float(len(pods)) if name == "pods" else sum([pod.requests.get(name, 0.0) for pod in pods])
            for name in self._needs
        ]

    def short_of(self, resource: str) -> float:
        """How much of a resource is missing for one more pod."""
        free = next((left for name, left in zip(self._needs, self._free, strict=True) if name == resource), 0.0)
        return max(0.0, (self.pods + 1) * self._needs.get(resource, 0.0) - free)

    def lacks(self, resource: str) -> bool:
        """Whether no more pods fit because of this resource."""
        return self._needs.get(resource, 0.0) > 0 and self.short_of(resource) > MAX_ROUNDING_ERROR

    def gain(self, amounts: Sequence[float]) -> int:
        """How many more of the requested pods would fit with these amounts."""
        least = inf
        for left, more, amount in zip(self._free, amounts, self._amounts, strict=True):
            fitting = (left + more + MAX_ROUNDING_ERROR) // amount
            if fitting <= self.pods:
                return 0
            least = min(least, fitting)
        return int(least) - self.pods

    def release(self, amounts: Sequence[float], sign: int = 1) -> int:
        """Release amounts (or with -1 undo that), and return how many more of the requested pods fit."""
        before = self.pods
        self._free = [left + sign * more for left, more in zip(self._free, amounts, strict=True)]
        self.pods = self._count(self._free)
        return self.pods - before


def jobs_to_wait_for(
    pod: PodFact, wanted: int, nodes: Iterable[NodeFact], resource: str, facts: ClusterFacts
) -> list[Job]:
    """Jobs after which `wanted` pods like `pod` fit on the nodes; none if that never happens.

    Jobs that are ending come first, then those whose GPUs make room for the most pods, small ones before large ones.
    """
    nodes = tuple(nodes)
    plans = _plans(nodes, pod, facts)
    held = (each for name in plans for each in facts.bound.get(name, ()) if not stays(each))
    jobs = jobs_of(held, facts)
    full = {name for name, plan in plans.items() if plan.lacks(resource)}
    # Where the resource is what is missing, jobs that hold none of it do not help, at least not first.
    holders = [job for job in jobs if job.amount(resource) or any(pod.node not in full for pod in job.pods)]
    found = _enough(holders, plans, wanted, resource)
    return found or _enough(jobs, _plans(nodes, pod, facts), wanted, resource)


def _plans(nodes: Iterable[NodeFact], pod: PodFact, facts: ClusterFacts) -> dict[str, _NodePlan]:
    return {node.name: _NodePlan(node, pod, facts) for node in nodes}


def _enough(jobs: Iterable[Job], plans: Mapping[str, _NodePlan], wanted: int, resource: str) -> list[Job]:
    """Those of the jobs after which `wanted` pods fit; none if that never happens."""
    room = sum([plan.pods for plan in plans.values()])
    short = {name: plan.short_of(resource) for name, plan in plans.items()}
    missing = wanted - room
    released = [(job, _released(job, plans)) for job in jobs]
    waited_for: list[tuple[Job, Released]] = []
    for job, amounts in sorted(released, key=lambda entry: _rank(entry[0], entry[1], plans, short, missing, resource)):
        if room >= wanted:
            break
        room += _release(amounts, plans)
        waited_for.append((job, amounts))
    return _needed(waited_for, plans, room - wanted) if room >= wanted else []


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
    spare, needed = total - missing, list[Job]()
    for job in reversed(chosen):
        if job.amount(resource) <= spare + MAX_ROUNDING_ERROR:
            spare -= job.amount(resource)
        else:
            needed.append(job)
    return needed[::-1]


def _needed(waited_for: Sequence[tuple[Job, Released]], plans: Mapping[str, _NodePlan], spare: int) -> list[Job]:
    """The jobs without those that are not needed; the last ones are tried first."""
    needed: list[Job] = []
    for job, amounts in reversed(waited_for):
        lost = -_release(amounts, plans, -1)
        if lost <= spare:
            spare -= lost
        else:
            _release(amounts, plans)
            needed.append(job)
    return needed[::-1]


def _rank(
    job: Job,
    amounts: Released,
    plans: Mapping[str, _NodePlan],
    short: Mapping[str, float],
    missing: int,
    resource: str,
) -> tuple[object, ...]:
    gain = sum([plans[node].gain(more) for node, more in amounts.items()])
    nearest = min([short[node] for node in amounts], default=0.0)
    amount = job.amount(resource)
    return (not job.terminating, job.lasting, -min(gain, missing), nearest, not amount, amount, job.key)


def _released(job: Job, plans: Mapping[str, _NodePlan]) -> Released:
    if len(job.pods) == 1:  # as most have
        node = job.pods[0].node or ""
        return {node: plans[node].released_by(job.pods)} if node in plans else {}
    by_node: defaultdict[str, list[PodFact]] = defaultdict(list)
    for pod in job.pods:
        if pod.node in plans:
            by_node[pod.node or ""].append(pod)
    return {node: plans[node].released_by(pods) for node, pods in by_node.items()}


def _release(amounts: Released, plans: Mapping[str, _NodePlan], sign: int = 1) -> int:
    return sum([plans[node].release(more, sign) for node, more in amounts.items()])
