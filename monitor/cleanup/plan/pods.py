"""Plan for pods: those that finished long ago, and those stuck in deletion whose processes are all gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite, Risk
from monitor.cleanup.plan.exempt import exemption
from monitor.cleanup.plan.image_protection import STOPPED
from monitor.cleanup.plan.select import Candidate, PlanSubject, Protection, Selection, make_plan
from monitor.cleanup.policy import PodPolicy
from monitor.cluster.owners import no_owners, workload_of
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

PROTECTIONS = (
    "exempt", "too-young", "newest", "job-active", "finalizer", "process-left", "agent-silent", "unknown",
)  # fmt: skip
FRESH_SECONDS = 60.0  # an older snapshot proves nothing
# Their controllers replace a failed pod at once, so it does not belong to a job in progress.
_REPLACING_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")
_UNKNOWN_IDENTITY = Identity()


@dataclass(frozen=True)
class PodContext:
    """Facts about pods and nodes. `confirmed` are uids of stuck pods that an admin declared to be gone."""

    policy: PodPolicy
    now: float
    agents: Mapping[str, AgentFact] = field(default_factory=dict)  # by node
    identities: Mapping[str, Identity] = field(default_factory=dict)  # by uid
    confirmed: frozenset[str] = frozenset()
    tenant_namespaces: frozenset[str] = frozenset()  # those with an owner

    def user(self, pod: PodFact) -> str | None:
        return self.identities.get(pod.uid, _UNKNOWN_IDENTITY).user

    def exempted(self, pod: PodFact) -> Protection | None:
        """Exemption of a pod."""
        return exemption(pod, self.user(pod), self.policy.exempt, self.tenant_namespaces)


def plan_pods(pods: Iterable[PodFact], context: PodContext) -> CleanupPlan:
    """Plan for all pods, the oldest first."""
    policy, all_pods, kept = context.policy, tuple(pods), list[KeptItem]()
    candidates = [*_stuck(all_pods, context, kept), *_finished(all_pods, context, kept)]
    selection = Selection(policy.caps)
    selection.add((Candidate(item) for item in candidates), None)
    return make_plan(PlanSubject(policy, context.now), selection, kept)


def ended_at(pod: PodFact) -> float | None:
    """When a finished pod ended, by its container statuses and conditions; None if unknown."""
    times = [status.finished_at for status in pod.statuses if status.finished_at is not None]
    times += [condition.since for condition in pod.conditions if condition.since is not None]
    return max(times, default=None)


def _finished(pods: tuple[PodFact, ...], context: PodContext, kept: list[KeptItem]) -> Iterator[Item]:
    policy = context.policy
    if policy.finished_after is None:
        return
    active, newest = _active_jobs(pods), _newest(pods, policy.keep_newest)
    finished = [pod for pod in pods if pod.finished and pod.deletion_at is None]
    for pod in sorted(finished, key=lambda pod: (ended_at(pod) or 0.0, pod.uid)):
        protection = (
            context.exempted(pod)
            or (Protection("finalizer", pod.finalizers[0]) if pod.finalizers else None)
            or _age(pod, policy.finished_after, context.now)
            or (Protection("job-active", _job(pod)[2]) if _job(pod) in active else None)
            or (Protection("newest") if pod.uid in newest else None)
        )
        if protection is not None:
            kept.append(protection.kept_item(f"{pod.namespace}/{pod.name}", pod.node))
            continue
        seconds = context.now - (ended_at(pod) or context.now)
        why = Text(key="cleanup.why.pod-finished", values={"phase": pod.phase or "?", "seconds": seconds})
        yield _item(pod, "delete", why, Risk.MEDIUM, context)


def _age(pod: PodFact, after: float, now: float) -> Protection | None:
    ended = ended_at(pod)
    if ended is None:
        return Protection("unknown")
    return Protection("too-young") if now - ended < after else None


def _job(pod: PodFact) -> tuple[str, str, str]:
    """Namespace, kind and name of the job of a pod; all runs of a CronJob are one job."""
    workload = workload_of(pod, no_owners)
    return pod.namespace, workload.kind, workload.name


def _active_jobs(pods: Iterable[PodFact]) -> set[tuple[str, str, str]]:
    """Jobs with unfinished pods: their controllers may still count the finished ones."""
    unfinished = [pod for pod in pods if not pod.finished]
    return {_job(pod) for pod in unfinished if pod.owner is not None and pod.owner.kind not in _REPLACING_OWNERS}


def _newest(pods: Iterable[PodFact], count: int) -> set[str]:
    """Uids of the last finished pods of each job, kept for their logs."""
    jobs: defaultdict[tuple[str, str, str], list[PodFact]] = defaultdict(list)
    for pod in pods:
        if pod.finished and pod.owner is not None:
            jobs[_job(pod)].append(pod)
    newest: set[str] = set()
    for members in jobs.values():
        members.sort(key=lambda pod: (-(ended_at(pod) or 0.0), pod.uid))
        newest.update(pod.uid for pod in members[:count])
    return newest


def _stuck(pods: tuple[PodFact, ...], context: PodContext, kept: list[KeptItem]) -> Iterator[Item]:
    """Pods to delete by force: the agent of their node proves that no process is left."""
    after = context.policy.stuck_after
    if after is None:
        return
    stuck = [pod for pod in pods if pod.deletion_at is not None and context.now - pod.deletion_at >= after]
    for pod in sorted(stuck, key=lambda pod: (pod.deletion_at or 0.0, pod.uid)):
        protection = (
            context.exempted(pod)
            or (Protection("finalizer", pod.finalizers[0]) if pod.finalizers else None)
            or (None if pod.uid in context.confirmed else _remains(pod, context))
        )
        if protection is not None:
            kept.append(protection.kept_item(f"{pod.namespace}/{pod.name}", pod.node))
            continue
        values: dict[str, Value] = {"seconds": context.now - (pod.deletion_at or context.now), "node": pod.node or "?"}
        key = "cleanup.why.pod-confirmed" if pod.uid in context.confirmed else "cleanup.why.pod-stuck"
        yield _item(pod, "force", Text(key=key, values=values), Risk.HIGH, context)


def _remains(pod: PodFact, context: PodContext) -> Protection | None:
    """What may be left of a pod on its node; None only if the agent proves that nothing is."""
    agent = context.agents.get(pod.node or "")
    snapshot = agent.snapshot if agent else None
    if agent is None or snapshot is None or not _is_fresh(agent, snapshot, context.now):
        return Protection("agent-silent", pod.node)
    if snapshot.containers is None or not _processes_known(snapshot):
        return Protection("unknown", pod.node)
    alive = [
        container for container in snapshot.containers if container.pod_uid == pod.uid and container.state != STOPPED
    ]
    if alive:
        return Protection("process-left", alive[0].name or alive[0].id[:12])
    process = next((process for process in snapshot.gpu_processes or () if process.pod_uid == pod.uid), None)
    return Protection("process-left", f"pid {process.pid}") if process is not None else None


def _is_fresh(agent: AgentFact, snapshot: NodeSnapshot, now: float) -> bool:
    """Whether an agent answered lately, and not with an old snapshot."""
    received = agent.received_at
    fresh = received is not None and now - received <= FRESH_SECONDS and abs(received - snapshot.at) <= FRESH_SECONDS
    return fresh and agent.silent_since is None


def _processes_known(snapshot: NodeSnapshot) -> bool:
    """Whether the GPU processes of a node are known; without a driver there are none."""
    absent = any(fact.name == "gpu_processes" and fact.outcome == "absent" for fact in snapshot.collectors)
    return snapshot.gpu_processes is not None or absent


def _item(pod: PodFact, how: str, why: Text, risk: Risk, context: PodContext) -> Item:
    return Item(
        id=f"pod/{pod.uid}",
        name=f"{pod.namespace}/{pod.name}",
        why=why,
        risk=risk,
        node=pod.node,
        owner=context.user(pod),
        not_before=context.now,
        act=PodWrite(namespace=pod.namespace, name=pod.name, uid=pod.uid, how=how),
    )
