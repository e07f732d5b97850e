"""Who holds a GPU: claims by the kubelet (allocations), by ResourceClaims and by the driver (processes).

Each is traced to a pod or to none.

Decided here and nowhere else: the fate of a holder's pod, which processes belong to a holder, and which holders are
zombies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import msgspec

from monitor.cluster.devices import ClaimedGpu
from monitor.facts.cluster import GpuView, Holder, Identity
from monitor.facts.cluster_facts import NO_IDENTITY
from monitor.facts.gpu import GpuProcessFact, PodDeviceFact
from monitor.facts.gpu_sharing import GpuShare, share_ratio
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot

MIRROR_HASH = "kubernetes.io/config.hash"  # names a static pod in cgroups
# Sources of a claim besides the agent's allocations: the driver lists a process, the scheduler assigned the pod a share
# of the GPU, a ResourceClaim holds it for the pod.
PROCESS, ANNOTATION, RESOURCE_CLAIM = "process", "annotation", "resource-claim"


class PodFate(StrEnum):
    """What Kubernetes says about the pod that claims a GPU."""

    LIVE = "live"
    FINISHED = "pod-finished"
    TERMINATING = "pod-terminating"  # and overdue
    DELETED = "pod-deleted"
    UNSURE = "unsure"  # Kubernetes is out of reach, or the node's report may be older than the deletion
    NO_POD = "no-pod"


ENDED_FATES = (PodFate.FINISHED, PodFate.TERMINATING, PodFate.DELETED)


class GpuClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Claim of one pod or one process to a GPU."""

    by: str
    fate: PodFate
    pod: PodFact | None = None
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
    container: str | None = None
    process: GpuProcessFact | None = None
    slots: int = 0
    share: GpuShare | None = None
    ratio: float | None = 1.0  # of the GPU; None: a share of unknown size

    @property
    def is_zombie(self) -> bool:
        """Whether a process has outlived its pod."""
        return self.process is not None and self.fate in ENDED_FATES


@dataclass(frozen=True)
class PodLookup:
    """Pods known to Kubernetes, and since when those that nodes still name are missing.

    `known` is False while Kubernetes is out of reach: no pod counts as deleted then.
    """

    by_uid: Mapping[str, PodFact]
    by_name: Mapping[tuple[str, str], PodFact]
    missing_since: Mapping[str, float]
    known: bool
    terminating_grace: float
    settle: float

    def fate(self, pod: PodFact | None, key: str | None, heard_at: float, now: float) -> PodFate:
        """Fate of a pod, or of the missing pod `key`, that a node named at `heard_at`."""
        if pod is not None:
            if pod.finished:
                return PodFate.FINISHED
            overdue = pod.deletion_at is not None and now - pod.deletion_at > self.terminating_grace
            return PodFate.TERMINATING if overdue else PodFate.LIVE
        missing = self.missing_since.get(key or "")
        # A report from before the deletion proves nothing: it must have arrived well after.
        if not self.known or missing is None or heard_at - missing < self.settle:
            return PodFate.UNSURE
        return PodFate.DELETED


def holder_fate(holder: Holder, pod: PodFact | None) -> PodFate:
    """Fate of a holder's pod; `pod` is None if Kubernetes does not have it."""
    if holder.live is not False:
        return PodFate.LIVE if holder.live else PodFate.UNSURE
    if pod is None:
        return PodFate.DELETED
    return PodFate.FINISHED if pod.finished else PodFate.TERMINATING


def has_ended(holder: Holder) -> bool:
    """Whether a holder's pod has certainly finished, was deleted or is overdue in terminating."""
    return holder.live is False


def has_process(holder: Holder) -> bool:
    """Whether a process of the holder is on the GPU."""
    return PROCESS in holder.by


def has_live_holder(gpu: GpuView) -> bool:
    """Whether a live pod holds a GPU."""
    for holder in gpu.holders:  # noqa: SIM110  # a generator costs more, for every GPU twice
        if holder.live:
            return True
    return False


def ended_holders(gpu: GpuView) -> tuple[Holder, ...]:
    """Holders of a GPU whose pods have ended."""
    return tuple([holder for holder in gpu.holders if has_ended(holder)])


def held_part(holder: Holder, sharing: int) -> float | None:
    """The part of a GPU that one of `sharing` holders is charged with; None if its share is of unknown size.

    Those that hold all of it divide it evenly.
    """
    return 1.0 / sharing if holder.device_ratio == 1.0 else holder.device_ratio


def zombie_holders(gpu: GpuView) -> tuple[Holder, ...]:
    """Holders whose pods have ended while a process of theirs is still on the GPU."""
    return tuple([holder for holder in ended_holders(gpu) if has_process(holder)])


def processes_of(pod_uid: str | None, gpu: GpuView, snapshot: NodeSnapshot | None) -> tuple[GpuProcessFact, ...]:
    """Processes of a pod on a GPU; of no pod, if `pod_uid` is None."""
    listed = (snapshot.gpu_processes or ()) if snapshot else ()
    return tuple([process for process in listed if process.gpu_uuid == gpu.uuid and process.pod_uid == pod_uid])


def process_claim(
    process: GpuProcessFact, lookup: PodLookup, heard_at: float, now: float, ratio: float | None = 1.0
) -> GpuClaim:
    """Claim of a process on a GPU."""
    if process.pod_uid is None:
        return GpuClaim(by=PROCESS, fate=PodFate.NO_POD, process=process, ratio=ratio)
    pod = lookup.by_uid.get(process.pod_uid)
    return GpuClaim(
        by=PROCESS,
        fate=lookup.fate(pod, process.pod_uid, heard_at, now),
        pod=pod,
        pod_uid=pod.uid if pod else process.pod_uid,
        pod_name=pod.name if pod else None,
        namespace=pod.namespace if pod else None,
        process=process,
        ratio=ratio,
    )


