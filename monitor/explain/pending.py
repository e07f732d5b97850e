"""Pending pods: why they have no node yet."""

from __future__ import annotations

from dataclasses import replace

from monitor.explain import blocked, claims, device_claims, gpu_shortage, has_room, overtaken, queueing, scheduler_says
from monitor.explain.fit import NodeFit, fit_all, listed_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerVerdict, scheduler_verdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text


def pending(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Diagnosis of a pod without a node.

    Queues, pod groups, volumes that are not ready and reasons that nodes do not show come first, then each node is
    examined.
    """
    verdict = scheduler_verdict(pod, facts)
    diagnosis = queueing.held_back(pod, facts) or claims.missing_or_unbound(pod, verdict)
    diagnosis = diagnosis or device_claims.not_allocated(pod, facts, verdict, now)
    diagnosis = diagnosis or scheduler_says.by_plugin(pod, facts, verdict)
    diagnosis = overtaken.add_overtakers(diagnosis or _by_nodes(pod, facts, verdict, now), pod, facts)
    if verdict is None or any(text.key is Key.SCHEDULER_SAYS for text in (diagnosis.headline, *diagnosis.evidence)):
        return diagnosis
    message = Text(Key.SCHEDULER_SAYS, {"message": quote(verdict.message)})
    return replace(diagnosis, evidence=(*diagnosis.evidence, message))


def _by_nodes(pod: PodFact, facts: ClusterFacts, verdict: SchedulerVerdict | None, now: float) -> PodDiagnosis:
    fits = fit_all(pod, facts)
    if not fits:
        return nothing_fits(pod, fits, facts)
    if diagnosis := has_room.awaiting_preemption(pod):
        return diagnosis
    if any(fit.fits for fit in fits):
        return has_room.explain(pod, fits, facts, verdict, now)
    return nothing_fits(pod, fits, facts)


def nothing_fits(pod: PodFact, fits: tuple[NodeFit, ...], facts: ClusterFacts) -> PodDiagnosis:
    """No node fits: the pod may use none, GPUs are short, or another resource is."""
    if not fits:
        return pending_diagnosis(PendingCause.OTHER, Key.NO_NODES, Key.NO_NODES_ADVICE, {})
    needs = listed_gpus(pod, facts)
    if needs and not any(fit.total >= needs for fit in fits):
        return gpu_shortage.too_large(pod, fits, facts)
    able = [fit for fit in fits if fit.usable and fit.total >= needs]
    if not able:
        return blocked.explain(pod, [fit for fit in fits if fit.total >= needs])
    if not all(fit.lacks_gpus for fit in able):
        return blocked.lacks_other_resource(pod, able, facts)
    return gpu_shortage.explain(pod, fits, facts)
