"""A pod that waits although a node has room for it: others come first, or the scheduler knows more than we do."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.explain import volcano
from monitor.explain.claims import volume_unavailable
from monitor.explain.fit import MAX_ROUNDING_ERROR, NodeFit
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerReason, SchedulerVerdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

SCHEDULING_GRACE_SECONDS = 30.0  # for so long a scheduler may just not have come round to it
# What a message that speaks of one thing only is about.
_CAUSES = {
    SchedulerReason.TAINT: PendingCause.TAINT,
    SchedulerReason.SELECTOR: PendingCause.SELECTOR,
    SchedulerReason.GANG: PendingCause.GANG_INCOMPLETE,
    SchedulerReason.QUEUE: PendingCause.QUOTA,
}
_PARTS = {
    SchedulerReason.POD_AFFINITY: Key.POD_AFFINITY,
    SchedulerReason.PORTS: Key.HOST_PORTS,
    SchedulerReason.SPREAD: Key.TOPOLOGY_SPREAD,
}


def explain(
    pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts, says: SchedulerVerdict | None, now: float
) -> PodDiagnosis:
    """Given a pod for which some node has room, return why it is not there. What the scheduler says beats our sums."""
    if answer := _kept_for_others(pod, fits, facts) or volcano.too_large_together(pod, facts):
        return answer
    node = next(fit.node.name for fit in fits if fit.fits)
    since = says.since if says and says.since is not None else pod.created_at
    if since is None or now - since <= SCHEDULING_GRACE_SECONDS:
        return _other(Key.PENDING_FRESH, Key.PENDING_FRESH_ADVICE, {"node": node})
    if says is None:
        scheduler = pod.scheduler or "default-scheduler"
        return _other(Key.NO_SCHEDULER, Key.NO_SCHEDULER_ADVICE, {"scheduler": scheduler, "node": node})
    return volume_unavailable(says) or _scheduler_disagrees(says, node)


def _other(headline: Key, advice: Key, values: dict[str, Value]) -> PodDiagnosis:
    return PodDiagnosis(PodStatus.PENDING, PendingCause.OTHER, Text(headline, values), advice=(Text(advice, values),))


def awaiting_preemption(pod: PodFact) -> PodDiagnosis | None:
    """Given a pod, return that it waits at a node for pods of lower priority to leave, or None."""
    if pod.nominated_node is None:
        return None
    values: dict[str, Value] = {"node": pod.nominated_node}
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.PRIORITY,
        Text(Key.WAITS_FOR_VICTIMS, values),
        advice=(Text(Key.WAITS_FOR_VICTIMS_ADVICE, values),),
    )


def _kept_for_others(pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis | None:
    """Return that the room is kept for a pod of at least this priority, if so on each node that has any."""
    first: PodFact | None = None
    for fit in fits:
        if not fit.fits:
            continue
        ahead = [other for other in facts.nominated.get(fit.node.name, ()) if _is_ahead(other, pod)]
        reserved = {name: sum(other.requests.get(name, 0.0) for other in ahead) for name in pod.requests}
        left = {name: facts.free(fit.node, name) - reserved[name] for name in pod.requests}
        if not ahead or all(need <= left[name] + MAX_ROUNDING_ERROR for name, need in pod.requests.items()):
            return None
        first = first or ahead[0]
    if first is None:
        return None
    values: dict[str, Value] = {
        "pod": f"{first.namespace}/{first.name}",
        "user": facts.user(first),
        "priority": first.priority or 0,
        "own": pod.priority or 0,
        "node": first.nominated_node or "",
    }
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.PRIORITY,
        Text(Key.KEPT_FOR_OTHERS, values),
        advice=(Text(Key.PRIORITY_ADVICE),),
    )


def _is_ahead(other: PodFact, pod: PodFact) -> bool:
    return other.uid != pod.uid and (other.priority or 0) >= (pod.priority or 0)


def _scheduler_disagrees(says: SchedulerVerdict, node: str) -> PodDiagnosis:
    """Our sums say that it fits, the scheduler says no: it is the one who decides."""
    advice = Text(Key.SCHEDULER_DISAGREES_ADVICE)
    message = Text(Key.SCHEDULER_SAYS, {"message": quote(says.message)})
    for part, key in _PARTS.items():
        if says.about(part):
            return PodDiagnosis(PodStatus.PENDING, PendingCause.OTHER, Text(key), (message,), (advice,))
    if len(says.parts) == 1 and says.parts[0].says in _CAUSES:
        return PodDiagnosis(PodStatus.PENDING, _CAUSES[says.parts[0].says], message, advice=(advice,))
    headline = Text(Key.SCHEDULER_DISAGREES, {"node": node})
    return PodDiagnosis(PodStatus.PENDING, PendingCause.OTHER, headline, (message,), (advice,))
