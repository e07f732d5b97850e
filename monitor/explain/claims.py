"""Volumes that block scheduling: claims that are missing or unbound."""

from __future__ import annotations

import re

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, pending_diagnosis
from monitor.explain.scheduler_message import SchedulerVerdict
from monitor.facts.kube import PodFact
from monitor.facts.text import Value

_CLAIM = re.compile(r"persistentvolumeclaim \\?\"([^\"\\]+)\\?\"", re.IGNORECASE)


def missing_or_unbound(pod: PodFact, verdict: SchedulerVerdict | None) -> PodDiagnosis | None:
    """Diagnosis of a missing or unbound claim that the scheduler reports, or None."""
    if verdict is None:
        return None
    keys = {
        SchedulingCause.CLAIM_MISSING: (Key.CLAIM_MISSING, Key.CLAIM_MISSING_ADVICE),
        SchedulingCause.CLAIM_UNBOUND: (Key.CLAIM_UNBOUND, Key.CLAIM_UNBOUND_ADVICE),
    }
    for reason, (headline, advice) in keys.items():
        if part := verdict.about(reason):
            match = _CLAIM.search(part.text)
            values: dict[str, Value] = {"claim": match[1] if match else _claims(pod), "namespace": pod.namespace}
            return pending_diagnosis(PendingCause.VOLUME, headline, advice, values)
    return None


def _claims(pod: PodFact) -> str:
    return ", ".join(volume.claim for volume in pod.volumes if volume.claim) or "?"
