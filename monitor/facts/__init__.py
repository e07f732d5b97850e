"""Facts: small immutable values shared by all packages, including the wire format of agents.

Collectors and decoders produce facts, decision code consumes them; facts carry no logic of either.
"""

from monitor.facts.base import Fact
from monitor.facts.gpu import (
    EccFact,
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    MigFact,
    NvlinkFact,
    PodDeviceFact,
    RetiredPagesFact,
    RowRemapFact,
    XidCount,
    XidEvent,
    XidFacts,
)
from monitor.facts.log_tails import LogTailFact
from monitor.facts.node import HEAD, PARTS, SCHEMA_VERSION, CollectorFact, NodeSnapshot, SnapshotUpdate
from monitor.facts.storage import (
    DiskFact,
    DiskIoFact,
    EvictionFact,
    ImageCacheFact,
    ImageFact,
    KubeletFact,
    MountFact,
    ProbeFact,
    RuntimeUsageFact,
    VolumeFact,
)
from monitor.facts.workload import ContainerFact, ContainerUsageFact, HostFact, LogFact, ShmFact

__all__ = [
    "HEAD",
    "PARTS",
    "SCHEMA_VERSION",
    "CollectorFact",
    "ContainerFact",
    "ContainerUsageFact",
    "DiskFact",
    "DiskIoFact",
    "EccFact",
    "EvictionFact",
    "Fact",
    "GpuFact",
    "GpuInventory",
    "GpuProcessFact",
    "HostFact",
    "ImageCacheFact",
    "ImageFact",
    "KubeletFact",
    "LogFact",
    "LogTailFact",
    "MigFact",
    "MountFact",
    "NodeSnapshot",
    "NvlinkFact",
    "PodDeviceFact",
    "ProbeFact",
    "RetiredPagesFact",
    "RowRemapFact",
    "RuntimeUsageFact",
    "ShmFact",
    "SnapshotUpdate",
    "VolumeFact",
    "XidCount",
    "XidEvent",
    "XidFacts",
]
