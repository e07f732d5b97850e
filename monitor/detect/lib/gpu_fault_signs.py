"""Signs of a broken GPU or driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from monitor.base.text import shorten
from monitor.detect.base import RuleContext
from monitor.detect.lib.gpu_counts import gpu_counts_by_node, gpus_are_shared
from monitor.detect.visibility import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.gpu import GpuFact, XidCount, XidEvent
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True)
class FaultSign:
    """A sign of a fault on a node or on one of its GPUs; `since` is its start, if known."""

    node: str
    gpu: int | None
    cause: str
    since: float | None = None
    values: dict[str, Value] = field(default_factory=dict)
    evidence: tuple[Text, ...] = ()
    raw: str = ""

    @property
    def key(self) -> str:
        return f"{self.node}/{self.gpu}/{self.cause}/{self.values.get('code', '')}"

    def with_cause(self, cause: str) -> FaultSign:
        return replace(self, cause=cause)


def gpu_signs(reports: Mapping[str, AgentFact]) -> Iterator[FaultSign]:
    """Signs that GPUs report."""
    for node, agent in reports.items():
        inventory = agent.snapshot.gpu if agent.snapshot else None
        for gpu in inventory.gpus if inventory else ():
            yield from _signs_of_gpu(node, gpu)


def _signs_of_gpu(node: str, gpu: GpuFact) -> Iterator[FaultSign]:
    if gpu.lost:
        yield FaultSign(
            node,
            gpu.index,
            "card-lost",
            values={"error": shorten(gpu.error or "?", MAX_MESSAGE_CHARS)},
            raw=gpu.error or "",
        )
    ecc = gpu.ecc
    errors = (ecc.volatile_uncorrected_sram or 0) + (ecc.volatile_uncorrected_dram or 0) if ecc else 0
    if errors:
        note = Text(key="gpu-fault.ecc", values={"errors": errors})
        yield FaultSign(node, gpu.index, "ecc-uncorrectable", values={"errors": errors}, evidence=(note,))
    remaps, pages = gpu.row_remaps, gpu.retired_pages
    if remaps is not None and remaps.failed:
        note = Text(key="gpu-fault.remap-failed-seen")
        yield FaultSign(node, gpu.index, "remap-failed", evidence=(note,))
    if (remaps is not None and remaps.pending) or (pages is not None and pages.pending):
        yield FaultSign(node, gpu.index, "remap-pending", evidence=(Text(key="gpu-fault.remap-pending-seen"),))
    if gpu.recovery_action not in (None, "none"):
        action = gpu.recovery_action or ""
        note = Text(key="gpu-fault.recovery", values={"action": action})
        yield FaultSign(node, gpu.index, "recovery-due", values={"action": action}, evidence=(note,))


def node_signs(context: RuleContext, reports: Mapping[str, AgentFact]) -> Iterator[FaultSign]:
    """Drivers that hang, and nodes with fewer GPUs than Kubernetes counts."""
    for node, agent in reports.items():
        for collector in agent.snapshot.collectors if agent.snapshot else ():
            if collector.name == "gpu" and collector.hung_since is not None:
                yield FaultSign(node, None, "driver-hung", since=collector.hung_since + clock_skew(agent))
    for node, counts in gpu_counts_by_node(context).items():
        if counts.gpus < counts.capacity and not gpus_are_shared(context, node, counts):
            values: dict[str, Value] = {"cards": counts.gpus, "capacity": counts.capacity}
            yield FaultSign(node, None, "cards-missing", values=values)


def xid_signs(reports: Mapping[str, AgentFact]) -> Iterator[tuple[FaultSign, int]]:
    """XIDs with their code, one per code and GPU; the caller classifies them."""
    for node, agent in reports.items():
        snapshot = agent.snapshot
        if snapshot is None or snapshot.xid is None or not (snapshot.xid.recent or snapshot.xid.counts):
            continue
        skew = clock_skew(agent)
        for (gpu, device, code), (at, message) in sorted(_xids(snapshot).items(), key=str):
            values: dict[str, Value] = {"code": code, "message": shorten(message or "?", MAX_MESSAGE_CHARS)}
            note = Text(key="gpu-fault.xid", values=values | {"place": device})
            raw = f"Xid ({device}): {code}, {message}" if message else f"Xid ({device}): {code}"
            yield FaultSign(node, gpu, "", at + skew, values, (note,), raw), code


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
