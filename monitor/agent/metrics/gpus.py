"""GPUs as the driver reports them, and their XIDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos, message_label
from monitor.base.metrics import Row, counters, gauges, label
from monitor.facts import GpuFact, GpuInventory, MigFact, NodeSnapshot, XidFacts

GPU = ("gpu", "uuid")

GAUGES: tuple[Row[GpuFact], ...] = (
    ("gpuwarden_gpu_lost", "Whether the GPU is counted or was seen, but does not respond.", lambda g: g.lost),
    ("gpuwarden_gpu_utilization_ratio", "Share of the last sample period with a kernel running.",
     lambda g: g.utilization_ratio),
    ("gpuwarden_gpu_utilization_peak_ratio", "Highest of the driver's samples since the previous reading.",
     lambda g: g.utilization_peak_ratio),
    ("gpuwarden_gpu_memory_activity_ratio", "Share of the last sample period with memory traffic.",
     lambda g: g.memory_activity_ratio),
    ("gpuwarden_gpu_memory_total_bytes", "Memory of the GPU.", lambda g: g.memory_total_bytes),
    ("gpuwarden_gpu_memory_used_bytes", "Memory in use.", lambda g: g.memory_used_bytes),
    ("gpuwarden_gpu_temperature_celsius", "GPU temperature.", lambda g: g.temperature_celsius),
    ("gpuwarden_gpu_power_watts", "Power drawn.", lambda g: g.power_watts),
    ("gpuwarden_gpu_power_limit_watts", "Power limit enforced.", lambda g: g.power_limit_watts),
    ("gpuwarden_gpu_sm_clock_hertz", "SM clock.", lambda g: g.sm_clock_hertz),
    ("gpuwarden_gpu_memory_clock_hertz", "Memory clock.", lambda g: g.memory_clock_hertz),
    ("gpuwarden_gpu_performance_state", "P-state: 0 is the fastest.", lambda g: g.performance_state),
    ("gpuwarden_gpu_persistence_mode", "Whether the driver stays loaded while unused.", lambda g: g.persistence_mode),
    ("gpuwarden_gpu_mig_enabled", "Whether the GPU is in MIG mode.", lambda g: g.mig_enabled),
    ("gpuwarden_gpu_row_remap_pending", "Whether a row remap waits for a reset.",
     lambda g: g.row_remaps.pending if g.row_remaps else None),
    ("gpuwarden_gpu_row_remap_failed", "Whether a row could not be remapped: the GPU must be replaced.",
     lambda g: g.row_remaps.failed if g.row_remaps else None),
    ("gpuwarden_gpu_retired_pages_pending", "Whether a page retirement waits for a reset.",
     lambda g: g.retired_pages.pending if g.retired_pages else None),
    ("gpuwarden_gpu_throttle_reasons", "Number of active throttle reasons.",
     lambda g: None if g.throttle_reasons is None else len(g.throttle_reasons)),
    ("gpuwarden_gpu_ecc_enabled", "Whether ECC is enabled.",
     lambda g: g.ecc.enabled if g.ecc else None),
    ("gpuwarden_gpu_nvlinks", "NVLinks of the GPU.", lambda g: g.nvlink.links if g.nvlink else None),
    ("gpuwarden_gpu_nvlinks_active", "NVLinks that are up.", lambda g: g.nvlink.active if g.nvlink else None),
)  # fmt: skip
COUNTERS: tuple[Row[GpuFact], ...] = (
    ("gpuwarden_gpu_pcie_replays", "PCIe packets replayed.", lambda g: g.pcie_replays),
)
# lifetime, kind, location, and the field of EccFact
ECC = tuple(
    (lifetime, kind, location, f"{lifetime}_{kind}_{location}")
    for lifetime in ("volatile", "aggregate")
    for kind in ("corrected", "uncorrected")
    for location in ("sram", "dram")
)
NVLINK_ERRORS = ("crc_flit", "crc_data", "replay", "recovery")


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Everything about the GPUs; nothing if they are unknown."""
    if snapshot.gpu is not None:
        yield from _info(snapshot.gpu)
        gpus = [((label(gpu.index), label(gpu.uuid)), gpu) for gpu in snapshot.gpu.gpus]
        yield from gauges(GAUGES, GPU, gpus)
        yield from counters(COUNTERS, GPU, gpus)
        yield from _states(gpus)
        yield from _errors(gpus)
        yield from _mig(gpus)
    if snapshot.xid is not None:
        yield from _xids(snapshot.xid, snapshot.gpu)


def _info(inventory: GpuInventory) -> Iterable[Metric]:
    driver = GaugeMetricFamily("gpuwarden_gpu_driver_info", "The NVIDIA driver.", labels=("version", "cuda_version"))
    driver.add_metric((label(inventory.driver_version), label(inventory.cuda_version)), 1)
    yield driver
    info = GaugeMetricFamily("gpuwarden_gpu_info", "A GPU.", labels=(*GPU, "model", "pci_bus_id", "serial"))
    for gpu in inventory.gpus:
        info.add_metric([label(v) for v in (gpu.index, gpu.uuid, gpu.model, gpu.pci_bus_id, gpu.serial)], 1)
    yield info


