"""Volcano: closed queues, queues over their capability, and gang-scheduled pod groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.fit import MAX_ROUNDING_ERROR, fit_all, gpu_resource, requested_gpus, total_in_words
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, compact_number, pending_diagnosis
from monitor.explain.quota_message import denial_evidence
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import group_messages
from monitor.explain.scheduler_says import reason_diagnosis
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import Amounts, NodeFact, PodFact
from monitor.facts.queues import PodGroupFact, QueueFact
from monitor.facts.text import Text, Value

_NOT_ENQUEUED = (
    SchedulingCause.QUEUE_FULL,
    SchedulingCause.CLUSTER_FULL,
    SchedulingCause.QUEUE_TOO_SMALL,
    SchedulingCause.QUEUE_MISSING,
    SchedulingCause.QUEUE_CLOSED,
)
QUEUE_NAMES = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")


def queue_of(pod: PodFact, group: PodGroupFact | None, facts: ClusterFacts) -> QueueFact | None:
    """The Volcano queue in which the pod waits."""
    named = next((pod.labels.get(key) or pod.annotations.get(key) for key in QUEUE_NAMES), None)
    name = (group.queue if group else None) or named or facts.identity(pod).queue
    return next((queue for queue in facts.queues if queue.kind == "VolcanoQueue" and queue.name == name), None)


def held_back(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Why the Volcano queue or pod group of a pending pod holds it back, or None."""
    group = facts.group_of(pod)
    if group is None and pod.scheduler != "volcano":
        return None
    queue = queue_of(pod, group, facts)
    if queue is not None and (diagnosis := queue_refuses(queue, _needed_amount(pod, group, facts), facts)):
        return diagnosis
    return members_missing(group, facts) if group is not None else None


def _needed_amount(pod: PodFact, group: PodGroupFact | None, facts: ClusterFacts) -> tuple[str, float]:
    """Resource and amount that the queue must have left: for the whole group if none of it runs yet.

    Running members are already part of the queue's allocation. The group's own figure is not enough: it leaves out
    what the job's pods only limit, and Kubernetes makes limits requests.
    """
    resource, own_request = gpu_resource(pod, facts), float(requested_gpus(pod, facts))
    if group is None or (group.running or 0) > 0:
        return resource, own_request
    members = sorted(member.requests.get(resource, 0.0) for member in facts.members(group) if member.phase != "Failed")
    least = sum(members[: group.min_member or 0])
    return resource, max(own_request, least, group.min_resources.get(resource, 0.0))


def queue_refuses(queue: QueueFact, needed: tuple[str, float], facts: ClusterFacts) -> PodDiagnosis | None:
    """Why the queue does not admit the needed (resource, amount), or None."""
    if queue.state in ("closed", "closing"):
        values: dict[str, Value] = {"queue": queue.name, "state": queue.state}
        return PodDiagnosis(
            PodStatus.PENDING,
            PendingCause.QUEUE_CLOSED,
            Text(Key.QUEUE_CLOSED, values),
            advice=(Text(Key.QUEUE_CLOSED_VOLCANO_ADVICE, {"queue": queue.name}),),
        )
    resource, amount = needed
    limit = queue.capacity.get(resource)
    used = queue.allocated.get(resource, 0.0)
    if limit is None or not amount or used + amount <= limit:
        return None
    return over_limit(queue, resource, amount, used, limit, facts)


def over_limit(
    queue: QueueFact, resource: str, amount: float, used: float, limit: float, facts: ClusterFacts
) -> PodDiagnosis:
    """Diagnosis of a queue at its limit, with its main users."""
    values: dict[str, Value] = {
        "queue": queue.name,
        "resource": resource,
        "needs": compact_number(amount),
        "used": compact_number(used),
        "limit": compact_number(limit),
    }
    users = queue_users(queue, resource, facts)
    if amount > limit:
        return pending_diagnosis(PendingCause.QUOTA, Key.QUEUE_NEVER, Key.QUEUE_NEVER_ADVICE, values, users)
    return pending_diagnosis(PendingCause.QUOTA, Key.QUEUE_FULL, Key.QUEUE_FULL_ADVICE, values, users)