def allocation_key(device: PodDeviceFact) -> str | None:
    """Key of the pod to which the kubelet allocated a device: its uid, or namespace/name if that is all it reports."""
    if device.pod_uid is not None:
        return device.pod_uid
    return f"{device.namespace}/{device.pod_name}" if device.pod_name is not None else None


def allocation_claim(
    device: PodDeviceFact, lookup: PodLookup, heard_at: float, now: float, ratio: float | None = 1.0
) -> GpuClaim:
    """Claim of the pod to which the kubelet allocated a device, `ratio` of a GPU. A replica may be any part of it."""
    pod = find_pod(device, lookup.by_uid, lookup.by_name)
    return GpuClaim(
        by=device.source,
        fate=lookup.fate(pod, allocation_key(device), heard_at, now),
        pod=pod,
        pod_uid=pod.uid if pod else device.pod_uid,
        pod_name=pod.name if pod else device.pod_name,
        namespace=pod.namespace if pod else device.namespace,
        container=device.container,
        slots=device.replica is not None,
        ratio=ratio if device.replica is None else None,
    )


def share_claim(
    pod: PodFact, lookup: PodLookup, heard_at: float, now: float, share: GpuShare, memory_bytes: int | None = None
) -> GpuClaim:
    """Claim of a pod to the share of a GPU, with this memory, that a scheduler assigned to it."""
    return GpuClaim(
        by=ANNOTATION,
        fate=lookup.fate(pod, pod.uid, heard_at, now),
        pod=pod,
        pod_uid=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        slots=1,
        share=share,
        ratio=share_ratio(share, memory_bytes),
    )


def device_claim(
    claimed: ClaimedGpu, lookup: PodLookup, heard_at: float, now: float, ratio: float | None = 1.0
) -> GpuClaim:
    """Claim of the pod for which a ResourceClaim holds a device, also of one that is gone: nothing else can get it."""
    pod = lookup.by_uid.get(claimed.pod_uid)
    return GpuClaim(
        by=RESOURCE_CLAIM,
        fate=lookup.fate(pod, claimed.pod_uid, heard_at, now),
        pod=pod,
        pod_uid=claimed.pod_uid,
        pod_name=claimed.pod_name,
        namespace=claimed.namespace,
        ratio=ratio,
    )


def find_pod(
    device: PodDeviceFact, by_uid: Mapping[str, PodFact], by_name: Mapping[tuple[str, str], PodFact]
) -> PodFact | None:
    """Pod to which a device is allocated. A name alone may be that of a later pod, but is all there is."""
    if device.pod_uid is not None:
        return by_uid.get(device.pod_uid)
    return by_name.get((device.namespace or "", device.pod_name or ""))


def merge_holders(claims: Sequence[GpuClaim], identities: Mapping[str, Identity]) -> tuple[Holder, ...]:
    """One holder per pod from the claims to a GPU, with the sources of its claims."""
    merged: dict[str, list[GpuClaim]] = {}
    for claim in claims:
        if claim.fate is not PodFate.NO_POD:
            merged.setdefault(claim.pod_uid or f"{claim.namespace}/{claim.pod_name}", []).append(claim)
    return tuple([_holder(merged[pod], identities) for pod in sorted(merged)])


def _holder(claims: list[GpuClaim], identities: Mapping[str, Identity]) -> Holder:
    first = claims[0]
    identity = identities.get(first.pod_uid or "", NO_IDENTITY)
    pod = namespace = container = None
    for claim in claims:  # of each, the first that is known
        pod = pod or claim.pod_name
        namespace = namespace or claim.namespace
        container = container or claim.container
    memory, cores = _shares(claims)
    return Holder(
        pod_uid=first.pod_uid,
        pod=pod,
        namespace=namespace,
        container=container,
        by=_sources(tuple([claim.by for claim in claims])),
        live=None if first.fate is PodFate.UNSURE else first.fate is PodFate.LIVE,
        user=identity.user,
        job=identity.job,
        queue=identity.queue,
        slots=sum([claim.slots for claim in claims]) or None,
        share_memory_bytes=memory,
        share_cores_ratio=cores,
        device_ratio=_device_ratio(claims),
    )


def _device_ratio(claims: list[GpuClaim]) -> float | None:
    """The part of a GPU that a pod holds: what it was given, else the partitions on which it has processes."""
    ratios = [claim.ratio for claim in claims if claim.process is None]
    if not ratios:
        ratios = list({claim.process.mig_uuid: claim.ratio for claim in claims if claim.process is not None}.values())
    known = [ratio for ratio in ratios if ratio is not None]
    return min(1.0, sum(known)) if len(known) == len(ratios) else None


@lru_cache(maxsize=256)
def _sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Each source once, in order. Most holders have the same ones."""
    return tuple(sorted(set(sources)))


def _shares(claims: Sequence[GpuClaim]) -> tuple[int | None, float | None]:
    """Memory and cores of the shares that the claims assign."""
    shares = [claim.share for claim in claims if claim.share is not None]
    if not shares:
        return None, None
    memory = [share.memory_bytes for share in shares if share.memory_bytes is not None]
    cores = [share.cores_ratio for share in shares if share.cores_ratio is not None]
    return sum(memory) if memory else None, sum(cores) if cores else None
