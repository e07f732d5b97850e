"""GPUs of one node: devices, processes, XIDs, and devices allocated by the kubelet."""

from __future__ import annotations

from typing import Annotated

from monitor.facts.base import LONG_LIST, SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class EccFact(Fact, frozen=True, kw_only=True):
    """ECC error counts. Volatile counts reset with the driver, aggregate counts last for the lifetime of the GPU."""

    enabled: bool | None = None
    volatile_corrected_sram: BoundedInt | None = None
    volatile_corrected_dram: BoundedInt | None = None
    volatile_uncorrected_sram: BoundedInt | None = None
    volatile_uncorrected_dram: BoundedInt | None = None
    aggregate_corrected_sram: BoundedInt | None = None
    aggregate_corrected_dram: BoundedInt | None = None
    aggregate_uncorrected_sram: BoundedInt | None = None
    aggregate_uncorrected_dram: BoundedInt | None = None


class RowRemapFact(Fact, frozen=True, kw_only=True):
    """HBM rows replaced by spare ones (Ampere and later)."""

    corrected: BoundedInt
    uncorrected: BoundedInt
    pending: bool
    failed: bool


class RetiredPagesFact(Fact, frozen=True, kw_only=True):
    """Retired memory pages (before Ampere)."""

    single_bit: BoundedInt | None = None
    double_bit: BoundedInt | None = None
    pending: bool | None = None


class NvlinkFact(Fact, frozen=True, kw_only=True):
    """NVLinks of one GPU, errors summed over its links."""

    links: BoundedInt
    active: BoundedInt
    crc_flit_errors: BoundedInt | None = None
    crc_data_errors: BoundedInt | None = None
    replay_errors: BoundedInt | None = None
    recovery_errors: BoundedInt | None = None


class MigFact(Fact, frozen=True, kw_only=True):
    """One MIG instance of a GPU."""

    uuid: Identifier
    gpu_instance: BoundedInt
    compute_instance: BoundedInt
    profile: Identifier | None = None
    memory_total_bytes: BoundedInt | None = None
    memory_used_bytes: BoundedInt | None = None


class GpuFact(Fact, frozen=True, kw_only=True):
    """One physical GPU. `lost`: it was present, or is counted, and no longer answers."""

    index: BoundedInt
    uuid: Identifier | None = None
    pci_bus_id: Identifier | None = None
    model: BoundedText | None = None
    serial: Identifier | None = None
    lost: bool = False
    error: BoundedText | None = None
    utilization_ratio: BoundedFloat | None = None
    # Maximum of the driver's samples since the previous run, so that a burst between two runs is not missed.
    utilization_peak_ratio: BoundedFloat | None = None
    memory_activity_ratio: BoundedFloat | None = None
    memory_total_bytes: BoundedInt | None = None
    memory_used_bytes: BoundedInt | None = None
    temperature_celsius: BoundedFloat | None = None
    power_watts: BoundedFloat | None = None
    power_limit_watts: BoundedFloat | None = None
    sm_clock_hertz: BoundedInt | None = None
    memory_clock_hertz: BoundedInt | None = None
    throttle_reasons: Annotated[tuple[BoundedText, ...], SHORT_LIST] | None = None
    performance_state: BoundedInt | None = None
    persistence_mode: bool | None = None
    compute_mode: Identifier | None = None
    ecc: EccFact | None = None
    row_remaps: RowRemapFact | None = None
    retired_pages: RetiredPagesFact | None = None
    nvlink: NvlinkFact | None = None
    pcie_replays: BoundedInt | None = None
    recovery_action: Identifier | None = None
    mig_enabled: bool | None = None
    mig: Annotated[tuple[MigFact, ...], SHORT_LIST] = ()


class GpuInventory(Fact, frozen=True, kw_only=True):
    """All GPUs of a node, and the driver version."""

    gpus: Annotated[tuple[GpuFact, ...], SHORT_LIST]
    driver_version: Identifier | None = None
    cuda_version: Identifier | None = None


class GpuProcessFact(Fact, frozen=True, kw_only=True):
    """A process that holds a GPU. `state` is the letter of /proc/<pid>/stat, or "gone" if /proc has no such pid."""

    gpu_uuid: Identifier
    pid: BoundedInt
    kind: Identifier  # "compute", "graphics" or "mps"
    mig_uuid: Identifier | None = None
    memory_bytes: BoundedInt | None = None
    name: BoundedText | None = None
    state: Identifier | None = None
    state_since: BoundedFloat | None = None
    started_at: BoundedFloat | None = None
    uid: BoundedInt | None = None
    container_id: Identifier | None = None
    pod_uid: Identifier | None = None


class XidEvent(Fact, frozen=True, kw_only=True):
    """One XID error. `source` is "kernel" (the kernel log), "nvml" (an event), or "both"."""

    at: BoundedFloat
    code: BoundedInt
    source: Identifier
    gpu_uuid: Identifier | None = None
    pci_bus_id: Identifier | None = None
    pid: BoundedInt | None = None
    message: BoundedText | None = None


class XidCount(Fact, frozen=True, kw_only=True):
    """Number of occurrences of one code on one GPU since the start of the kernel log."""

    code: BoundedInt
    count: BoundedInt
    last_at: BoundedFloat
    gpu_uuid: Identifier | None = None
    pci_bus_id: Identifier | None = None


class XidFacts(Fact, frozen=True, kw_only=True):
    """XIDs of a node: counts per GPU and code, and the newest events."""

    counts: Annotated[tuple[XidCount, ...], LONG_LIST] = ()
    recent: Annotated[tuple[XidEvent, ...], LONG_LIST] = ()


class PodDeviceFact(Fact, frozen=True, kw_only=True):
    """A device that the kubelet allocated to a container. `source` is "pod-resources" or "checkpoint".

    Of a device that a ResourceClaim holds, `resource` is the DRA driver and `device_id` the name within its `pool`;
    the UUID is in the driver's ResourceSlice.
    """

    resource: BoundedText
    device_id: Identifier
    source: Identifier
    pod_uid: Identifier | None = None
    pod_name: BoundedText | None = None
    namespace: BoundedText | None = None
    container: BoundedText | None = None
    # Device ids of time-sliced GPUs are `UUID::n`; gpu_uuid is the GPU (or MIG instance), replica the n.
    gpu_uuid: Identifier | None = None
    replica: BoundedInt | None = None
    claim: Identifier | None = None
    pool: Identifier | None = None
