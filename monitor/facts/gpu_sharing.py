"""Shared GPUs: which nodes share theirs, and what a scheduler assigned to each pod.

HAMi, Volcano and Aliyun write it to annotations; KAI reads from them what a pod asks for. What is malformed counts as
unknown, never as 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from monitor.facts.base import Fact
from monitor.facts.gpu_requests import HAMI_PREFIX
from monitor.facts.gpu_resources import GPU_RESOURCE, KAI_FRACTION, KAI_MEMORY, Family, GpuResource, resource_kind
from monitor.facts.kube import Amounts, NodeFact, PodFact

REPLICAS_LABEL = "nvidia.com/gpu.replicas"
STRATEGY_LABEL = "nvidia.com/gpu.sharing-strategy"
PRODUCT_LABEL = "nvidia.com/gpu.product"
COUNT_LABEL = "nvidia.com/gpu.count"
NODE_ANNOTATIONS = ("hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register")
_ASSIGNED = ("hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new")
_ALIYUN_INDEX, _ALIYUN_MEMORY = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD"
_ALIYUN_ALLOCATION = "scheduler.framework.gpushare.allocation"  # container -> GPU -> GiB
_BIND_PHASE = f"{HAMI_PREFIX}bind-phase"
POD_ANNOTATIONS = (*_ASSIGNED, _BIND_PHASE, _ALIYUN_INDEX, _ALIYUN_MEMORY, _ALIYUN_ALLOCATION)
_SHARING = frozenset(POD_ANNOTATIONS)
_KAI_ASKS = ("gpu-fraction", "gpu-memory")  # the second in MiB
_KAI_ANNOTATIONS = frozenset(_KAI_ASKS)
_KAI_DEVICES = "gpu-fraction-num-devices"
# A pod in this namespace reserves a whole GPU for the pods with the same group, or one of theirs if they use several.
KAI_RESERVATIONS = ("kai-resource-reservation", "runai-reservation")
_KAI_GROUP = "runai-gpu-group"
_KAI_QUEUES = ("kai.scheduler/queue", "runai/queue")
_KAI_SCHEDULERS = ("kai-scheduler", "runai-scheduler")
MAX_REGISTER_CHARS = 64 * 1024
MAX_GPUS = 64  # of one node
MAX_SHARES = 128  # of one pod
MAX_FIELD_CHARS = 128
_FRACTION = re.compile(r"[01]|[01]?\.\d{1,9}")
_MIB_BYTES = 1024**2
_GIB_BYTES = 1024**3


class RegisteredGpu(Fact, frozen=True):
    """A GPU as the device plugin of HAMi or Volcano registers it: into how many slots it is split, and its memory."""

    uuid: str
    slots: int | None = None
    memory_bytes: int | None = None
    model: str | None = None


class GpuShare(Fact, frozen=True):
    """The part of a GPU that a scheduler assigned to a pod. The GPU is named by uuid or by index."""

    uuid: str | None = None
    index: int | None = None
    memory_bytes: int | None = None
    cores_ratio: float | None = None


class _JsonGpu(msgspec.Struct):
    """A GPU in the register of newer versions of HAMi."""

    id: str
    count: int | None = None
    devmem: int | None = None
    type: str | None = None


_register = msgspec.json.Decoder(list[_JsonGpu])
_allocation = msgspec.json.Decoder(dict[str, dict[str, float]])


def share_ratio(share: GpuShare, memory_bytes: int | None) -> float | None:
    """The part of a GPU with this memory that a share is: the larger part of memory and cores; None if unknown."""
    if share.memory_bytes is None:
        return share.cores_ratio
    if not memory_bytes:
        return None
    return min(1.0, max(share.memory_bytes / memory_bytes, share.cores_ratio or 0.0))


def shares_gpus(node: NodeFact) -> bool:
    """Whether one `nvidia.com/gpu` of the node is a share of a GPU: of HAMi, time slicing, MPS, or MIG slices only."""
    labels = node.labels
    if NODE_ANNOTATIONS[0] in node.annotations or labels.get(REPLICAS_LABEL, "1") not in ("0", "1", ""):
        return True
    return labels.get(STRATEGY_LABEL, "none") not in ("none", "") or "-MIG-" in labels.get(PRODUCT_LABEL, "")


def counts_slots(capacity: float, cards: int) -> bool:
    """Whether a device plugin that does not say so shares the GPUs: its count is a multiple of the driver's."""
    return cards > 0 and capacity >= 2 * cards and capacity % cards == 0


