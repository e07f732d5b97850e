"""Claims of pods and processes to the GPUs of a node, kept as long as nothing that they depend on changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from monitor.cluster.devices import ClaimedGpu, DeviceIndex
from monitor.cluster.gpu_state import holding_evidence
from monitor.cluster.holders import (
    GpuClaim,
    PodFate,
    PodLookup,
    allocation_claim,
    allocation_key,
    device_claim,
    find_pod,
    merge_holders,
    process_claim,
    share_claim,
)
from monitor.cluster.pod_index import PodIndex
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Holder, Identity
from monitor.facts.gpu import GpuFact, PodDeviceFact
from monitor.facts.gpu_resources import slice_share
from monitor.facts.gpu_sharing import assigned_shares, reserved_shares
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Evidence


class NodeInputs(NamedTuple):
    """Everything known about one node. `pods` are the unfinished ones bound to it, `devices` those of all nodes."""

    name: str
    agent: AgentFact | None = None
    node: NodeFact | None = None
    pods: tuple[PodFact, ...] = ()
    resource: str = "nvidia.com/gpu"
    devices: DeviceIndex = DeviceIndex("nvidia.com/gpu")


class GpuClaims(NamedTuple):
    """Claims to one GPU, those of processes first, and what follows from them."""

    claims: Sequence[GpuClaim] = ()
    holders: tuple[Holder, ...] = ()
    held: tuple[Evidence, ...] = ()
    pids: tuple[int, ...] = ()
    disagreements: tuple[str, ...] = ()


NO_CLAIMS = GpuClaims()
ClaimsByGpu = Mapping[str, GpuClaims]  # by uuid


class ClaimCache:
    """Claims of all nodes. They are determined again if the node reports others, or if one depends on time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[Any, ...], ClaimsByGpu]] = {}

    def forget(self, nodes: Iterable[str]) -> None:
        """Determine the claims of these nodes again: their pods have changed."""
        for node in nodes:
            self._known.pop(node, None)

    def known(self, inputs: NodeInputs) -> ClaimsByGpu | None:
        """Claims to the GPUs of a node, unless they may have changed."""
        snapshot = inputs.agent.snapshot if inputs.agent is not None else None
        entry = self._known.get(inputs.name)
        if snapshot is None or snapshot.gpu is None or entry is None:
            return None
        (processes, devices, gpus), claims = entry
        same = processes is snapshot.gpu_processes and devices is snapshot.pod_devices
        return claims if same and gpus == _mig_by_gpu(snapshot) else None

    def determine(
        self, inputs: NodeInputs, lookup: PodLookup, identities: Mapping[str, Identity], now: float
    ) -> ClaimsByGpu:
        """Claims to the GPUs of a node, determined again."""
        self._known.pop(inputs.name, None)
        snapshot = inputs.agent.snapshot if inputs.agent is not None else None
        if inputs.agent is None or snapshot is None or snapshot.gpu is None:
            return {}
        claims = _claims(inputs, inputs.agent, snapshot, lookup, now)
        bound = frozenset([pod.uid for pod in inputs.pods])
        found = {uuid: _summary(each, identities, bound) for uuid, each in claims.items()}
        if all(_is_lasting(claim) for each in claims.values() for claim in each):
            self._known[inputs.name] = (snapshot.gpu_processes, snapshot.pod_devices, _mig_by_gpu(snapshot)), found
        return found


def _mig_by_gpu(snapshot: NodeSnapshot) -> list[tuple[Any, ...]]:
    return [(gpu.uuid, gpu.mig) for gpu in snapshot.gpu.gpus] if snapshot.gpu is not None else []


def _is_lasting(claim: GpuClaim) -> bool:
    """Whether only a change of the pod or the node changes a claim, not time."""
    live = claim.fate is PodFate.LIVE and claim.pod is not None and claim.pod.deletion_at is None
    return live or claim.fate is PodFate.NO_POD


