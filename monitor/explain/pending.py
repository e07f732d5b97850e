"""A pod that has no node yet: who or what keeps it waiting."""

from __future__ import annotations

from dataclasses import replace

from monitor.explain import blocked, claims, gpu_shortage, has_room, overtaken, queueing
from monitor.explain.fit import NodeFit, ObstacleKind, fit_all, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerVerdict, scheduler_verdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text


def pending(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Given a pod without a node, return why it waits.

    What cannot be argued with comes first: a queue, a group or a volume that is not ready. Then the nodes, one by one.
    """
    says = scheduler_verdict(pod, facts)
    answer = queueing.held_back(pod, facts) or claims.missing_or_unbound(pod, says) or _by_nodes(pod, facts, says, now)
    answer = overtaken.add_overtakers(answer, pod, facts)
    if says is None or any(text.key is Key.SCHEDULER_SAYS for text in (answer.headline, *answer.evidence)):
        return answer
    return replace(answer, evidence=(*answer.evidence, Text(Key.SCHEDULER_SAYS, {"message": quote(says.message)})))


def _by_nodes(pod: PodFact, facts: ClusterFacts, says: SchedulerVerdict | None, now: float) -> PodDiagnosis:
    fits = fit_all(pod, facts)
    if not fits:
        return PodDiagnosis(
            PodStatus.PENDING, PendingCause.OTHER, Text(Key.NO_NODES), advice=(Text(Key.NO_NODES_ADVICE),)
        )
    if answer := has_room.awaiting_preemption(pod):
        return answer
    if any(fit.fits for fit in fits):
        return has_room.explain(pod, fits, facts, says, now)
    return _nothing_fits(pod, fits, facts)


def _nothing_fits(pod: PodFact, fits: tuple[NodeFit, ...], facts: ClusterFacts) -> PodDiagnosis:
    """No node takes the pod: because none may, because none has the GPUs, or because none has the rest."""
    needs = requested_gpus(pod, facts)
    if needs and not any(fit.total >= needs for fit in fits):
        return gpu_shortage.too_large(pod, fits, facts)
    able = [fit for fit in fits if fit.usable and fit.total >= needs]
    if not able:
        return blocked.explain(pod, [fit for fit in fits if fit.total >= needs])
    if any(all(obstacle.kind is not ObstacleKind.GPU for obstacle in fit.obstacles) for fit in able):
        return blocked.lacks_other_resource(able, needs)
    return gpu_shortage.explain(pod, fits, facts)
