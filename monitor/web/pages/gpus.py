"""One GPU: state and evidence, holders, processes and health."""

from __future__ import annotations

from starlette.responses import Response

from monitor.facts.gpu import GpuFact, GpuProcessFact, XidCount
from monitor.facts.node import NodeSnapshot
from monitor.facts.nvidia.xids import xid_meaning
from monitor.history.model import HistorySubject
from monitor.present.rows import ClusterIndex, gpu_rows
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.render import PageRequest


def show(page: PageRequest) -> Response:
    """The page of a GPU."""
    node, number = page.request.path_params["node"], page.request.path_params["index"]
    index = ClusterIndex(page.deps.cluster.view())
    gpu = next((gpu for gpu in index.gpus_by_node.get(node, ()) if gpu.index == number), None)
    name = f"{node} / GPU {number}"
    if gpu is None:
        return page.not_found(name)
    snapshot = page.snapshot_of(node)
    fact = _gpu_fact(snapshot, number)
    sections = [
        page.section("facts", "card", row=gpu_rows([gpu], page.lang)[0], fact=fact),
        page.history(HistorySubject.GPU, f"{node}/{number}"),
        page.section("alerts", "alerts", polite=True, rows=firing_alerts(page, node=node, gpu=str(number))),
        page.section("processes", "processes", processes=_processes(snapshot, gpu.uuid), known=snapshot is not None),
        page.section("health", "card_health", fact=fact, xids=_xids(snapshot, gpu.uuid)),
    ]
    return page.respond("gpu.html", name, *sections, node=node)


def _gpu_fact(snapshot: NodeSnapshot | None, index: int) -> GpuFact | None:
    inventory = snapshot.gpu if snapshot is not None else None
    return next((gpu for gpu in inventory.gpus if gpu.index == index), None) if inventory is not None else None


def _processes(snapshot: NodeSnapshot | None, uuid: str | None) -> list[GpuProcessFact]:
    processes = (snapshot.gpu_processes or ()) if snapshot is not None else ()
    return [process for process in processes if process.gpu_uuid == uuid]


def _xids(snapshot: NodeSnapshot | None, uuid: str | None) -> list[tuple[XidCount, str]]:
    """XIDs of a GPU, each with the action that its last line requires."""
    facts = snapshot.xid if snapshot is not None else None
    if facts is None:
        return []
    lines = {event.code: event.message for event in facts.recent if event.gpu_uuid == uuid}
    meanings = [(xid, xid_meaning(xid.code, lines.get(xid.code))) for xid in facts.counts if xid.gpu_uuid == uuid]
    return [(xid, meaning.action.value if meaning is not None else "unknown") for xid, meaning in meanings]
