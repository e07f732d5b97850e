"""Volumes that could not be attached or mounted, classified from messages of the kubelet, mount(8) and CSI drivers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain.causes import MountFailureCause
from monitor.explain.error_chain.mounts import classify_mount
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus, family_diagnosis
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Text, Value

MOUNT_EVENT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")


_VOLUME = re.compile(r"for volume \\?\"([^\"\\]+)\\?\"")
_UNMOUNTED = re.compile(r"unmounted volumes=\[([^\]]*)\]")
_NFS_SOURCE = re.compile(r"(?:while mounting|mounting) (\S+:/\S*)")
# Arguments of mount(8), which the kubelet and CSI drivers quote, and of `rbd map`.
_ARGUMENTS = re.compile(r"-t \w+(?: -o \S+)? (\S+:/\S*|//\S+)")
_RBD_ARGUMENTS = re.compile(r"-m (\S+)(?: -\S+){0,8} map (\S+/\S+)")
_SERVER = re.compile(r"//([^/\s]+)/|([^/\s]+):(?:/|[\w.-]+/)")


@dataclass(frozen=True)
class MountFailure:
    """A classified message: cause, and the volume, object and source it names."""

    cause: MountFailureCause
    volume: str | None = None
    name: str | None = None
    source: str | None = None


def classify(message: str | None) -> MountFailure:
    """Cause of a failed mount from an event message; unknown messages yield UNKNOWN."""
    text = message or ""
    volume, unmounted = _VOLUME.search(text), _UNMOUNTED.search(text)
    where = volume[1] if volume else unmounted[1] if unmounted else None
    answer = classify_mount(message)
    return MountFailure(answer.cause, where, answer.name, _named_source(text))


def _named_source(text: str) -> str | None:
    """What the message says is mounted: `server:/path`, `//server/share` or `monitors:pool/image`."""
    if match := _NFS_SOURCE.search(text) or _ARGUMENTS.search(text):
        return match[1].rstrip(",")
    match = _RBD_ARGUMENTS.search(text)
    return f"{match[1]}:{match[2]}" if match else None


def server_of(source: str) -> str | None:
    """Server or monitors that a source names, or None."""
    match = _SERVER.match(source)
    return (match[1] or match[2]) if match else None


def not_mounted(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis naming the volume that a pod waits for before its containers are created, or None."""
    events = [event for event in facts.events_of(pod) if event.reason in MOUNT_EVENT_REASONS]
    if not events:
        return None
    # A generic "timed out" follows every specific failure a minute later: prefer the specific one.
    order = list(MountFailureCause)
    event = min(
        reversed(events),
        key=lambda candidate: (
            order.index(classify(candidate.message).cause) >= order.index(MountFailureCause.TIMED_OUT)
        ),
    )
    return _diagnosis(event, pod)


def _diagnosis(event: EventFact, pod: PodFact) -> PodDiagnosis:
    failure = classify(event.message)
    values: dict[str, Value] = {
        "volume": failure.volume or "?",
        "name": failure.name or "?",
        "source": failure.source or _source(pod, failure.volume) or failure.volume or "?",
        "node": pod.node or "?",
        "namespace": pod.namespace,
    }
    evidence = (Text(Key.MOUNT_SAYS, {"message": quote(event.message), "count": event.count}),)
    return family_diagnosis(PodStatus.CREATING, "MOUNT", failure.cause.name, values, evidence)


def _source(pod: PodFact, name: str | None) -> str | None:
    """Source of a volume: `server:/path`, a host path, or a claim."""
    volume = next((candidate for candidate in pod.volumes if candidate.name == name), None)
    if volume is None:
        return None
    if volume.server and volume.path:
        return f"{volume.server}:{volume.path}"
    return volume.path or volume.claim or volume.server