def queue_users(queue: QueueFact, resource: str, facts: ClusterFacts) -> Iterable[Text]:
    """Users holding most of the queue."""
    held: dict[str, float] = {}
    for pods in facts.bound.values():
        for pod in pods:
            if facts.identity(pod).queue == queue.name and (amount := pod.requests.get(resource)):
                held[facts.user(pod)] = held.get(facts.user(pod), 0.0) + amount
    if held:
        top = sorted(held.items(), key=lambda item: (-item[1], item[0]))[:3]
        holders = ", ".join(f"{user} ({compact_number(amount)})" for user, amount in top)
        yield Text(Key.QUEUE_HOLDERS, {"queue": queue.name, "holders": holders})


def members_missing(group: PodGroupFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis of a group that waits for pods that do not exist, or None. Failed pods are not members.

    Volcano creates the pods of a job only once its queue has room for the group, so what it says of that comes first.
    """
    if diagnosis := _not_enqueued(group, facts):
        return diagnosis
    needed = group.min_member or 0
    present = sum(pod.phase != "Failed" for pod in facts.members(group))
    if present >= needed:
        return None
    values: dict[str, Value] = {"group": group.name, "present": present, "needed": needed, "missing": needed - present}
    why = tuple(denial_evidence(group.owner.name, group.namespace, facts)) if group.owner else ()
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.GANG_INCOMPLETE,
        Text(Key.GANG_MISSING, values),
        evidence=(*why, *_scheduler_message(group, facts)),
        advice=(Text(Key.GANG_MISSING_ADVICE, {"group": group.name, "namespace": group.namespace}),),
    )


def _not_enqueued(group: PodGroupFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis of a group that its queue or the whole cluster has no room for, in Volcano's words, or None."""
    if group.phase not in (None, "Pending"):
        return None
    for message in reversed(group_messages(group, facts)):
        reason = main_reason(parse_scheduling(message))
        if reason is not None and reason.cause in _NOT_ENQUEUED:
            return reason_diagnosis(reason, {"name": group.queue or "?", "pod": group.name}, message)
    return None


def _scheduler_message(group: PodGroupFact, facts: ClusterFacts) -> Iterable[Text]:
    if messages := group_messages(group, facts):
        yield Text(Key.SCHEDULER_SAYS, {"message": quote(messages[-1])})


def too_large_together(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis if the pod fits on its own but its group does not fit as a whole, or None.

    Members are placed largest first, each on the fullest node that still has room.
    """
    group = facts.group_of(pod)
    if group is None or not group.min_member:
        return None
    present = facts.members(group)
    settled = sum(member.node is not None and member.phase != "Failed" for member in present)
    waiting = [member for member in present if member.node is None and not member.finished]
    placed = _place(waiting, facts)
    if settled + placed >= group.min_member:
        return None
    values: dict[str, Value] = {
        "group": group.name,
        "fit": placed,
        "waiting": len(waiting),
        "needed": group.min_member,
        "gpus": total_in_words(waiting, facts),
    }
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.GANG_INCOMPLETE,
        Text(Key.GANG_TOO_LARGE, values),
        evidence=tuple(_scheduler_message(group, facts)),
        advice=(Text(Key.GANG_TOO_LARGE_ADVICE, {"fit": placed}),),
    )


def _place(pods: list[PodFact], facts: ClusterFacts) -> int:
    """Number of pods for which there is room at the same time."""
    taken: defaultdict[str, Amounts] = defaultdict(dict)
    candidates: dict[object, list[NodeFact]] = {}
    placed = 0
    for pod in sorted(pods, key=lambda member: -requested_gpus(member, facts)):
        # Pods of a group are mostly identical and have the same candidate nodes.
        alike = (str(pod.requests), str(pod.node_selector), pod.node_affinity, pod.tolerations)
        if alike not in candidates:
            fits = sorted((fit for fit in fit_all(pod, facts) if fit.fits), key=lambda fit: fit.free)
            candidates[alike] = [fit.node for fit in fits]
        placed += any(_take(pod, node, taken[node.name], facts) for node in candidates[alike])
    return placed


def _take(pod: PodFact, node: NodeFact, used: Amounts, facts: ClusterFacts) -> bool:
    """Reserve the pod's requests on the node in `used` if there is room; return whether there was."""
    if any(
        amount > facts.free(node, name) - used.get(name, 0.0) + MAX_ROUNDING_ERROR
        for name, amount in pod.requests.items()
    ):
        return False
    for name, amount in pod.requests.items():
        used[name] = used.get(name, 0.0) + amount
    return True
