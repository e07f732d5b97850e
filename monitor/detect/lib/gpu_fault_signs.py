"""The signs by which a broken card, or a broken driver, is known. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from monitor.detect.base import RuleContext
from monitor.detect.lib.gpu_counts import gpu_counts_by_node, gpus_are_shared
from monitor.detect.lib.gpus import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.gpu import GpuFact, XidCount, XidEvent
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True)
class FaultSign:
    """One sign: on which node and, if it is about one, which card; and since when, where that is known."""

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
        """Return the same sign under another cause."""
        return replace(self, cause=cause)


def gpu_signs(reports: Mapping[str, AgentFact]) -> Iterator[FaultSign]:
    """Yield what cards say of themselves."""
    for node, agent in reports.items():
        inventory = agent.snapshot.gpu if agent.snapshot else None
        for gpu in inventory.gpus if inventory else ():
            yield from _signs_of_gpu(node, gpu)


def _signs_of_gpu(node: str, gpu: GpuFact) -> Iterator[FaultSign]:
    if gpu.lost:
        yield FaultSign(
            node, gpu.index, "card-lost", values={"error": (gpu.error or "?")[:MAX_MESSAGE_CHARS]}, raw=gpu.error or ""
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
    """Yield the drivers that do not answer, and the nodes that have fewer cards than Kubernetes counts."""
    for node, agent in reports.items():
        for collector in agent.snapshot.collectors if agent.snapshot else ():
            if collector.name == "gpu" and collector.hung_since is not None:
                yield FaultSign(node, None, "driver-hung", since=collector.hung_since + clock_skew(agent))
    for node, counts in gpu_counts_by_node(context).items():
        if counts.gpus < counts.capacity and not gpus_are_shared(context, node, counts):
            values: dict[str, Value] = {"cards": counts.gpus, "capacity": counts.capacity}
            yield FaultSign(node, None, "cards-missing", values=values)


def xid_signs(reports: Mapping[str, AgentFact]) -> Iterator[tuple[FaultSign, int]]:
    """Yield the XIDs, each code of each card once, with its code; what they mean is not said here."""
    for node, agent in reports.items():
        snapshot = agent.snapshot
        if snapshot is None or snapshot.xid is None or not (snapshot.xid.recent or snapshot.xid.counts):
            continue
        skew = clock_skew(agent)
        for (gpu, place, code), (at, message) in sorted(_xids(snapshot).items(), key=str):
            values: dict[str, Value] = {"code": code, "message": (message or "?")[:MAX_MESSAGE_CHARS]}
            note = Text(key="gpu-fault.xid", values=values | {"place": place})
            raw = f"Xid ({place}): {code}, {message}" if message else f"Xid ({place}): {code}"
            yield FaultSign(node, gpu, "", at + skew, values, (note,), raw), code


_Xids = dict[tuple[int | None, str, int], tuple[float, str | None]]


def _xids(snapshot: NodeSnapshot) -> _Xids:
    """Return when each code was last seen on each card, and in which words. The list of events may be cut short."""
    gpus = snapshot.gpu.gpus if snapshot.gpu else ()
    by_uuid: dict[str, int | None] = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    by_place = {gpu.pci_bus_id: gpu.index for gpu in gpus if gpu.pci_bus_id}
    found: _Xids = {}
    facts = snapshot.xid
    if facts is None:
        return found
    seen: tuple[XidCount | XidEvent, ...] = (*facts.counts, *facts.recent)
    for each in seen:
        index = by_uuid.get(each.gpu_uuid or "", by_place.get(each.pci_bus_id or ""))
        key = index, each.pci_bus_id or each.gpu_uuid or "?", each.code
        at, message = (each.at, each.message) if isinstance(each, XidEvent) else (each.last_at, None)
        before = found.get(key, (at, None))
        found[key] = max(at, before[0]), message or before[1]
    return found
