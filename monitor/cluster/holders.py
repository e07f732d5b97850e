"""Who has a card: claims by the kubelet (allocations) and by the driver (processes), each traced to a pod or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from monitor.facts.cluster import Holder, Identity
from monitor.facts.gpu import GpuProcessFact, PodDeviceFact
from monitor.facts.kube import PodFact

MIRROR_HASH = "kubernetes.io/config.hash"  # what the kubelet calls a static pod in cgroups
_NO_IDENTITY = Identity()


class PodFate(StrEnum):
    """What Kubernetes says of the pod that claims a card."""

    LIVE = "live"
    FINISHED = "pod-finished"
    TERMINATING = "pod-terminating"  # and overdue
    DELETED = "pod-deleted"
    UNSURE = "unsure"  # Kubernetes cannot be asked, or the node's word may be older than the deletion
    NO_POD = "no-pod"


class GpuClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod's, or one process's, claim to a card."""

    by: str
    life: PodFate
    pod: PodFact | None = None
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
    container: str | None = None
    process: GpuProcessFact | None = None


@dataclass(frozen=True)
class PodLookup:
    """The pods that Kubernetes knows, and since when the ones that nodes still name are missing from it.

    `known` is False while Kubernetes cannot be asked: then no pod is ever called deleted.
    """

    by_uid: Mapping[str, PodFact]
    by_name: Mapping[tuple[str, str], PodFact]
    missing_since: Mapping[str, float]
    known: bool
    terminating_grace: float
    settle: float

    def life(self, pod: PodFact | None, key: str | None, heard_at: float, now: float) -> PodFate:
        """Given the pod, or the key by which it is missing, return what Kubernetes says of it."""
        if pod is not None:
            if pod.phase in ("Succeeded", "Failed"):
                return PodFate.FINISHED
            overdue = pod.deletion_at is not None and now - pod.deletion_at > self.terminating_grace
            return PodFate.TERMINATING if overdue else PodFate.LIVE
        missing = self.missing_since.get(key or "")
        # A node's word from before the deletion proves nothing: it must have been heard well after.
        if not self.known or missing is None or heard_at - missing < self.settle:
            return PodFate.UNSURE
        return PodFate.DELETED


def process_claim(process: GpuProcessFact, index: PodLookup, heard_at: float, now: float) -> GpuClaim:
    """Given a process on a card, return its claim."""
    if process.pod_uid is None:
        return GpuClaim(by="process", life=PodFate.NO_POD, process=process)
    pod = index.by_uid.get(process.pod_uid)
    life = index.life(pod, process.pod_uid, heard_at, now)
    return GpuClaim(
        by="process",
        life=life,
        pod=pod,
        pod_uid=pod.uid if pod else process.pod_uid,
        pod_name=pod.name if pod else None,
        namespace=pod.namespace if pod else None,
        process=process,
    )


def allocation_key(device: PodDeviceFact) -> str | None:
    """Return the word by which a pod that was given a device is looked for: its uid, or its name where that is all."""
    if device.pod_uid is not None:
        return device.pod_uid
    return f"{device.namespace}/{device.pod_name}" if device.pod_name is not None else None


def allocation_claim(device: PodDeviceFact, index: PodLookup, heard_at: float, now: float) -> GpuClaim:
    """Given a device that the kubelet gave away, return the claim of the pod that got it."""
    pod = find_pod(device, index.by_uid, index.by_name)
    life = index.life(pod, allocation_key(device), heard_at, now)
    return GpuClaim(
        by=device.source,
        life=life,
        pod=pod,
        pod_uid=pod.uid if pod else device.pod_uid,
        pod_name=pod.name if pod else device.pod_name,
        namespace=pod.namespace if pod else device.namespace,
        container=device.container,
    )


def find_pod(
    device: PodDeviceFact, by_uid: Mapping[str, PodFact], by_name: Mapping[tuple[str, str], PodFact]
) -> PodFact | None:
    """Return the pod that was given a device. A uid is believed; a name alone may be a later pod's, and has to do."""
    if device.pod_uid is not None:
        return by_uid.get(device.pod_uid)
    return by_name.get((device.namespace or "", device.pod_name or ""))


def merge_holders(claims: Sequence[GpuClaim], identities: Mapping[str, Identity]) -> tuple[Holder, ...]:
    """Given the claims to a card, return one holder per pod, saying who speaks for each."""
    if not claims:
        return ()
    merged: dict[str, list[GpuClaim]] = {}
    for claim in claims:
        if claim.life is not PodFate.NO_POD:
            merged.setdefault(claim.pod_uid or f"{claim.namespace}/{claim.pod_name}", []).append(claim)
    return tuple(_holder(group, identities) for _, group in sorted(merged.items()))


def _holder(claims: list[GpuClaim], identities: Mapping[str, Identity]) -> Holder:
    first = claims[0]
    who = identities.get(first.pod_uid or "", _NO_IDENTITY)
    pod = namespace = container = None
    for claim in claims:  # of each, the first that is known
        pod = pod or claim.pod_name
        namespace = namespace or claim.namespace
        container = container or claim.container
    return Holder(
        pod_uid=first.pod_uid,
        pod=pod,
        namespace=namespace,
        container=container,
        by=tuple(sorted({claim.by for claim in claims})),
        live=None if first.life is PodFate.UNSURE else first.life is PodFate.LIVE,
        user=who.user,
        job=who.job,
        queue=who.queue,
    )
