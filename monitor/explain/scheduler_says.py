"""Diagnosis of a pending pod by the scheduler's own reason, where our calculation knows less or finds room."""

from __future__ import annotations

from dataclasses import replace

from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.error_chain.scheduling import SchedulingPart
from monitor.explain.fit import gpus_in_words
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerVerdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_resources import resource_kinds
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

# Reasons that nodes do not show: a node with room does not help.
_PLUGIN_REASONS = frozenset(
    {
        C.DEVICE_CLAIM, C.DEVICE_CLAIM_MISSING, C.DEVICE_CLAIM_DRIVER, C.DEVICE_CLASS_MISSING,
        C.VGPU_UNFIT, C.VGPU_CARD, C.VGPU_MEMORY, C.VGPU_CORES, C.VGPU_SLOTS, C.VGPU_UNREGISTERED,
        C.QUOTA, C.QUEUE_FULL, C.CLUSTER_FULL, C.QUEUE_TOO_SMALL, C.QUEUE_CLOSED, C.QUEUE_MISSING, C.QUEUE_TOPOLOGY,
        C.QUEUE_UNCOVERED, C.GANG_INCOMPLETE, C.BAD_NODE,
    }
)  # fmt: skip
_KEYS = {
    C.POD_AFFINITY: Key.POD_AFFINITY,
    C.PORTS: Key.HOST_PORTS,
    C.SPREAD: Key.TOPOLOGY_SPREAD,
    C.VOLUME_ELSEWHERE: Key.VOLUME_ELSEWHERE,
    C.VOLUME: Key.VOLUME_UNAVAILABLE,
    C.CLAIM_UNBOUND: Key.CLAIM_UNBOUND,
    C.CLAIM_MISSING: Key.CLAIM_MISSING,
}
_CAUSES = {
    PendingCause.TAINT: (C.TAINT, C.DISK_PRESSURE, C.MEMORY_PRESSURE),
    PendingCause.SELECTOR: (C.SELECTOR,),
    PendingCause.NOT_ENOUGH_GPUS: (C.GPUS,),
    PendingCause.GANG_INCOMPLETE: (C.GANG_INCOMPLETE, C.GANG_WAITING),
    PendingCause.QUOTA: (C.QUOTA, C.QUEUE_FULL, C.CLUSTER_FULL, C.QUEUE_TOO_SMALL, C.QUEUE_UNCOVERED, C.QUEUED),
    PendingCause.QUEUE_CLOSED: (C.QUEUE_CLOSED, C.QUEUE_MISSING),
    PendingCause.TOPOLOGY: (C.QUEUE_TOPOLOGY,),
    PendingCause.VGPU: (C.VGPU_UNFIT, C.VGPU_CARD, C.VGPU_MEMORY, C.VGPU_CORES, C.VGPU_SLOTS, C.VGPU_UNREGISTERED),
    PendingCause.DEVICE_CLAIM: (
        C.DEVICE_CLAIM, C.DEVICE_CLAIM_MISSING, C.DEVICE_CLAIM_DRIVER, C.DEVICE_CLASS_MISSING,
    ),
    PendingCause.VOLUME: (C.VOLUME, C.VOLUME_ELSEWHERE, C.VOLUME_LIMIT, C.CLAIM_MISSING, C.CLAIM_UNBOUND),
}  # fmt: skip
_PENDING_CAUSES = {reason: cause for cause, reasons in _CAUSES.items() for reason in reasons}


def by_plugin(pod: PodFact, facts: ClusterFacts, verdict: SchedulerVerdict | None) -> PodDiagnosis | None:
    """Diagnosis by a reason that nodes do not show, or None."""
    if verdict is None or verdict.reason is None:
        return None
    reason = verdict.reason
    if reason.cause is C.GPUS and any(kind.per_card for kind in resource_kinds(pod.requests)):
        reason = replace(reason, cause=C.VGPU_UNFIT)
    if reason.cause not in _PLUGIN_REASONS:
        return None
    diagnosis = _diagnosis(pod, verdict, reason)
    if diagnosis.cause != PendingCause.VGPU:
        return diagnosis
    asks = Text(Key.SHARES_REQUESTED, {"needs": gpus_in_words(pod, facts)})
    return replace(diagnosis, evidence=(asks, *diagnosis.evidence))


def by_message(pod: PodFact, verdict: SchedulerVerdict) -> PodDiagnosis | None:
    """Diagnosis by the reason of the message, or None if it is not understood."""
    if verdict.reason is None or verdict.reason.cause in (C.OTHER, C.GATED):
        return None
    claims = [volume.claim for volume in pod.volumes if volume.claim]
    if verdict.reason.cause is C.GANG_WAITING and claims:  # Volcano does not say that a claim is missing
        values: dict[str, Value] = {"claim": ", ".join(claims), "namespace": pod.namespace}
        says = (_says(verdict),)
        return pending_diagnosis(PendingCause.GANG_INCOMPLETE, Key.GANG_UNSAID, Key.GANG_UNSAID_ADVICE, values, says)
    return _diagnosis(pod, verdict, verdict.reason)


def reason_diagnosis(reason: SchedulingPart, values: dict[str, Value], message: str) -> PodDiagnosis:
    """Diagnosis with the texts of a reason, quoting the message."""
    key = _KEYS.get(reason.cause) or Key[f"SCHED_{reason.cause.name}"]
    named: dict[str, Value] = {"name": reason.name or "?", "message": quote(reason.text)}
    says = Text(Key.SCHEDULER_SAYS, {"message": quote(message)})
    cause = _PENDING_CAUSES.get(reason.cause, PendingCause.OTHER)
    return pending_diagnosis(cause, key, Key[f"{key.name}_ADVICE"], named | values, (says,))


def _diagnosis(pod: PodFact, verdict: SchedulerVerdict, reason: SchedulingPart) -> PodDiagnosis:
    claims = ", ".join(volume.claim for volume in pod.volumes if volume.claim) or "?"
    values: dict[str, Value] = {
        "pod": pod.name,
        "namespace": pod.namespace,
        "claim": claims,
        "scheduler": pod.scheduler or "default-scheduler",
    }
    return reason_diagnosis(reason, values, verdict.message)


def _says(verdict: SchedulerVerdict) -> Text:
    return Text(Key.SCHEDULER_SAYS, {"message": quote(verdict.message)})
