"""Shares of GPUs and other accelerators that a node offers, and how much of them pods have requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.facts.cluster import ShareView
from monitor.facts.gpu_resources import UNIT_BYTES, Part, Unit, resource_kind
from monitor.facts.gpu_sharing import RegisteredGpu, assigned_shares, registered_gpus
from monitor.facts.kube import NodeFact, PodFact

HAMI_MEMORY = "nvidia.com/gpumem"


def node_shares(node: NodeFact, pods: Sequence[PodFact], resource: str, *, whole: bool) -> tuple[ShareView, ...]:
    """Shares that a node offers, by resource. `whole`: one of `resource` is a GPU, not a share."""
    shares = []
    for name, total in node.allocatable.items():
        kind = resource_kind(name)
        if kind is None or not total or (name == resource and whole):
            continue
        unit = Unit.SLOT if name == resource else kind.unit
        used = sum(pod.requests.get(name, 0.0) for pod in pods)
        shares.append(ShareView(resource=name, unit=unit.value, total=total, used=used))
    if not any(kind.part is Part.MEMORY for share in shares if (kind := resource_kind(share.resource)) is not None):
        shares += _registered_memory(registered_gpus(node), pods)
    return tuple(sorted(shares, key=lambda share: share.resource)) if shares else ()


def _registered_memory(gpus: Sequence[RegisteredGpu], pods: Iterable[PodFact]) -> Iterable[ShareView]:
    """Memory of the GPUs that HAMi shares, which the node does not list as a resource."""
    sizes = {gpu.uuid: gpu.memory_bytes for gpu in gpus if gpu.memory_bytes is not None}
    if not sizes:
        return
    assigned = (share for pod in pods for share in assigned_shares(pod))
    used = sum(share.memory_bytes or sizes.get(share.uuid or "", 0) for share in assigned)
    mib = UNIT_BYTES[Unit.MIB]
    yield ShareView(resource=HAMI_MEMORY, unit=Unit.MIB.value, total=sum(sizes.values()) / mib, used=used / mib)
