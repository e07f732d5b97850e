"""Claims of pods and processes to the GPUs of a node, kept as long as nothing that they depend on changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from monitor.cluster.holders import GpuClaim, PodFate, PodLookup, allocation_claim, merge_holders, process_claim
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Holder, Identity
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.node import NodeSnapshot


class NodeInputs(NamedTuple):
    """Everything known about one node. `pods` are the unfinished ones bound to it."""

    name: str
    agent: AgentFact | None = None
    node: NodeFact | None = None
    pods: tuple[PodFact, ...] = ()
    resource: str = "nvidia.com/gpu"


class GpuClaims(NamedTuple):
    """Claims to one GPU, those of processes first, and what follows from them."""

    claims: Sequence[GpuClaim] = ()
    holders: tuple[Holder, ...] = ()
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
        claims = _claims(inputs.agent, snapshot, lookup, now)
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


def _claims(agent: AgentFact, snapshot: NodeSnapshot, lookup: PodLookup, now: float) -> dict[str, list[GpuClaim]]:
    """Claims by GPU uuid, those of processes first. A claim to a MIG instance counts for its GPU."""
    heard_at, gpus = agent.received_at or 0.0, snapshot.gpu.gpus if snapshot.gpu is not None else ()
    claims: defaultdict[str, list[GpuClaim]] = defaultdict(list)
    for process in snapshot.gpu_processes or ():
        claims[process.gpu_uuid].append(process_claim(process, lookup, heard_at, now))
    gpu_of = {gpu.uuid: gpu.uuid for gpu in gpus}
    gpu_of |= {mig.uuid: gpu.uuid for gpu in gpus for mig in gpu.mig}
    for device in snapshot.pod_devices or ():
        gpu_uuid = gpu_of.get(device.gpu_uuid) if device.gpu_uuid is not None else None
        if gpu_uuid is not None:
            claims[gpu_uuid].append(allocation_claim(device, lookup, heard_at, now))
    return claims


def _summary(claims: list[GpuClaim], identities: Mapping[str, Identity], bound: frozenset[str]) -> GpuClaims:
    return GpuClaims(
        claims,
        merge_holders(claims, identities),
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
