"""Cards: what the driver says of each, and the XIDs seen on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos, said
from monitor.base.metrics import Row, counters, gauges, label
from monitor.facts import GpuFact, GpuInventory, MigFact, NodeSnapshot, XidFacts

CARD = ("gpu", "uuid")

GAUGES: tuple[Row[GpuFact], ...] = (
    ("gpuwarden_gpu_lost", "Whether the card is counted or was seen, and does not answer.", lambda g: g.lost),
    ("gpuwarden_gpu_utilization_ratio", "Share of the last sample period with a kernel running.",
     lambda g: g.utilization_ratio),
    ("gpuwarden_gpu_utilization_peak_ratio", "Highest of the driver's samples since the previous reading.",
     lambda g: g.utilization_peak_ratio),
    ("gpuwarden_gpu_memory_activity_ratio", "Share of the last sample period with memory traffic.",
     lambda g: g.memory_activity_ratio),
    ("gpuwarden_gpu_memory_total_bytes", "Memory of the card.", lambda g: g.memory_total_bytes),
    ("gpuwarden_gpu_memory_used_bytes", "Memory in use.", lambda g: g.memory_used_bytes),
    ("gpuwarden_gpu_temperature_celsius", "Temperature of the chip.", lambda g: g.temperature_celsius),
    ("gpuwarden_gpu_power_watts", "Power drawn.", lambda g: g.power_watts),
    ("gpuwarden_gpu_power_limit_watts", "Power limit enforced.", lambda g: g.power_limit_watts),
    ("gpuwarden_gpu_sm_clock_hertz", "Clock of the multiprocessors.", lambda g: g.sm_clock_hertz),
    ("gpuwarden_gpu_memory_clock_hertz", "Clock of the memory.", lambda g: g.memory_clock_hertz),
    ("gpuwarden_gpu_performance_state", "P-state: 0 is the fastest.", lambda g: g.performance_state),
    ("gpuwarden_gpu_persistence_mode", "Whether the driver stays loaded unused.", lambda g: g.persistence_mode),
    ("gpuwarden_gpu_mig_enabled", "Whether the card is split into MIG instances.", lambda g: g.mig_enabled),
    ("gpuwarden_gpu_row_remap_pending", "Whether a row remap waits for a reset.",
     lambda g: g.row_remaps.pending if g.row_remaps else None),
    ("gpuwarden_gpu_row_remap_failed", "Whether a row could not be remapped: the card needs to be replaced.",
     lambda g: g.row_remaps.failed if g.row_remaps else None),
    ("gpuwarden_gpu_retired_pages_pending", "Whether a page retirement waits for a reset.",
     lambda g: g.retired_pages.pending if g.retired_pages else None),
    ("gpuwarden_gpu_throttle_reasons", "How many reasons hold the clocks down.",
     lambda g: None if g.throttle_reasons is None else len(g.throttle_reasons)),
    ("gpuwarden_gpu_ecc_enabled", "Whether errors of the memory are found and corrected.",
     lambda g: g.ecc.enabled if g.ecc else None),
    ("gpuwarden_gpu_nvlinks", "NVLinks of the card.", lambda g: g.nvlink.links if g.nvlink else None),
    ("gpuwarden_gpu_nvlinks_active", "NVLinks that are up.", lambda g: g.nvlink.active if g.nvlink else None),
)  # fmt: skip
COUNTERS: tuple[Row[GpuFact], ...] = (
    ("gpuwarden_gpu_pcie_replays", "PCIe packets sent again.", lambda g: g.pcie_replays),
)
# name, help, label names beside CARD, and the samples as (label values, value)
ECC = tuple(
    (life, kind, where, f"{life}_{kind}_{where}")
    for life in ("volatile", "aggregate")
    for kind in ("corrected", "uncorrected")
    for where in ("sram", "dram")
)
NVLINK_ERRORS = ("crc_flit", "crc_data", "replay", "recovery")


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Yield everything about the cards; nothing when they are not known."""
    if snapshot.gpu is not None:
        yield from _info(snapshot.gpu)
        cards = [((label(gpu.index), label(gpu.uuid)), gpu) for gpu in snapshot.gpu.gpus]
        yield from gauges(GAUGES, CARD, cards)
        yield from counters(COUNTERS, CARD, cards)
        yield from _states(cards)
        yield from _errors(cards)
        yield from _mig(cards)
    if snapshot.xid is not None:
        yield from _xids(snapshot.xid, snapshot.gpu)


