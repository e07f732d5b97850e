"""Data model of explanations: status, cause, headline, evidence and advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.keys import Key
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value


class PodStatus(StrEnum):
    """What a pod is doing."""

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
    """Why a pod is not scheduled. The values are also the causes of the pending-pod rule."""

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
    """Why a pod is in its status. `cause` is a stable code, independent of wording."""

    status: PodStatus
    cause: str
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()


def pending_diagnosis(cause: PendingCause, headline: Key, advice: Key, values: dict[str, Value]) -> PodDiagnosis:
    """Diagnosis of a pending pod whose headline and advice share their values."""
    return PodDiagnosis(PodStatus.PENDING, cause, Text(headline, values), advice=(Text(advice, values),))


def pod_values(pod: PodFact) -> dict[str, Value]:
    """Name, namespace and node of the pod as values of a text."""
    return {"pod": pod.name, "namespace": pod.namespace, "node": pod.node or "?"}


@dataclass(frozen=True)
class PodRef:
    """A pod and its owner. For a job without pods, `name` is the requested name."""

    namespace: str | None
    name: str
    uid: str | None = None
    node: str | None = None
    user: str | None = None
    job: str | None = None
    queue: str | None = None


@dataclass(frozen=True)
class Explanation:
    """Diagnosis of an identified pod. `seconds` is the time spent in this status, if known."""

    pod: PodRef
    status: PodStatus
    cause: str
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()
    seconds: float | None = None


def compact_number(amount: float) -> int | float:
    """The amount without an insignificant fraction: 8 for 8.0."""
    rounded = round(amount)
    return rounded if abs(amount - rounded) < 1e-6 else round(amount, 2)
