"""Resources of GPUs and other accelerators: what an amount of each means. Decided here and nowhere else.

Whole GPUs are countable; shares are slots, slices, memory or cores. An amount of a share is never a number of GPUs, and
an accelerator of another vendor is counted under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

GPU_RESOURCE = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"  # how NVIDIA's device plugin names replicas of GPUs if told to
# Our name for GPUs that may be whole or shared: only some nodes share theirs, and a pod may run on either kind.
WHOLE_OR_SHARED = "nvidia.com/gpu.whole-or-shared"
# Our names for what pods ask KAI for in annotations.
KAI_FRACTION = "kai.scheduler/gpu-fraction"
KAI_MEMORY = "kai.scheduler/gpu-memory"
MAX_NAME_CHARS = 256


class Family(StrEnum):
    """Who defines the resource."""

    NVIDIA = "nvidia"
    HAMI = "hami"
    VOLCANO = "volcano"
    ALIYUN = "aliyun"
    KOORDINATOR = "koordinator"
    TENCENT = "tencent"
    KAI = "kai"
    OTHER = "other"  # accelerators of other vendors


class Unit(StrEnum):
    """What one unit of the resource is."""

    GPU = "gpu"
    DEVICE = "device"  # a whole accelerator that is not an NVIDIA GPU
    SLOT = "slot"  # one of several shares of a GPU
    GPU_OR_SLOT = "gpu-or-slot"  # either, depending on the node
    SLICE = "slice"  # a partition: MIG, or of another vendor
    PERCENT = "percent"
    HUNDREDTH = "hundredth"
    BYTE = "byte"
    MIB = "mib"
    MIB_128 = "128-mib"
    MIB_256 = "256-mib"
    GIB = "gib"
    UNKNOWN = "unknown"


class Part(StrEnum):
    """What of the device is meant: the device or a share as such, its memory, its cores, or both."""

    COUNT = "count"
    MEMORY = "memory"
    CORES = "cores"
    CARD = "card"


UNIT_BYTES = {
    Unit.BYTE: 1, Unit.MIB: 1024**2, Unit.MIB_128: 128 * 1024**2, Unit.MIB_256: 256 * 1024**2, Unit.GIB: 1024**3,
}  # fmt: skip
_PER_CARD = (Family.HAMI, Family.VOLCANO, Family.KOORDINATOR, Family.TENCENT, Family.KAI)
PERCENTAGES = (Unit.PERCENT, Unit.HUNDREDTH)
COUNTABLE = (Unit.GPU, Unit.DEVICE, Unit.SLOT, Unit.GPU_OR_SLOT, Unit.SLICE)


@dataclass(frozen=True, slots=True)
class GpuResource:
    """A resource. `share` is the part of a device that one unit stands for; None if that depends on the device."""

    name: str
    family: Family
    unit: Unit
    part: Part = Part.COUNT
    share: float | None = None

    @property
    def whole(self) -> bool:
        """Whether one unit is a whole NVIDIA GPU."""
        return self.unit is Unit.GPU

    @property
    def countable(self) -> bool:
        return self.unit in COUNTABLE

    @property
    def per_card(self) -> bool:
        """Whether a scheduler of its own accounts it per card, so that the total of a node does not tell what fits."""
        return self.family in _PER_CARD and self.name != GPU_RESOURCE

    @property
    def annotated(self) -> bool:
        """Whether pods ask for it in an annotation, so that no node lists it."""
        return self.family is Family.KAI


_ROWS: tuple[tuple[str, Family, Unit, Part], ...] = (
    (GPU_RESOURCE, Family.NVIDIA, Unit.GPU, Part.COUNT),
    (SHARED_GPU, Family.NVIDIA, Unit.SLOT, Part.COUNT),
    (WHOLE_OR_SHARED, Family.NVIDIA, Unit.GPU_OR_SLOT, Part.COUNT),
    ("nvidia.com/gpumem", Family.HAMI, Unit.MIB, Part.MEMORY),
    ("nvidia.com/gpumem-percentage", Family.HAMI, Unit.PERCENT, Part.MEMORY),
    ("nvidia.com/gpucores", Family.HAMI, Unit.PERCENT, Part.CORES),
    ("nvidia.com/vgpu", Family.HAMI, Unit.SLOT, Part.COUNT),
    ("volcano.sh/vgpu-number", Family.VOLCANO, Unit.SLOT, Part.COUNT),
    ("volcano.sh/vgpu-memory", Family.VOLCANO, Unit.MIB, Part.MEMORY),
    ("volcano.sh/vgpu-memory-percentage", Family.VOLCANO, Unit.PERCENT, Part.MEMORY),
    ("volcano.sh/vgpu-cores", Family.VOLCANO, Unit.PERCENT, Part.CORES),
    ("volcano.sh/gpu-number", Family.VOLCANO, Unit.GPU, Part.COUNT),
    ("volcano.sh/gpu-memory", Family.VOLCANO, Unit.MIB, Part.MEMORY),
    ("volcano.sh/gpu-mem.128Mi", Family.VOLCANO, Unit.MIB_128, Part.MEMORY),  # Huawei Cloud
    ("volcano.sh/gpu-core.percentage", Family.VOLCANO, Unit.PERCENT, Part.CORES),
    ("aliyun.com/gpu-count", Family.ALIYUN, Unit.GPU, Part.COUNT),
    ("aliyun.com/gpu-mem", Family.ALIYUN, Unit.GIB, Part.MEMORY),
    ("aliyun.com/gpu-core.percentage", Family.ALIYUN, Unit.PERCENT, Part.CORES),
    ("koordinator.sh/gpu.shared", Family.KOORDINATOR, Unit.SLOT, Part.COUNT),
    ("koordinator.sh/shared-gpu", Family.KOORDINATOR, Unit.SLOT, Part.COUNT),
    ("koordinator.sh/gpu", Family.KOORDINATOR, Unit.PERCENT, Part.CARD),
    ("koordinator.sh/gpu-memory", Family.KOORDINATOR, Unit.BYTE, Part.MEMORY),
    ("koordinator.sh/gpu-memory-ratio", Family.KOORDINATOR, Unit.PERCENT, Part.MEMORY),
    ("koordinator.sh/gpu-core", Family.KOORDINATOR, Unit.PERCENT, Part.CORES),
    ("tencent.com/vcuda-memory", Family.TENCENT, Unit.MIB_256, Part.MEMORY),
    ("tencent.com/vcuda-core", Family.TENCENT, Unit.HUNDREDTH, Part.CORES),
    ("tke.cloud.tencent.com/qgpu-memory", Family.TENCENT, Unit.GIB, Part.MEMORY),
    ("tke.cloud.tencent.com/qgpu-core", Family.TENCENT, Unit.PERCENT, Part.CORES),
    (KAI_FRACTION, Family.KAI, Unit.PERCENT, Part.CARD),
    (KAI_MEMORY, Family.KAI, Unit.MIB, Part.MEMORY),
    ("cambricon.com/mlu.smlu.vmemory", Family.OTHER, Unit.UNKNOWN, Part.MEMORY),
    ("cambricon.com/mlu.smlu.vcore", Family.OTHER, Unit.PERCENT, Part.CORES),
    ("hygon.com/dcumem", Family.OTHER, Unit.MIB, Part.MEMORY),
    ("hygon.com/dcucores", Family.OTHER, Unit.PERCENT, Part.CORES),
)  # fmt: skip
RESOURCES: Mapping[str, GpuResource] = {
    name: GpuResource(name, family, unit, part, 1.0 if unit is Unit.GPU else 0.01 if unit in PERCENTAGES else None)
    for name, family, unit, part in _ROWS
}
_MIG = re.compile(r"nvidia\.com/mig-(\d)g\.(\d{1,4})gb(?:\.[\w.-]{1,40})?")
_MAX_SLICE_COUNT = 7  # compute slices of a GPU
_SMALL_PROFILES = (("1", "6"), ("2", "12"), ("4", "24"))  # of the A30, which has 4
# Devices of other vendors; `amd.com/cpx_nps4` is a partition.
_ACCELERATOR = re.compile(
    r"(?:amd\.com|huawei\.com|cambricon\.com|hygon\.com|mthreads\.com|metax-tech\.com|iluvatar\.(?:ai|com)|enflame\.com"
    r"|birentech\.com|kunlunxin\.com|baidu\.com|gpu\.intel\.com|habana\.ai|rebellions\.ai|furiosa\.ai)/"
    r"|google\.com/tpu|aws\.amazon\.com/neuron|aliyun\.com/ppu"
)
_LOOKS_LIKE_GPU = re.compile(r"/(?:[\w.-]*[\W_])?(?:v|c|q|s|nvidia)?gpus?(?:[\W_]|$)", re.IGNORECASE)
_OF_MEMORY = re.compile(r"mem(?:ory)?(?![a-z])|vram", re.IGNORECASE)
_OF_CORES = re.compile(r"cores?(?![a-z])|percent|ratio|millicores", re.IGNORECASE)
_NOT_HARDWARE = re.compile(r"(?:^cpu$|monitoring$|/priority$)")


@lru_cache(maxsize=4096)
def resource_kind(name: str) -> GpuResource | None:
    """What is known about a resource; None if it has nothing to do with GPUs or other accelerators."""
    if known := RESOURCES.get(name):
        return known
    if "/" not in name or len(name) > MAX_NAME_CHARS or _NOT_HARDWARE.search(name):
        return None
    if match := _MIG.fullmatch(name):
        slices = 4 if match.groups() in _SMALL_PROFILES else _MAX_SLICE_COUNT
        return GpuResource(name, Family.NVIDIA, Unit.SLICE, share=min(1.0, int(match[1]) / slices))
    if not _ACCELERATOR.match(name) and not _LOOKS_LIKE_GPU.search(name):
        return None
    for words, part in ((_OF_MEMORY, Part.MEMORY), (_OF_CORES, Part.CORES)):
        if words.search(name.partition("/")[2]):
            return GpuResource(name, Family.OTHER, Unit.UNKNOWN, part)
    return GpuResource(name, Family.OTHER, Unit.DEVICE, share=1.0)


def slice_share(profile: str | None) -> float | None:
    """The part of a GPU that a MIG instance of a profile such as `1g.10gb` or `1g.10gb+me` is; None if unknown."""
    kind = resource_kind(f"nvidia.com/mig-{profile.replace('+', '.')}") if profile else None
    return kind.share if kind is not None and kind.unit is Unit.SLICE else None


def resource_kinds(names: Iterable[str]) -> list[GpuResource]:
    """Those of the resources that are GPUs, shares of GPUs or other accelerators."""
    return [known for name in names if (known := resource_kind(name)) is not None]
