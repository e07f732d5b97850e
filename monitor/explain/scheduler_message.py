"""The scheduler's message about a pending pod: kube-scheduler (Kubernetes 1.20 and later), Volcano and Kueue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.quote import Fragments, match_fragments
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ConditionFact, PodFact

SCHEDULING_EVENT_REASONS = ("FailedScheduling", "Unschedulable", "NotTriggerScaleUp")
_TAIL = re.compile(r"preemption: ", re.IGNORECASE)
_HEAD = re.compile(r"^.{0,40}?nodes are (?:un)?available:?\s*", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"(?:^|[,.]\s+)(\d+)\s+(?=\S)")


class SchedulerReason(StrEnum):
    """What one part of the message is about."""

    RESOURCE = "resource"
    TAINT = "taint"
    SELECTOR = "selector"
    CORDONED = "cordoned"
    CLAIM_MISSING = "claim-missing"
    CLAIM_UNBOUND = "claim-unbound"
    VOLUME_ELSEWHERE = "volume-elsewhere"
    VOLUME = "volume"
    POD_AFFINITY = "pod-affinity"
    PORTS = "ports"
    SPREAD = "spread"
    GANG = "gang"
    QUEUE = "queue"
    OTHER = "other"


# The first match in the lower-cased text wins.
_FRAGMENTS: Fragments[SchedulerReason] = (
    (
        SchedulerReason.CLAIM_UNBOUND,
        ("unbound immediate persistentvolumeclaim", "non-existent persistentvolume", "is being deleted"),
    ),
    (SchedulerReason.VOLUME_ELSEWHERE, ("volume node affinity", "no available volume zone")),
    (
        SchedulerReason.VOLUME,
        ("persistent volumes to bind", "max volume count", "enough free storage", "volumebinding"),
    ),
    (SchedulerReason.QUEUE, ("queue resource quota", "quota", "queue", "couldn't assign flavors")),
    (SchedulerReason.GANG, ("pod group", "podgroup", "gang", "minavailable", "minmember")),
    (SchedulerReason.TAINT, ("taint",)),
    (SchedulerReason.POD_AFFINITY, ("pod affinity", "anti-affinity", "affinity/anti-affinity", "pod's affinity")),
    (SchedulerReason.SELECTOR, ("node affinity", "node selector", "nodeselector")),
    (SchedulerReason.CORDONED, ("unschedulable",)),
    (SchedulerReason.PORTS, ("free ports",)),
    (SchedulerReason.SPREAD, ("topology spread",)),
    (
        SchedulerReason.RESOURCE,
        ("insufficient", "too many pods", "resource fit failed", "enough resource", "pod number exceeded"),
    ),
)


@dataclass(frozen=True)
class SchedulerMessagePart:
    """One part of the message. `nodes` is the number of nodes it applies to, if given."""

    reason: SchedulerReason
    text: str
    nodes: int | None = None


@dataclass(frozen=True)
class SchedulerVerdict:
    """The scheduler's latest message. `since` is when it first rejected the pod."""

    message: str
    since: float | None
    parts: tuple[SchedulerMessagePart, ...]

    def about(self, reason: SchedulerReason) -> SchedulerMessagePart | None:
        """The first part with this reason, or None."""
        return next((part for part in self.parts if part.reason is reason), None)


def scheduler_verdict(pod: PodFact, facts: ClusterFacts) -> SchedulerVerdict | None:
    """The scheduler's verdict on the pod, or None if there is none yet."""
    condition = unschedulable_condition(pod)
    events = [event for event in facts.events_of(pod) if event.reason in SCHEDULING_EVENT_REASONS and event.message]
    event = events[-1] if events else None
    message = (condition.message if condition else None) or (event.message if event else None)
    if not message:
        return None
    since = condition.since if condition else event.first_at if event else None
    return SchedulerVerdict(message, since, parse_scheduler_message(message))


def unschedulable_condition(pod: PodFact) -> ConditionFact | None:
    """The condition in which a scheduler reports that it cannot place the pod, or None."""
    return next(
        (condition for condition in pod.conditions if condition.type == "PodScheduled" and condition.status is False),
        None,
    )


def parse_scheduler_message(message: str) -> tuple[SchedulerMessagePart, ...]:
    """Parts of a scheduler message, without the preemption result, which is about other pods."""
    body, counted = _HEAD.subn("", _TAIL.split(message, maxsplit=1)[0], count=1)
    pieces = _PART.split(body.strip().rstrip(".")) if counted else [body]
    parts = [_part(pieces[0], None)] if pieces[0].strip() else []
    parts += [_part(text, int(count[:9])) for count, text in zip(pieces[1::2], pieces[2::2], strict=True)]
    return tuple(parts)


def _part(text: str, nodes: int | None) -> SchedulerMessagePart:
    text = text.strip().rstrip(",.")
    lower = text.lower()
    if "persistentvolumeclaim" in lower and "not found" in lower:
        return SchedulerMessagePart(SchedulerReason.CLAIM_MISSING, text, nodes)
    return SchedulerMessagePart(match_fragments(text, _FRAGMENTS) or SchedulerReason.OTHER, text, nodes)
