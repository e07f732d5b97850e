"""Signs of a broken GPU or driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from monitor.base.text import shorten
from monitor.detect.lib.gpu_counts import gpu_counts, gpus_are_shared
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.facts.gpu import GpuFact, XidCount, XidEvent
from monitor.facts.kernel import KernelEventKind
from monitor.facts.node import NodeSnapshot
from monitor.facts.nvidia.actions import FollowUp
from monitor.facts.nvidia.xids import XidMeaning
from monitor.facts.text import Text, Value

MAX_MESSAGE_CHARS = 200
# Cause of an XID by code and message, None if it is ignored, and its meaning, None if it is unknown.
ClassifyXid = Callable[[int, str | None], tuple[str | None, XidMeaning | None]]
KERNEL_CAUSES: dict[str, str] = {KernelEventKind.GPU_INIT: "init-failed", KernelEventKind.GPU_LOST: "card-lost"}


@dataclass(frozen=True)
class FaultSign:
    """A sign of a fault on a node or on one of its GPUs; `since` is its start, if known."""

    gpu: int | None
    cause: str
    since: float | None = None
    values: dict[str, Value] = field(default_factory=dict)
    evidence: tuple[Text, ...] = ()
    raw: str = ""
    times: tuple[float, ...] = ()  # of events, which say nothing about the present
    then: FollowUp | None = None

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
    counts = gpu_counts(node, resource)
    if counts is not None and counts.gpus < counts.capacity and not gpus_are_shared(node, counts, resource):
        yield FaultSign(None, "cards-missing", values={"cards": counts.gpus, "capacity": counts.capacity})


def xid_signs(report: NodeReport, classify: ClassifyXid) -> Iterator[FaultSign]:
    """XIDs, one sign per code, cause and GPU."""
    for (gpu, place, code, cause), events in sorted(_xids(report.snapshot, classify).items(), key=str):
        name, then = events[-1].name, events[-1].then
        message = next((event.message for event in reversed(events) if event.message), None)
        values: dict[str, Value] = {"code": code, "message": shorten(message or "?", MAX_MESSAGE_CHARS), "place": place}
        note = Text(key="gpu-fault.xid", values=values | {"name": name})
        raw = f"Xid ({place}): {code}, {message}" if message else f"Xid ({place}): {code}"
        times = tuple(sorted(event.at + report.skew for event in events))
        yield FaultSign(gpu, cause, times[-1], values, (note,), raw, times, then)


def kernel_signs(report: NodeReport) -> Iterator[FaultSign]:
    """GPUs that the kernel reports as broken without an XID."""
    events = report.snapshot.kernel.recent if report.snapshot.kernel else ()
    by_bus_id = _by_bus_id(report.snapshot) if events else {}
    for event in events:
        cause = KERNEL_CAUSES.get(event.kind)
        if cause is not None:
            line = event.message or "?"
            values: dict[str, Value] = {"error": shorten(line, MAX_MESSAGE_CHARS), "place": event.device or "?"}
            gpu, at = by_bus_id.get(event.device or ""), event.at + report.skew
            yield FaultSign(gpu, cause, at, values, (Text("gpu-fault.line", values),), line, (at,))


class _Occurrence(NamedTuple):
    """One XID."""

    at: float
    message: str | None
    name: str
    then: FollowUp | None


_Xids = dict[tuple[int | None, str, int, str], list[_Occurrence]]


def _xids(snapshot: NodeSnapshot, classify: ClassifyXid) -> _Xids:
    """XIDs of each GPU by code and cause. The list of events may be truncated; the counts are not."""
    if snapshot.xid is None or not (snapshot.xid.recent or snapshot.xid.counts):
        return {}
    by_uuid: dict[str, int | None] = {gpu.uuid: gpu.index for gpu in _gpus(snapshot) if gpu.uuid}
    by_bus_id = _by_bus_id(snapshot)
    xids: _Xids = {}
    recent = snapshot.xid.recent
    listed = {(gpu, event.code) for event in recent for gpu in (event.pci_bus_id, event.gpu_uuid) if gpu}
    older = [
        count
        for count in snapshot.xid.counts
        if listed.isdisjoint({(count.pci_bus_id, count.code), (count.gpu_uuid, count.code)})
    ]
    entries: tuple[XidCount | XidEvent, ...] = (*older, *recent)
    for entry in entries:
        at, message = (entry.at, entry.message) if isinstance(entry, XidEvent) else (entry.last_at, None)
        cause, meaning = classify(entry.code, message)
        if cause is None:
            continue
        index = by_uuid.get(entry.gpu_uuid or "", by_bus_id.get(entry.pci_bus_id or ""))
        key = index, entry.pci_bus_id or entry.gpu_uuid or "?", meaning.code if meaning else entry.code, cause
        occurrence = _Occurrence(at, message, meaning.name if meaning else "?", meaning.then if meaning else None)
        xids.setdefault(key, []).append(occurrence)
    return xids


def _gpus(snapshot: NodeSnapshot) -> tuple[GpuFact, ...]:
    return snapshot.gpu.gpus if snapshot.gpu else ()


def _by_bus_id(snapshot: NodeSnapshot) -> dict[str, int]:
    return {gpu.pci_bus_id: gpu.index for gpu in _gpus(snapshot) if gpu.pci_bus_id}
