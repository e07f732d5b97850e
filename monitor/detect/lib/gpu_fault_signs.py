"""Signs of a broken GPU or driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from monitor.base.text import shorten
from monitor.detect.lib.gpu_counts import gpu_counts, gpus_are_shared
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.facts.gpu import GpuFact, XidCount, XidEvent
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True)
class FaultSign:
    """A sign of a fault on a node or on one of its GPUs; `since` is its start, if known."""

    gpu: int | None
    cause: str
    since: float | None = None
    values: dict[str, Value] = field(default_factory=dict)
    evidence: tuple[Text, ...] = ()
    raw: str = ""

    @property
    def key(self) -> str:
        return f"{self.gpu}/{self.cause}/{self.values.get('code', '')}"


def gpu_signs(gpu: GpuFact) -> Iterator[FaultSign]:
    """Signs that a GPU reports."""
    if gpu.lost:
        error = shorten(gpu.error or "?", MAX_MESSAGE_CHARS)
        yield FaultSign(gpu.index, "card-lost", values={"error": error}, raw=gpu.error or "")
    ecc = gpu.ecc
    errors = (ecc.volatile_uncorrected_sram or 0) + (ecc.volatile_uncorrected_dram or 0) if ecc else 0
    if errors:
        note = Text(key="gpu-fault.ecc", values={"errors": errors})
        yield FaultSign(gpu.index, "ecc-uncorrectable", values={"errors": errors}, evidence=(note,))
    remaps, pages = gpu.row_remaps, gpu.retired_pages
    if remaps is not None and remaps.failed:
        yield FaultSign(gpu.index, "remap-failed", evidence=(Text(key="gpu-fault.remap-failed-seen"),))
    if (remaps is not None and remaps.pending) or (pages is not None and pages.pending):
        yield FaultSign(gpu.index, "remap-pending", evidence=(Text(key="gpu-fault.remap-pending-seen"),))
    if gpu.recovery_action not in (None, "none"):
        values: dict[str, Value] = {"action": gpu.recovery_action or ""}
        yield FaultSign(gpu.index, "recovery-due", values=values, evidence=(Text("gpu-fault.recovery", values),))


def node_signs(node: NodeSubject, resource: str) -> Iterator[FaultSign]:
    """A driver that hangs, and fewer GPUs than Kubernetes counts."""
    for collector in node.report.snapshot.collectors:
        if collector.name == "gpu" and collector.hung_since is not None:
            yield FaultSign(None, "driver-hung", since=collector.hung_since + node.report.skew)
    counts = gpu_counts(node)
    if counts is not None and counts.gpus < counts.capacity and not gpus_are_shared(node, counts, resource):
        yield FaultSign(None, "cards-missing", values={"cards": counts.gpus, "capacity": counts.capacity})


def xid_signs(report: NodeReport, meaning: Callable[[int], str | None]) -> Iterator[FaultSign]:
    """XIDs, one per code and GPU; `meaning` gives the cause of a code, or None if it is ignored."""
    for (gpu, device, code), (at, message) in sorted(_xids(report.snapshot).items(), key=str):
        cause = meaning(code)
        if cause is not None:
            values: dict[str, Value] = {"code": code, "message": shorten(message or "?", MAX_MESSAGE_CHARS)}
            note = Text(key="gpu-fault.xid", values=values | {"place": device})
            raw = f"Xid ({device}): {code}, {message}" if message else f"Xid ({device}): {code}"
            yield FaultSign(gpu, cause, at + report.skew, values, (note,), raw)


_Xids = dict[tuple[int | None, str, int], tuple[float, str | None]]


def _xids(snapshot: NodeSnapshot) -> _Xids:
    """Last time and message of each code on each GPU. The list of events may be truncated; the counts are not."""
    gpus = snapshot.gpu.gpus if snapshot.gpu else ()
    by_uuid: dict[str, int | None] = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    by_bus_id = {gpu.pci_bus_id: gpu.index for gpu in gpus if gpu.pci_bus_id}
    xids: _Xids = {}
    facts = snapshot.xid
    if facts is None:
        return xids
    entries: tuple[XidCount | XidEvent, ...] = (*facts.counts, *facts.recent)
    for entry in entries:
        index = by_uuid.get(entry.gpu_uuid or "", by_bus_id.get(entry.pci_bus_id or ""))
        key = index, entry.pci_bus_id or entry.gpu_uuid or "?", entry.code
        at, message = (entry.at, entry.message) if isinstance(entry, XidEvent) else (entry.last_at, None)
        before = xids.get(key, (at, None))
        xids[key] = max(at, before[0]), message or before[1]
    return xids
