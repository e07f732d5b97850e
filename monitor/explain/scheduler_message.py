"""What the scheduler itself says about a pending pod, in the words of Kubernetes 1.20 and later, Volcano and Kueue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.facts.cluster_facts import World
from monitor.facts.kube import ConditionFact, PodFact

REASONS = ("FailedScheduling", "Unschedulable", "NotTriggerScaleUp")
_TAIL = re.compile(r"\.?\s*preemption: ", re.IGNORECASE)
_HEAD = re.compile(r"^.{0,40}?nodes are (?:un)?available:?\s*", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"(?:^|[,.]\s+)(\d+)\s+(?=\S)")


class Says(StrEnum):
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
_WORDS: tuple[tuple[Says, tuple[str, ...]], ...] = (
    (
        Says.CLAIM_UNBOUND,
        ("unbound immediate persistentvolumeclaim", "non-existent persistentvolume", "is being deleted"),
    ),
    (Says.VOLUME_ELSEWHERE, ("volume node affinity", "no available volume zone")),
    (Says.VOLUME, ("persistent volumes to bind", "max volume count", "enough free storage", "volumebinding")),
    (Says.QUEUE, ("queue resource quota", "quota", "queue", "couldn't assign flavors")),
    (Says.GANG, ("pod group", "podgroup", "gang", "minavailable", "minmember")),
    (Says.TAINT, ("taint",)),
    (Says.POD_AFFINITY, ("pod affinity", "anti-affinity", "affinity/anti-affinity", "pod's affinity")),
    (Says.SELECTOR, ("node affinity", "node selector", "nodeselector")),
    (Says.CORDONED, ("unschedulable",)),
    (Says.PORTS, ("free ports",)),
    (Says.SPREAD, ("topology spread",)),
    (Says.RESOURCE, ("insufficient", "too many pods", "resource fit failed", "enough resource", "pod number exceeded")),
)


@dataclass(frozen=True)
class Part:
    """A part of the message: on how many nodes, where it counts them, and about what."""

    says: Says
    text: str
    nodes: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The newest word of the scheduler. `since` is when it first said no."""

    message: str
    since: float | None
    parts: tuple[Part, ...]

    def about(self, says: Says) -> Part | None:
        """Return the first part about this, or None."""
        return next((part for part in self.parts if part.says is says), None)


def verdict(pod: PodFact, world: World) -> Verdict | None:
    """Given a pod, return what the scheduler says of it, or None if it has not spoken."""
    condition = refused(pod)
    event = next((each for each in reversed(world.events_of(pod)) if each.reason in REASONS and each.message), None)
    message = (condition.message if condition else None) or (event.message if event else None)
    if not message:
        return None
    since = condition.since if condition else event.first_at if event else None
    return Verdict(message, since, parse(message))


def refused(pod: PodFact) -> ConditionFact | None:
    """Given a pod, return the condition by which a scheduler says that it cannot place it, or None."""
    return next((each for each in pod.conditions if each.type == "PodScheduled" and each.status is False), None)


def parse(message: str) -> tuple[Part, ...]:
    """Given a scheduler's message, return its parts. What preemption could do is left out: it is about other pods."""
    body, counted = _HEAD.subn("", _TAIL.split(message, maxsplit=1)[0], count=1)
    pieces = _PART.split(body.strip().rstrip(".")) if counted else [body]
    parts = [_part(pieces[0], None)] if pieces[0].strip() else []
    parts += [_part(text, int(count[:9])) for count, text in zip(pieces[1::2], pieces[2::2], strict=True)]
    return tuple(parts)


def _part(text: str, nodes: int | None) -> Part:
    text = text.strip().rstrip(",.")
    lower = text.lower()
    if "persistentvolumeclaim" in lower and "not found" in lower:
        return Part(Says.CLAIM_MISSING, text, nodes)
    says = next((says for says, words in _WORDS if any(word in lower for word in words)), Says.OTHER)
    return Part(says, text, nodes)
