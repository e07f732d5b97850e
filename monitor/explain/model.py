"""What an explanation is made of: a headline with its cause, the evidence, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from monitor.facts.text import Text


class PodStatus(StrEnum):
    """What a pod is doing, in one word."""

    PENDING = "pending"
    PULLING = "pulling"
    CREATING = "creating"
    CRASHING = "crashing"
    TERMINATING = "terminating"
    IDLE = "idle"
    SILENT = "silent"
    RUNNING = "running"
    FINISHED = "finished"
    NOT_CREATED = "not-created"


class PendingCause(StrEnum):
    """Why a pod is not scheduled. These words are also the causes of the rule on pending pods."""

    NO_SINGLE_NODE_FITS = "no-single-node-fits"
    NOT_ENOUGH_GPUS = "not-enough-gpus"
    QUOTA = "quota"
    QUEUE_CLOSED = "queue-closed"
    GANG_INCOMPLETE = "gang-incomplete"
    TAINT = "taint"
    SELECTOR = "selector"
    VOLUME = "volume"
    PRIORITY = "priority"
    OVERTAKEN = "overtaken"
    OTHER = "unschedulable-other"


@dataclass(frozen=True)
class PodDiagnosis:
    """Why a pod is as it is. `cause` is an enumerated word that stays the same however the sentence is put."""

    status: PodStatus
    cause: str
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()


@dataclass(frozen=True)
class PodRef:
    """Which pod, and whose. Of something that has no pod yet, `name` is the name that was asked for."""

    namespace: str | None
    name: str
    uid: str | None = None
    node: str | None = None
    user: str | None = None
    job: str | None = None
    queue: str | None = None


@dataclass(frozen=True)
class Explanation:
    """An answer about a pod. `seconds` is how long it has been in this status, None where nothing says."""

    pod: PodRef
    status: PodStatus
    cause: str
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()
    seconds: float | None = None


def compact_number(amount: float) -> int | float:
    """Given an amount, return it without a fraction that says nothing: 8 for 8.0."""
    rounded = round(amount)
    return rounded if abs(amount - rounded) < 1e-6 else round(amount, 2)
