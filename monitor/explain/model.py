"""Data model of explanations: status, cause, headline, evidence and advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.keys import Key
from monitor.facts.kube import ContainerStatusFact, PodFact
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
    UNSEEN = "unseen"


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
    VGPU = "vgpu"
    DEVICE_CLAIM = "device-claim"
    TOPOLOGY = "topology"
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

    def explain(self, pod: PodRef, seconds: float | None = None) -> Explanation:
        return Explanation(pod, self.status, self.cause, self.headline, self.evidence, self.advice, seconds)


def pending_diagnosis(
    cause: PendingCause, headline: Key, advice: Key, values: dict[str, Value], evidence: Iterable[Text] = ()
) -> PodDiagnosis:
    """Diagnosis of a pending pod whose headline and advice share their values."""
    return PodDiagnosis(PodStatus.PENDING, cause, Text(headline, values), tuple(evidence), (Text(advice, values),))


def family_diagnosis(
    status: PodStatus, family: str, member: str, values: dict[str, Value], evidence: Iterable[Text]
) -> PodDiagnosis:
    """Diagnosis by a member of a key family: cause `pull-dns` with the keys PULL_DNS and PULL_DNS_ADVICE."""
    name = f"{family}_{member}"
    headline, advice = Text(Key[name], values), Text(Key[f"{name}_ADVICE"], values)
    return PodDiagnosis(status, name.lower().replace("_", "-"), headline, tuple(evidence), (advice,))


def pod_values(pod: PodFact) -> dict[str, Value]:
    """Name, namespace and node of the pod as values of a text."""
    return {"pod": pod.name, "namespace": pod.namespace, "node": pod.node or "?"}


def running_containers(pod: PodFact) -> list[ContainerStatusFact]:
    """Running containers of the pod, without init containers."""
    return [status for status in pod.statuses if status.state == "running" and not status.init]


def deciding_containers(pod: PodFact) -> list[ContainerStatusFact]:
    """Containers whose exit matters, sidecars last: these are stopped once the other containers have ended."""
    others = [status for status in pod.statuses if not status.sidecar]
    main = [status.state for status in others if not status.init]
    ended = bool(main) and all(state == "terminated" for state in main)
    return others if ended else others + [status for status in pod.statuses if status.sidecar]


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
