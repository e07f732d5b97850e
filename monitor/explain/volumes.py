"""Volumes that could not be attached or mounted, from the words of kubelet, mount(8) and CSI drivers to one cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Text, Value

MOUNT_EVENT_REASONS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")


class MountFailureCause(StrEnum):
    """Why a volume is not there. The order is that of the decision: the specific before the general."""

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


# First match wins, on lower case.
_FRAGMENTS: tuple[tuple[MountFailureCause, tuple[str, ...]], ...] = (
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
    """A classified message: the cause, and which volume, and which object, as far as it says."""

    cause: MountFailureCause
    volume: str | None = None
    name: str | None = None
    source: str | None = None


def classify(message: str | None) -> MountFailure:
    """Given an event's message, return why the volume is not there. Never raise: unknown is a cause too."""
    text = message or ""
    volume, unmounted, source = _VOLUME.search(text), _UNMOUNTED.search(text), _NFS_SOURCE.search(text)
    where = volume[1] if volume else unmounted[1] if unmounted else None
    if match := _OBJECTS.search(text):
        return MountFailure(_OBJECT_CAUSE[match[1].lower()], where, match[2])
    lower = text.lower()
    cause = next(
        (cause for cause, fragments in _FRAGMENTS if any(fragment in lower for fragment in fragments)),
        MountFailureCause.UNKNOWN,
    )
    return MountFailure(cause, where, None, source[1].rstrip(",") if source else None)


def not_mounted(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Given a pod whose containers are not created yet, return which volume it waits for and why, or None."""
    events = [event for event in facts.events_of(pod) if event.reason in MOUNT_EVENT_REASONS]
    if not events:
        return None
    # "Timed out" follows every specific failure a minute later: the specific one tells.
    order = list(MountFailureCause)
    event = min(
        reversed(events),
        key=lambda candidate: (
            order.index(classify(candidate.message).cause) >= order.index(MountFailureCause.TIMED_OUT)
        ),
    )
    return _answer(event, pod)


def _answer(event: EventFact, pod: PodFact) -> PodDiagnosis:
    failure = classify(event.message)
    values: dict[str, Value] = {
        "volume": failure.volume or "?",
        "name": failure.name or "?",
        "source": failure.source or _source(pod, failure.volume) or failure.volume or "?",
        "node": pod.node or "?",
        "namespace": pod.namespace,
    }
    cause = failure.cause.name
    evidence = [Text(Key.MOUNT_SAYS, {"message": quote(event.message), "count": event.count})]
    return PodDiagnosis(
        PodStatus.CREATING,
        f"mount-{failure.cause.value}",
        Text(Key[f"MOUNT_{cause}"], values),
        tuple(evidence),
        (Text(Key[f"MOUNT_{cause}_ADVICE"], values),),
    )


def _source(pod: PodFact, name: str | None) -> str | None:
    """Given a volume's name, return where it comes from: `server:/path`, a path of the node, or a claim."""
    volume = next((candidate for candidate in pod.volumes if candidate.name == name), None)
    if volume is None:
        return None
    if volume.server and volume.path:
        return f"{volume.server}:{volume.path}"
    return volume.path or volume.claim or volume.server