def _claims(
    inputs: NodeInputs, agent: AgentFact, snapshot: NodeSnapshot, lookup: PodLookup, now: float
) -> dict[str, list[GpuClaim]]:
    """Claims by GPU uuid, those of processes first. A claim to a MIG instance counts for its GPU.

    Where a scheduler assigns shares, the kubelet's choice of devices means nothing; where a pod only reserves a GPU for
    others, they hold it.
    """
    heard_at, gpus = agent.received_at or 0.0, snapshot.gpu.gpus if snapshot.gpu is not None else ()
    claims: defaultdict[str, list[GpuClaim]] = defaultdict(list)
    slices = {mig.uuid: slice_share(mig.profile) for gpu in gpus for mig in gpu.mig}
    for process in snapshot.gpu_processes or ():
        ratio = slices.get(process.mig_uuid) if process.mig_uuid is not None else 1.0
        claims[process.gpu_uuid].append(process_claim(process, lookup, heard_at, now, ratio))
    gpu_of, memory = _gpu_of(gpus), {gpu.uuid: gpu.memory_total_bytes for gpu in gpus}
    shares = [(pod, share) for pod in inputs.pods for share in assigned_shares(pod)]
    shared = {pod.uid for pod, _ in shares}
    for device in snapshot.pod_devices or ():
        uuids = _uuids(device, inputs.devices)
        if gpu_uuid := _first_known(gpu_of, uuids):
            claim = allocation_claim(device, lookup, heard_at, now, _ratio(uuids, slices))
            if sharing := reserved_shares(claim.pod, inputs.pods, size := memory.get(gpu_uuid)):
                claims[gpu_uuid] += [share_claim(pod, lookup, heard_at, now, share, size) for pod, share in sharing]
            elif claim.pod_uid not in shared:
                claims[gpu_uuid].append(claim)
    uuid_at = {gpu.index: gpu.uuid for gpu in gpus if gpu.uuid is not None} if shares else {}
    for pod, share in shares:
        uuid = uuid_at.get(share.index) if share.index is not None else gpu_of.get(share.uuid or "")
        if uuid is not None:
            claims[uuid].append(share_claim(pod, lookup, heard_at, now, share, memory.get(uuid)))
    for claimed in inputs.devices.claimed(inputs.name):
        if gpu_uuid := _first_known(gpu_of, claimed.uuids):
            ratio = _ratio(claimed.uuids, slices)
            claims[gpu_uuid].append(device_claim(claimed, lookup, heard_at, now, ratio))
    return claims


def _ratio(uuids: Iterable[str], slices: Mapping[str, float | None]) -> float | None:
    """The part of a GPU that a device is: the first uuid of a MIG instance is its own; None if unknown."""
    return next((slices[uuid] for uuid in uuids if uuid in slices), 1.0)


def _gpu_of(gpus: Iterable[GpuFact]) -> dict[str, str]:
    """UUID of the GPU by its own and by those of its MIG instances."""
    known = {gpu.uuid: gpu for gpu in gpus if gpu.uuid is not None}
    return {uuid: uuid for uuid in known} | {mig.uuid: uuid for uuid, gpu in known.items() for mig in gpu.mig}


def _first_known(gpu_of: Mapping[str, str], uuids: Iterable[str]) -> str | None:
    return next((gpu_of[uuid] for uuid in uuids if uuid in gpu_of), None)


def _uuids(device: PodDeviceFact, devices: DeviceIndex) -> tuple[str, ...]:
    if device.gpu_uuid is not None:
        return (device.gpu_uuid,)
    return devices.uuids((device.resource, device.pool, device.device_id)) if device.pool is not None else ()


def named_pods(agent: AgentFact | None, claimed: Iterable[ClaimedGpu], pods: PodIndex) -> Iterable[tuple[str, bool]]:
    """Pods that a node or a claim to its GPUs names, each with whether Kubernetes knows it."""
    snapshot = agent.snapshot if agent else None
    if snapshot is None:
        return
    for gpu in claimed:
        yield gpu.pod_uid, gpu.pod_uid in pods.by_uid
    for process in snapshot.gpu_processes or ():
        if process.pod_uid is not None:
            yield process.pod_uid, process.pod_uid in pods.by_uid
    for device in snapshot.pod_devices or ():
        key = allocation_key(device)
        if key is not None:
            yield key, find_pod(device, pods.by_uid, pods.by_name) is not None


def _summary(claims: list[GpuClaim], identities: Mapping[str, Identity], bound: frozenset[str]) -> GpuClaims:
    return GpuClaims(
        claims,
        merge_holders(claims, identities),
        holding_evidence(claims),
        tuple(sorted([claim.process.pid for claim in claims if claim.process])),
        _disagreements(claims, bound),
    )


def _disagreements(claims: Sequence[GpuClaim], bound: frozenset[str]) -> tuple[str, ...]:
    """Where allocations of the kubelet, processes of the driver and requests of pods disagree about a GPU."""
    running = {claim.pod_uid for claim in claims if claim.process is not None and claim.pod_uid}
    allocations = [claim for claim in claims if claim.process is None]
    if not allocations:
        return ("process-without-allocation",) if running else ()
    disagreements = set()
    if not running <= {claim.pod_uid for claim in allocations}:
        disagreements.add("process-of-another-pod")
    for claim in allocations:
        if claim.fate is PodFate.DELETED:
            disagreements.add("allocation-of-missing-pod")
        elif claim.fate is PodFate.LIVE and claim.pod_uid not in bound:
            disagreements.add("allocation-of-pod-elsewhere")
    return tuple(sorted(disagreements)) if disagreements else ()