def _states(gpus: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    """States that are strings: a series of 1 for each that applies."""
    throttled = GaugeMetricFamily("gpuwarden_gpu_throttled", "An active throttle reason.", labels=(*GPU, "reason"))
    action = GaugeMetricFamily(
        "gpuwarden_gpu_recovery_action", "Recovery action that the driver requests.", labels=(*GPU, "action")
    )
    for labels, gpu in gpus:
        for reason in gpu.throttle_reasons or ():
            throttled.add_metric((*labels, label(reason)), 1)
        if gpu.recovery_action is not None:
            action.add_metric((*labels, label(gpu.recovery_action)), 1)
    yield from (family for family in (throttled, action) if family.samples)
    errors = [(*labels, message_label(gpu.error)) for labels, gpu in gpus if gpu.error]
    yield from infos("gpuwarden_gpu_error_info", "Error of the GPU.", (*GPU, "error"), errors)


def _errors(gpus: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    ecc = CounterMetricFamily("gpuwarden_gpu_ecc_errors", "ECC errors.", labels=(*GPU, "lifetime", "kind", "location"))
    remaps = CounterMetricFamily("gpuwarden_gpu_row_remaps", "Rows remapped.", labels=(*GPU, "kind"))
    pages = CounterMetricFamily("gpuwarden_gpu_retired_pages", "Pages retired.", labels=(*GPU, "kind"))
    links = CounterMetricFamily("gpuwarden_gpu_nvlink_errors", "NVLink errors over all links.", labels=(*GPU, "kind"))
    for labels, gpu in gpus:
        _add(
            ecc,
            labels,
            [((lifetime, kind, location), getattr(gpu.ecc, name, None)) for lifetime, kind, location, name in ECC],
        )
        _add(remaps, labels, [((kind,), getattr(gpu.row_remaps, kind, None)) for kind in ("corrected", "uncorrected")])
        _add(
            pages, labels, [((kind,), getattr(gpu.retired_pages, kind, None)) for kind in ("single_bit", "double_bit")]
        )
        _add(links, labels, [((kind,), getattr(gpu.nvlink, f"{kind}_errors", None)) for kind in NVLINK_ERRORS])
    yield from (family for family in (ecc, remaps, pages, links) if family.samples)


def _add(
    family: CounterMetricFamily, labels: tuple[str, str], values: list[tuple[tuple[str, ...], int | None]]
) -> None:
    for more, value in values:
        if value is not None:
            family.add_metric((*labels, *more), value)


MIG_GAUGES: tuple[Row[MigFact], ...] = (
    ("gpuwarden_gpu_mig_info", "A MIG instance.", lambda _: 1),
    ("gpuwarden_gpu_mig_memory_total_bytes", "Memory of the MIG instance.", lambda m: m.memory_total_bytes),
    ("gpuwarden_gpu_mig_memory_used_bytes", "Memory in use on the MIG instance.", lambda m: m.memory_used_bytes),
)


def _mig(gpus: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    rows = [
        ((*labels, label(mig.uuid), label(mig.profile), str(mig.gpu_instance), str(mig.compute_instance)), mig)
        for labels, gpu in gpus
        for mig in gpu.mig
    ]
    names = (*GPU, "mig_uuid", "profile", "gpu_instance", "compute_instance")
    yield from gauges(MIG_GAUGES, names, rows)


def _xids(xids: XidFacts, inventory: GpuInventory | None) -> Iterable[Metric]:
    index = {gpu.uuid: gpu.index for gpu in inventory.gpus} if inventory else {}
    names = (*GPU, "pci_bus_id", "xid")
    counter = CounterMetricFamily("gpuwarden_gpu_xid_errors", "XID errors by code.", labels=names)
    last = GaugeMetricFamily("gpuwarden_gpu_xid_last_seconds", "When the code was last seen (Unix time).", labels=names)
    for count in xids.counts:
        values = (index.get(count.gpu_uuid), count.gpu_uuid, count.pci_bus_id, count.code)
        labels = [label(value) for value in values]
        counter.add_metric(labels, count.count)
        last.add_metric(labels, count.last_at)
    yield from (family for family in (counter, last) if family.samples)
    yield from _xid_events(xids, index)


def _xid_events(xids: XidFacts, index: Mapping[str | None, int]) -> Iterable[Metric]:
    """Times of the newest XIDs. Of those with equal labels the newest is number 0, so that only values change."""
    names = (*GPU, "pci_bus_id", "xid", "source", "pid", "message", "number")
    family = GaugeMetricFamily(
        "gpuwarden_gpu_xid_event_seconds", "When one of the newest XIDs was seen (Unix time).", labels=names
    )
    numbers: Counter[tuple[str, ...]] = Counter()
    for event in sorted(xids.recent, key=lambda event: -event.at):
        values = (index.get(event.gpu_uuid), event.gpu_uuid, event.pci_bus_id, event.code, event.source, event.pid)
        labels = (*map(label, values), message_label(event.message))
        family.add_metric((*labels, str(numbers[labels])), event.at)
        numbers[labels] += 1
    if family.samples:
        yield family