def physical_gpus(node: NodeFact, resource: str = GPU_RESOURCE) -> int | None:
    """Number of GPUs of a node according to Kubernetes, however they are shared; None if it does not say."""
    if registered := registered_gpus(node):
        return len(registered)
    capacity, shared = int(node.capacity.get(resource, 0.0)), shares_gpus(node)
    if capacity and not shared:
        return capacity
    for text in (node.labels.get(COUNT_LABEL, ""), str(round(node.capacity.get("aliyun.com/gpu-count", 0.0)))):
        if count := _int(text):
            return min(count, MAX_GPUS)
    replicas = _int(node.labels.get(REPLICAS_LABEL, ""))
    return capacity // replicas if capacity and replicas and capacity % replicas == 0 else None


def offers_whole_gpus(node: NodeFact, resource: str) -> bool:
    """Whether the resource counts whole GPUs on a node: they are not shared, and it has no shares instead of them."""
    if shares_gpus(node):
        return False
    return bool(node.capacity.get(resource)) or not any(True for _ in _offered(node))


def has_gpus(node: NodeFact, resource: str) -> bool:
    """Whether a node offers NVIDIA GPUs or shares of them."""
    if node.capacity.get(resource) or node.allocatable.get(resource):
        return True
    return any(kind.family is not Family.OTHER for kind in _offered(node))


def _offered(node: NodeFact) -> Iterable[GpuResource]:
    return (kind for name, amount in node.capacity.items() if amount and (kind := resource_kind(name)) is not None)


def registered_gpus(node: NodeFact) -> tuple[RegisteredGpu, ...]:
    """GPUs that the device plugin of HAMi or Volcano has registered on the node; none if that is not known."""
    return next((gpus for name in NODE_ANNOTATIONS if (gpus := _registered(node.annotations.get(name, "")))), ())


@lru_cache(maxsize=4096)
def _registered(text: str) -> tuple[RegisteredGpu, ...]:
    """`uuid,slots,MiB,cores,model,…:` for each GPU, or a list in JSON."""
    if len(text) > MAX_REGISTER_CHARS:
        return ()
    if text.startswith("["):
        try:
            listed = _register.decode(text)[:MAX_GPUS]
        except msgspec.MsgspecError:
            return ()
        return tuple(_gpu(gpu.id, gpu.count, gpu.devmem, gpu.type) for gpu in listed)
    rows = [row.split(",") for row in text.split(":")[:MAX_GPUS] if "," in row]
    return tuple(_gpu(row[0], _int(row[1]), _int(row[2]), row[4]) for row in rows if len(row) > 4 and row[0])


def _gpu(uuid: str, slots: int | None, memory_mib: int | None, model: str | None) -> RegisteredGpu:
    memory = memory_mib * _MIB_BYTES if memory_mib else None
    return RegisteredGpu(uuid[:MAX_FIELD_CHARS], slots or None, memory, (model or "")[:MAX_FIELD_CHARS] or None)


def assigned_shares(pod: PodFact) -> tuple[GpuShare, ...]:
    """Parts of GPUs that a scheduler assigned to the pod, containers together; none if no annotation says so."""
    if not pod.annotations or _SHARING.isdisjoint(pod.annotations) or pod.annotations.get(_BIND_PHASE) == "failed":
        return ()
    for name in _ASSIGNED:
        if shares := _assigned(pod.annotations.get(name, "")):
            return shares
    return _aliyun(pod.annotations)


