"""Volumes that could not be attached or mounted, classified from messages of the kubelet, mount(8) and CSI drivers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus, family_diagnosis
from monitor.explain.quote import Fragments, match_fragments, quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Text, Value

MOUNT_EVENT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")


class MountFailureCause(StrEnum):
    """Cause of a failed mount, specific causes first."""

    ACCESS_DENIED = "access-denied"
    NO_SUCH_EXPORT = "no-such-export"
    HELPER_MISSING = "helper-missing"
    UNREACHABLE = "unreachable"
    STALE = "stale"
    MULTI_ATTACH = "multi-attach"
    CLAIM_MISSING = "claim-missing"
    SECRET_MISSING = "secret-missing"  # noqa: S105  # a cause, not a secret
    CONFIG_MISSING = "config-missing"
    KEY_MISSING = "key-missing"
    HOST_PATH = "host-path"
    DRIVER_MISSING = "driver-missing"
    DISK_FULL = "disk-full"
    BAD_FILESYSTEM = "bad-filesystem"
    PERMISSION = "permission"
    TIMED_OUT = "timed-out"
    UNKNOWN = "unknown"


# The first match in the lower-cased message wins.
_FRAGMENTS: Fragments[MountFailureCause] = (
    (MountFailureCause.ACCESS_DENIED, ("access denied by server",)),
    (MountFailureCause.HELPER_MISSING, ("/sbin/mount.", "unknown filesystem type", "mount.nfs: not found")),
    (MountFailureCause.DRIVER_MISSING, ("not found in the list of registered csi drivers", "no volume plugin matched")),
    (MountFailureCause.MULTI_ATTACH, ("multi-attach error",)),
    (MountFailureCause.KEY_MISSING, ("references non-existent",)),
    (MountFailureCause.HOST_PATH, ("hostpath type check failed",)),
    (MountFailureCause.DISK_FULL, ("no space left on device",)),
    (MountFailureCause.STALE, ("stale file handle", "stale nfs", "transport endpoint is not connected")),
    (MountFailureCause.NO_SUCH_EXPORT, ("reason given by server: no such file", "no such file or directory")),
    (
        MountFailureCause.UNREACHABLE,
        (
            "connection timed out",
            "connection refused",
            "no route to host",
            "network is unreachable",
            "host is down",
            "name or service not known",
            "failed to resolve server",
            "rpc.statd is not running",
            "i/o timeout",
            "mount.nfs: timed out",
        ),
    ),
    (MountFailureCause.BAD_FILESYSTEM, ("bad superblock", "fsck", "structure needs cleaning", "wrong fs type")),
    (MountFailureCause.PERMISSION, ("permission denied", "operation not permitted")),
    (
        MountFailureCause.TIMED_OUT,
        ("timed out waiting for the condition", "context deadline exceeded", "deadlineexceeded"),
    ),
)
_OBJECTS = re.compile(
    r"\b(persistentvolumeclaim|secret|configmap)s? \\?\"([^\"\\]+)\\?\" (?:is )?not found", re.IGNORECASE
)
_OBJECT_CAUSE = {
    "persistentvolumeclaim": MountFailureCause.CLAIM_MISSING,
    "secret": MountFailureCause.SECRET_MISSING,
    "configmap": MountFailureCause.CONFIG_MISSING,
}
_VOLUME = re.compile(r"for volume \\?\"([^\"\\]+)\\?\"")
_UNMOUNTED = re.compile(r"unmounted volumes=\[([^\]]*)\]")
_NFS_SOURCE = re.compile(r"(?:while mounting|mounting) (\S+:/\S*)")


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
    volume, unmounted, source = _VOLUME.search(text), _UNMOUNTED.search(text), _NFS_SOURCE.search(text)
    where = volume[1] if volume else unmounted[1] if unmounted else None
    if match := _OBJECTS.search(text):
        return MountFailure(_OBJECT_CAUSE[match[1].lower()], where, match[2])
    cause = match_fragments(text, _FRAGMENTS) or MountFailureCause.UNKNOWN
    return MountFailure(cause, where, None, source[1].rstrip(",") if source else None)


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
