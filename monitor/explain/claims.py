"""Volumes that keep a pod from being scheduled at all: claims that are missing, unbound, or bound elsewhere."""

from __future__ import annotations

import re

from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerReason, SchedulerVerdict
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

_CLAIM = re.compile(r"persistentvolumeclaim \\?\"([^\"\\]+)\\?\"", re.IGNORECASE)


def missing_or_unbound(pod: PodFact, says: SchedulerVerdict | None) -> PodDiagnosis | None:
    """Given what the scheduler says, return that a claim is missing or unbound, or None."""
    if says is None:
        return None
    if part := says.about(SchedulerReason.CLAIM_MISSING):
        match = _CLAIM.search(part.text)
        values: dict[str, Value] = {"claim": match[1] if match else _claims(pod), "namespace": pod.namespace}
        return _answer(Key.CLAIM_MISSING, Key.CLAIM_MISSING_ADVICE, values)
    if part := says.about(SchedulerReason.CLAIM_UNBOUND):
        match = _CLAIM.search(part.text)
        values = {"claim": match[1] if match else _claims(pod), "namespace": pod.namespace}
        return _answer(Key.CLAIM_UNBOUND, Key.CLAIM_UNBOUND_ADVICE, values)
    return None


def volume_unavailable(says: SchedulerVerdict) -> PodDiagnosis | None:
    """Given what the scheduler says, return that a volume ties the pod to other nodes, or cannot be had; or None."""
    if says.about(SchedulerReason.VOLUME_ELSEWHERE):
        return _answer(Key.VOLUME_ELSEWHERE, Key.VOLUME_ELSEWHERE_ADVICE, {})
    if part := says.about(SchedulerReason.VOLUME):
        return _answer(Key.VOLUME_UNAVAILABLE, Key.VOLUME_UNAVAILABLE_ADVICE, {"message": quote(part.text)})
    return None


def _claims(pod: PodFact) -> str:
    return ", ".join(volume.claim for volume in pod.volumes if volume.claim) or "?"


def _answer(headline: Key, advice: Key, values: dict[str, Value]) -> PodDiagnosis:
    return PodDiagnosis(PodStatus.PENDING, PendingCause.VOLUME, Text(headline, values), advice=(Text(advice, values),))