def reserved_shares(
    holder: PodFact | None, pods: Iterable[PodFact], memory_bytes: int | None
) -> list[tuple[PodFact, GpuShare]]:
    """Those of the pods for which KAI's reservation pod `holder` holds a GPU with this memory, with their shares."""
    if holder is None or holder.namespace not in KAI_RESERVATIONS or not (group := holder.labels.get(_KAI_GROUP)):
        return []
    sharing = (pod for pod in pods if KAI_FRACTION in pod.requests or KAI_MEMORY in pod.requests)
    return [(pod, GpuShare(memory_bytes=_kai_bytes(pod, memory_bytes))) for pod in sharing if group in _kai_groups(pod)]


def _kai_groups(pod: PodFact) -> set[str]:
    """Groups of a pod: one for each GPU that it shares."""
    several = {group for key, group in pod.labels.items() if key.startswith(f"{_KAI_GROUP}/")}
    return several or {pod.labels.get(_KAI_GROUP, "")}


def _kai_bytes(pod: PodFact, memory_bytes: int | None) -> int | None:
    """Memory of each GPU that a pod shares."""
    devices = len(_kai_groups(pod))
    if amount := pod.requests.get(KAI_MEMORY):
        return round(amount * _MIB_BYTES / devices)
    return round(pod.requests[KAI_FRACTION] / 100 * memory_bytes / devices) if memory_bytes is not None else None


@lru_cache(maxsize=16384)
def _assigned(text: str) -> tuple[GpuShare, ...]:
    """`uuid,type,MiB,percent of the cores:` for each GPU; containers are separated by `;`."""
    rows = (row.split(",") for container in text.split(";") for row in container.split(":"))
    named = [row for row in rows if len(row) >= 4 and row[0]]
    return tuple(
        GpuShare(row[0][:MAX_FIELD_CHARS], None, _bytes(row[2], _MIB_BYTES), _ratio(row[3]))
        for row in named[:MAX_SHARES]
    )


def _aliyun(annotations: dict[str, str]) -> tuple[GpuShare, ...]:
    if (allocation := annotations.get(_ALIYUN_ALLOCATION)) is not None:
        try:
            parts = [part for parts in _allocation.decode(allocation).values() for part in parts.items()]
        except msgspec.MsgspecError:
            return ()
        known = [(index, gib) for text, gib in parts[:MAX_SHARES] if (index := _int(text)) is not None]
        return tuple(GpuShare(None, index, round(gib * _GIB_BYTES)) for index, gib in known)
    index = _int(annotations.get(_ALIYUN_INDEX, ""))
    if index is None:
        return ()
    return (GpuShare(None, index, _bytes(annotations.get(_ALIYUN_MEMORY, ""), _GIB_BYTES)),)


def annotated_requests(
    annotations: Mapping[str, str] | None, labels: Mapping[str, str] | None, scheduler: str | None
) -> Amounts:
    """The part of GPUs that a pod asks KAI for: of the memory of each, times their number. Empty for any other pod."""
    if not annotations or _KAI_ANNOTATIONS.isdisjoint(annotations):
        return {}
    if scheduler not in _KAI_SCHEDULERS and not any(name in (labels or ()) for name in _KAI_QUEUES):
        return {}
    fraction, memory_mib = (annotations.get(name, "") for name in _KAI_ASKS)
    devices = min(_int(annotations.get(_KAI_DEVICES, "")) or 1, MAX_GPUS)
    if _FRACTION.fullmatch(fraction) and 0 < float(fraction) <= 1:
        return {KAI_FRACTION: round(100 * float(fraction) * devices, 3)}
    amount = _int(memory_mib)
    return {KAI_MEMORY: float(amount * devices)} if amount else {}


def _int(text: str) -> int | None:
    """A number of at most 9 digits."""
    return int(text) if len(text) <= 9 and text.isascii() and text.isdecimal() else None


def _bytes(text: str, factor: int) -> int | None:
    """An amount of memory; HAMi writes 0 for all of it."""
    amount = _int(text)
    return amount * factor if amount else None


def _ratio(text: str) -> float | None:
    """A percentage as a ratio; HAMi writes 0 for no limit."""
    amount = _int(text)
    return amount / 100 if amount else None
