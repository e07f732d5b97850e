"""What the scheduler itself says about a pending pod, in the words of Kubernetes 1.20 and later, Volcano and Kueue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ConditionFact, PodFact

SCHEDULING_EVENT_REASONS = ("FailedScheduling", "Unschedulable", "NotTriggerScaleUp")
_TAIL = re.compile(r"\.?\s*preemption: ", re.IGNORECASE)
_HEAD = re.compile(r"^.{0,40}?nodes are (?:un)?available:?\s*", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"(?:^|[,.]\s+)(\d+)\s+(?=\S)")


class SchedulerReason(StrEnum):
    """What a part of the message is about."""

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


# First match wins, on lower case.
_WORDS: tuple[tuple[SchedulerReason, tuple[str, ...]], ...] = (
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
    """A part of the message: on how many nodes, where it counts them, and about what."""

    says: SchedulerReason
    text: str
    nodes: int | None = None


@dataclass(frozen=True)
class SchedulerVerdict:
    """The newest word of the scheduler. `since` is when it first said no."""

    message: str
    since: float | None
    parts: tuple[SchedulerMessagePart, ...]

    def about(self, says: SchedulerReason) -> SchedulerMessagePart | None:
        """Return the first part about this, or None."""
        return next((part for part in self.parts if part.says is says), None)


def scheduler_verdict(pod: PodFact, facts: ClusterFacts) -> SchedulerVerdict | None:
    """Given a pod, return what the scheduler says of it, or None if it has not spoken."""
    condition = unschedulable_condition(pod)
    event = next(
        (
            candidate
            for candidate in reversed(facts.events_of(pod))
            if candidate.reason in SCHEDULING_EVENT_REASONS and candidate.message
        ),
        None,
    )
    message = (condition.message if condition else None) or (event.message if event else None)
    if not message:
        return None
    since = condition.since if condition else event.first_at if event else None
    return SchedulerVerdict(message, since, parse_scheduler_message(message))


def unschedulable_condition(pod: PodFact) -> ConditionFact | None:
    """Given a pod, return the condition by which a scheduler says that it cannot place it, or None."""
    return next(
        (condition for condition in pod.conditions if condition.type == "PodScheduled" and condition.status is False),
        None,
    )


def parse_scheduler_message(message: str) -> tuple[SchedulerMessagePart, ...]:
    """Given a scheduler's message, return its parts. What preemption could do is left out: it is about other pods."""
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
    says = next(
        (says for says, fragments in _WORDS if any(fragment in lower for fragment in fragments)), SchedulerReason.OTHER
    )
    return SchedulerMessagePart(says, text, nodes)
