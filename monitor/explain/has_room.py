"""Pods pending although a node has room: other pods come first, or the scheduler applies another constraint."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.explain import scheduler_says, volcano
from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.fit import MAX_ROUNDING_ERROR, NodeFit
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerVerdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

SCHEDULING_GRACE_SECONDS = 30.0  # the scheduler may not have tried yet
# Reasons that nodes do not show and that do not pass when pods end.
_LASTING = frozenset({C.VOLUME_ELSEWHERE, C.VOLUME, C.VOLUME_LIMIT})


def explain(
    pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts, verdict: SchedulerVerdict | None, now: float
) -> PodDiagnosis:
    """Diagnosis of a pod for which a node has room. The scheduler's message takes precedence over our calculation."""
    if diagnosis := _kept_for_others(pod, fits, facts) or volcano.too_large_together(pod, facts):
        return diagnosis
    node = next(fit.node.name for fit in fits if fit.fits)
    since = verdict.since if verdict and verdict.since is not None else pod.created_at
    lasting = verdict is not None and verdict.reason is not None and verdict.reason.cause in _LASTING
    if not lasting and (since is None or now - since <= SCHEDULING_GRACE_SECONDS):
        return pending_diagnosis(PendingCause.OTHER, Key.PENDING_FRESH, Key.PENDING_FRESH_ADVICE, {"node": node})
    if verdict is None:
        values: dict[str, Value] = {"scheduler": pod.scheduler or "default-scheduler", "node": node}
        return pending_diagnosis(PendingCause.OTHER, Key.NO_SCHEDULER, Key.NO_SCHEDULER_ADVICE, values)
    return scheduler_says.by_message(pod, verdict) or _scheduler_disagrees(verdict, node)


def awaiting_preemption(pod: PodFact) -> PodDiagnosis | None:
    """Diagnosis of a pod that waits for lower-priority pods to leave its nominated node, or None."""
    if pod.nominated_node is None:
        return None
    values: dict[str, Value] = {"node": pod.nominated_node}
    return pending_diagnosis(PendingCause.PRIORITY, Key.WAITS_FOR_VICTIMS, Key.WAITS_FOR_VICTIMS_ADVICE, values)


def _kept_for_others(pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis if all nodes with room reserve it for nominated pods of at least this pod's priority, or None."""
    first: PodFact | None = None
    for fit in fits:
        if not fit.fits:
            continue
        ahead = [other for other in facts.nominated.get(fit.node.name, ()) if _is_ahead(other, pod)]
        needs = {name: need for name, need in pod.requests.items() if name in fit.node.allocatable}
        reserved = {name: sum(other.requests.get(name, 0.0) for other in ahead) for name in needs}
        left = {name: facts.free(fit.node, name) - reserved[name] for name in needs}
        if not ahead or all(need <= left[name] + MAX_ROUNDING_ERROR for name, need in needs.items()):
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
        PodStatus.PENDING, PendingCause.PRIORITY, Text(Key.KEPT_FOR_OTHERS, values), advice=(Text(Key.PRIORITY_ADVICE),)
    )


def _is_ahead(other: PodFact, pod: PodFact) -> bool:
    return other.uid != pod.uid and (other.priority or 0) >= (pod.priority or 0)


def _scheduler_disagrees(verdict: SchedulerVerdict, node: str) -> PodDiagnosis:
    """The pod fits by our calculation, but the scheduler, which decides, rejects it."""
    advice = Text(Key.SCHEDULER_DISAGREES_ADVICE)
    message = Text(Key.SCHEDULER_SAYS, {"message": quote(verdict.message)})
    headline = Text(Key.SCHEDULER_DISAGREES, {"node": node})
    return PodDiagnosis(PodStatus.PENDING, PendingCause.OTHER, headline, (message,), (advice,))