def _info(inventory: GpuInventory) -> Iterable[Metric]:
    driver = GaugeMetricFamily("gpuwarden_gpu_driver_info", "The NVIDIA driver.", labels=("version", "cuda_version"))
    driver.add_metric((label(inventory.driver_version), label(inventory.cuda_version)), 1)
    yield driver
    info = GaugeMetricFamily("gpuwarden_gpu_info", "A card.", labels=(*CARD, "model", "pci_bus_id", "serial"))
    for gpu in inventory.gpus:
        info.add_metric([label(v) for v in (gpu.index, gpu.uuid, gpu.model, gpu.pci_bus_id, gpu.serial)], 1)
    yield info


def _states(cards: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    """What is a word and not a number: a series of 1 for the word that is true."""
    throttled = GaugeMetricFamily(
        "gpuwarden_gpu_throttled", "A reason why clocks are held down.", labels=(*CARD, "reason")
    )
    action = GaugeMetricFamily(
        "gpuwarden_gpu_recovery_action", "What the driver says must be done.", labels=(*CARD, "action")
    )
    for labels, gpu in cards:
        for reason in gpu.throttle_reasons or ():
            throttled.add_metric((*labels, label(reason)), 1)
        if gpu.recovery_action is not None:
            action.add_metric((*labels, label(gpu.recovery_action)), 1)
    yield from (family for family in (throttled, action) if family.samples)
    errors = [(*labels, said(gpu.error)) for labels, gpu in cards if gpu.error]
    yield from infos("gpuwarden_gpu_error_info", "What the driver says of the card.", (*CARD, "error"), errors)


def _errors(cards: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    ecc = CounterMetricFamily("gpuwarden_gpu_ecc_errors", "ECC errors.", labels=(*CARD, "lifetime", "kind", "location"))
    remaps = CounterMetricFamily("gpuwarden_gpu_row_remaps", "Rows remapped.", labels=(*CARD, "kind"))
    pages = CounterMetricFamily("gpuwarden_gpu_retired_pages", "Pages retired.", labels=(*CARD, "kind"))
    links = CounterMetricFamily("gpuwarden_gpu_nvlink_errors", "NVLink errors over all links.", labels=(*CARD, "kind"))
    for labels, gpu in cards:
        _add(ecc, labels, [((life, kind, where), getattr(gpu.ecc, name, None)) for life, kind, where, name in ECC])
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


def _mig(cards: list[tuple[tuple[str, str], GpuFact]]) -> Iterable[Metric]:
    things = [
        ((*labels, label(mig.uuid), label(mig.profile), str(mig.gpu_instance), str(mig.compute_instance)), mig)
        for labels, gpu in cards
        for mig in gpu.mig
    ]
    names = (*CARD, "mig_uuid", "profile", "gpu_instance", "compute_instance")
    yield from gauges(MIG_GAUGES, names, things)


def _xids(xids: XidFacts, inventory: GpuInventory | None) -> Iterable[Metric]:
    index = {gpu.uuid: gpu.index for gpu in inventory.gpus} if inventory else {}
    names = (*CARD, "pci_bus_id", "xid")
    counter = CounterMetricFamily("gpuwarden_gpu_xid_errors", "XID errors by code.", labels=names)
    last = GaugeMetricFamily("gpuwarden_gpu_xid_last_seconds", "When the code was last seen (Unix time).", labels=names)
    for count in xids.counts:
        card = (index.get(count.gpu_uuid), count.gpu_uuid, count.pci_bus_id, count.code)
        labels = [label(value) for value in card]
        counter.add_metric(labels, count.count)
        last.add_metric(labels, count.last_at)
    yield from (family for family in (counter, last) if family.samples)
    yield from _xid_events(xids, index)


def _xid_events(xids: XidFacts, index: Mapping[str | None, int]) -> Iterable[Metric]:
    """Yield when each of the newest errors was seen. Of like ones the newest is number 0, so that only values move."""
    names = (*CARD, "pci_bus_id", "xid", "source", "pid", "message", "number")
    family = GaugeMetricFamily(
        "gpuwarden_gpu_xid_event_seconds", "When one of the newest XIDs was seen (Unix time).", labels=names
    )
    numbers: Counter[tuple[str, ...]] = Counter()
    for event in sorted(xids.recent, key=lambda event: -event.at):
        card = (index.get(event.gpu_uuid), event.gpu_uuid, event.pci_bus_id, event.code, event.source, event.pid)
        labels = (*map(label, card), said(event.message))
        family.add_metric((*labels, str(numbers[labels])), event.at)
        numbers[labels] += 1
    if family.samples:
        yield family
