"""GPUs as one node's driver reports them: devices, processes, XIDs, and what the kubelet handed out."""

from __future__ import annotations

from monitor.facts.base import Fact


class EccFact(Fact, frozen=True, kw_only=True):
    """ECC error counts. Volatile ones reset with the driver, aggregate ones live as long as the card."""

    enabled: bool | None = None
    volatile_corrected_sram: int | None = None
    volatile_corrected_dram: int | None = None
    volatile_uncorrected_sram: int | None = None
    volatile_uncorrected_dram: int | None = None
    aggregate_corrected_sram: int | None = None
    aggregate_corrected_dram: int | None = None
    aggregate_uncorrected_sram: int | None = None
    aggregate_uncorrected_dram: int | None = None


class RowRemapFact(Fact, frozen=True, kw_only=True):
    """Rows of HBM that were replaced by spare ones (Ampere and later)."""

    corrected: int
    uncorrected: int
    pending: bool
    failed: bool


class RetiredPagesFact(Fact, frozen=True, kw_only=True):
    """Pages of memory taken out of use (before Ampere)."""

    single_bit: int | None = None
    double_bit: int | None = None
    pending: bool | None = None


class NvlinkFact(Fact, frozen=True, kw_only=True):
    """NVLinks of one card, errors summed over its links."""

    links: int
    active: int
    crc_flit_errors: int | None = None
    crc_data_errors: int | None = None
    replay_errors: int | None = None
    recovery_errors: int | None = None


class MigFact(Fact, frozen=True, kw_only=True):
    """One MIG instance of a card."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None


class GpuFact(Fact, frozen=True, kw_only=True):
    """One physical card. `lost` means that it was there, or is counted, and no longer answers."""

    index: int
    uuid: str | None = None
    pci_bus_id: str | None = None
    model: str | None = None
    serial: str | None = None
    lost: bool = False
    error: str | None = None
    utilization_ratio: float | None = None
    # The highest of the driver's own samples since the previous pass: a burst between two passes is not missed.
    utilization_peak_ratio: float | None = None
    memory_activity_ratio: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    sm_clock_hertz: int | None = None
    memory_clock_hertz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    performance_state: int | None = None
    persistence_mode: bool | None = None
    compute_mode: str | None = None
    ecc: EccFact | None = None
    row_remaps: RowRemapFact | None = None
    retired_pages: RetiredPagesFact | None = None
    nvlink: NvlinkFact | None = None
    pcie_replays: int | None = None
    recovery_action: str | None = None
    mig_enabled: bool | None = None
    mig: tuple[MigFact, ...] = ()


class GpuInventory(Fact, frozen=True, kw_only=True):
    """All cards of a node, and the driver they were read through."""

    gpus: tuple[GpuFact, ...]
    driver_version: str | None = None
    cuda_version: str | None = None


class GpuProcessFact(Fact, frozen=True, kw_only=True):
    """A process that holds a card. `state` is the letter of /proc/<pid>/stat, or "gone" when /proc has no such pid."""

    gpu_uuid: str
    pid: int
    kind: str  # "compute", "graphics" or "mps"
    mig_uuid: str | None = None
    memory_bytes: int | None = None
    name: str | None = None
    state: str | None = None
    state_since: float | None = None
    started_at: float | None = None
    uid: int | None = None
    container_id: str | None = None
    pod_uid: str | None = None


class XidEvent(Fact, frozen=True, kw_only=True):
    """One XID error. `source` is "kernel" (the kernel log), "nvml" (an event), or "both"."""

    at: float
    code: int
    source: str
    gpu_uuid: str | None = None
    pci_bus_id: str | None = None
    pid: int | None = None
    message: str | None = None


class XidCount(Fact, frozen=True, kw_only=True):
    """How often one code was seen on one card since the kernel log begins."""

    code: int
    count: int
    last_at: float
    gpu_uuid: str | None = None
    pci_bus_id: str | None = None


class XidFacts(Fact, frozen=True, kw_only=True):
    """XIDs of a node: counters per card and code, and the newest events."""

    counts: tuple[XidCount, ...] = ()
    recent: tuple[XidEvent, ...] = ()


class PodDeviceFact(Fact, frozen=True, kw_only=True):
    """A device the kubelet gave to a container. `source` is "pod-resources" or "checkpoint"."""

    resource: str
    device_id: str
    source: str
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
    container: str | None = None
    # Device ids of time-sliced cards are `UUID::n`; gpu_uuid is the card (or MIG instance), replica the n.
    gpu_uuid: str | None = None
    replica: int | None = None
