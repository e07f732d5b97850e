"""Volumes that block scheduling: claims that are missing, unbound, or bound to other nodes."""

from __future__ import annotations

import re

from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerReason, SchedulerVerdict
from monitor.facts.kube import PodFact
from monitor.facts.text import Value

_CLAIM = re.compile(r"persistentvolumeclaim \\?\"([^\"\\]+)\\?\"", re.IGNORECASE)


def missing_or_unbound(pod: PodFact, verdict: SchedulerVerdict | None) -> PodDiagnosis | None:
    """Diagnosis of a missing or unbound claim that the scheduler reports, or None."""
    if verdict is None:
        return None
    keys = {
        SchedulerReason.CLAIM_MISSING: (Key.CLAIM_MISSING, Key.CLAIM_MISSING_ADVICE),
        SchedulerReason.CLAIM_UNBOUND: (Key.CLAIM_UNBOUND, Key.CLAIM_UNBOUND_ADVICE),
    }
    for reason, (headline, advice) in keys.items():
        if part := verdict.about(reason):
            match = _CLAIM.search(part.text)
            values: dict[str, Value] = {"claim": match[1] if match else _claims(pod), "namespace": pod.namespace}
            return pending_diagnosis(PendingCause.VOLUME, headline, advice, values)
    return None


def volume_unavailable(verdict: SchedulerVerdict) -> PodDiagnosis | None:
    """Diagnosis of a volume that is tied to other nodes or unavailable according to the scheduler, or None."""
    if verdict.about(SchedulerReason.VOLUME_ELSEWHERE):
        return pending_diagnosis(PendingCause.VOLUME, Key.VOLUME_ELSEWHERE, Key.VOLUME_ELSEWHERE_ADVICE, {})
    if part := verdict.about(SchedulerReason.VOLUME):
        values: dict[str, Value] = {"message": quote(part.text)}
        return pending_diagnosis(PendingCause.VOLUME, Key.VOLUME_UNAVAILABLE, Key.VOLUME_UNAVAILABLE_ADVICE, values)
    return None


def _claims(pod: PodFact) -> str:
    return ", ".join(volume.claim for volume in pod.volumes if volume.claim) or "?"
