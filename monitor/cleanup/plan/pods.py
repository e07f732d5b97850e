"""Which pods go: those that ended long ago, and those that should have ended and of which nothing is left. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite, Risk
from monitor.cleanup.plan.exempt import exemption
from monitor.cleanup.plan.image_protection import STOPPED
from monitor.cleanup.plan.references import FINISHED
from monitor.cleanup.plan.select import Candidate, PlanSubject, Protection, Selection, make_plan
from monitor.cleanup.policy import PodPolicy
from monitor.cluster.owners import nobody_known, workload_of
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

PROTECTIONS = (
    "exempt", "too-young", "newest", "job-active", "finalizer", "process-left", "agent-silent", "unknown",
)  # fmt: skip
FRESH_SECONDS = 60.0  # an agent that has not been heard for longer proves nothing
# Their controllers replace a pod that failed at once: it stands for nothing that goes on.
_REPLACING_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")
_UNKNOWN_IDENTITY = Identity()


@dataclass(frozen=True)
class PodContext:
    """What pods are judged by. `confirmed` are the uids of stuck pods of which an admin says that nothing is left."""

    policy: PodPolicy
    now: float
    agents: Mapping[str, AgentFact] = field(default_factory=dict)  # by node
    identities: Mapping[str, Identity] = field(default_factory=dict)  # by uid
    confirmed: frozenset[str] = frozenset()

    def user(self, pod: PodFact) -> str | None:
        """Return whose a pod is."""
        return self.identities.get(pod.uid, _UNKNOWN_IDENTITY).user


def plan_pods(pods: Iterable[PodFact], grounds: PodContext) -> CleanupPlan:
    """Given all pods and what is known of the nodes, return which would be deleted, the oldest first."""
    policy, everyone, kept = grounds.policy, tuple(pods), list[KeptItem]()
    candidates = [*_stuck(everyone, grounds, kept), *_finished(everyone, grounds, kept)]
    selection = Selection(policy.caps)
    selection.add((Candidate(item) for item in candidates), None)
    return make_plan(PlanSubject(policy, grounds.now), selection, kept)


def ended_at(pod: PodFact) -> float | None:
    """Return when a finished pod ended, by its containers and conditions; None if neither tells."""
    ends = [each.finished_at for each in pod.statuses if each.finished_at is not None]
    ends += [each.since for each in pod.conditions if each.since is not None]
    return max(ends, default=None)


def _finished(pods: tuple[PodFact, ...], grounds: PodContext, kept: list[KeptItem]) -> Iterator[Item]:
    policy = grounds.policy
    if policy.finished_after is None:
        return
    active, newest = _active_jobs(pods), _newest(pods, policy.keep_newest)
    found = [pod for pod in pods if pod.phase in FINISHED and pod.deletion_at is None]
    for pod in sorted(found, key=lambda pod: (ended_at(pod) or 0.0, pod.uid)):
        covered = (
            exemption(pod, grounds.user(pod), policy.exempt)
            or (Protection("finalizer", pod.finalizers[0]) if pod.finalizers else None)
            or _age(pod, policy.finished_after, grounds.now)
            or (Protection("job-active", _job(pod)[2]) if _job(pod) in active else None)
            or (Protection("newest") if pod.uid in newest else None)
        )
        if covered is not None:
            kept.append(covered.kept(f"{pod.namespace}/{pod.name}", pod.node))
            continue
        seconds = grounds.now - (ended_at(pod) or grounds.now)
        why = Text(key="cleanup.why.pod-finished", values={"phase": pod.phase or "?", "seconds": seconds})
        yield _item(pod, "delete", why, Risk.MEDIUM, grounds)


def _age(pod: PodFact, after: float, now: float) -> Protection | None:
    ended = ended_at(pod)
    if ended is None:
        return Protection("unknown")
    return Protection("too-young") if now - ended < after else None


def _job(pod: PodFact) -> tuple[str, str, str]:
    """Return the job that a pod is of: all runs of a CronJob are one."""
    workload = workload_of(pod, nobody_known)
    return pod.namespace, workload.kind, workload.name


def _active_jobs(pods: Iterable[PodFact]) -> set[tuple[str, str, str]]:
    """Return the jobs that still have pods to come or to end: their books may need the ones that are done."""
    running = [pod for pod in pods if pod.phase not in FINISHED]
    return {_job(pod) for pod in running if pod.owner is not None and pod.owner.kind not in _REPLACING_OWNERS}


def _newest(pods: Iterable[PodFact], count: int) -> set[str]:
    """Return the uids of the last few finished pods of each job: somebody may still want to read their logs."""
    jobs: defaultdict[tuple[str, str, str], list[PodFact]] = defaultdict(list)
    for pod in pods:
        if pod.phase in FINISHED and pod.owner is not None:
            jobs[_job(pod)].append(pod)
    found: set[str] = set()
    for members in jobs.values():
        members.sort(key=lambda pod: (-(ended_at(pod) or 0.0), pod.uid))
        found.update(pod.uid for pod in members[:count])
    return found


def _stuck(pods: tuple[PodFact, ...], grounds: PodContext, kept: list[KeptItem]) -> Iterator[Item]:
    """Yield what may be forced: nothing of it is left on its node, and the node proves it."""
    after = grounds.policy.stuck_after
    if after is None:
        return
    stuck = [pod for pod in pods if pod.deletion_at is not None and grounds.now - pod.deletion_at >= after]
    for pod in sorted(stuck, key=lambda pod: (pod.deletion_at or 0.0, pod.uid)):
        covered = (
            exemption(pod, grounds.user(pod), grounds.policy.exempt)
            or (Protection("finalizer", pod.finalizers[0]) if pod.finalizers else None)
            or (None if pod.uid in grounds.confirmed else _remains(pod, grounds))
        )
        if covered is not None:
            kept.append(covered.kept(f"{pod.namespace}/{pod.name}", pod.node))
            continue
        values: dict[str, Value] = {"seconds": grounds.now - (pod.deletion_at or grounds.now), "node": pod.node or "?"}
        key = "cleanup.why.pod-confirmed" if pod.uid in grounds.confirmed else "cleanup.why.pod-stuck"
        yield _item(pod, "force", Text(key=key, values=values), Risk.HIGH, grounds)


def _remains(pod: PodFact, grounds: PodContext) -> Protection | None:
    """Return what may be left of a pod on its node; None only if its agent proves that nothing is."""
    agent = grounds.agents.get(pod.node or "")
    snapshot = agent.snapshot if agent else None
    if agent is None or snapshot is None or not _is_fresh(agent, snapshot, grounds.now):
        return Protection("agent-silent", pod.node)
    if snapshot.containers is None or not _processes_known(snapshot):
        return Protection("unknown", pod.node)
    alive = [each for each in snapshot.containers if each.pod_uid == pod.uid and each.state != STOPPED]
    if alive:
        return Protection("process-left", alive[0].name or alive[0].id[:12])
    process = next((each for each in snapshot.gpu_processes or () if each.pod_uid == pod.uid), None)
    return Protection("process-left", f"pid {process.pid}") if process is not None else None


def _is_fresh(agent: AgentFact, snapshot: NodeSnapshot, now: float) -> bool:
    """Return whether an agent's word is of now: heard lately, and not an old snapshot that it gave out again."""
    received = agent.received_at
    fresh = received is not None and now - received <= FRESH_SECONDS and abs(received - snapshot.at) <= FRESH_SECONDS
    return fresh and agent.silent_since is None


def _processes_known(snapshot: NodeSnapshot) -> bool:
    """Return whether it is known who is on the cards; a node without a driver has nobody there."""
    absent = any(each.name == "gpu_processes" and each.outcome == "absent" for each in snapshot.collectors)
    return snapshot.gpu_processes is not None or absent


def _item(pod: PodFact, how: str, why: Text, risk: Risk, grounds: PodContext) -> Item:
    return Item(
        id=f"pod/{pod.uid}",
        name=f"{pod.namespace}/{pod.name}",
        why=why,
        risk=risk,
        node=pod.node,
        owner=grounds.user(pod),
        not_before=grounds.now,
        act=PodWrite(namespace=pod.namespace, name=pod.name, uid=pod.uid, how=how),
    )
