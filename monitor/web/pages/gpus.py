"""One card: its state and why, who is on it, and how it is."""

from __future__ import annotations

from starlette.responses import Response

from monitor.facts.gpu import GpuFact, GpuProcessFact
from monitor.facts.node import NodeSnapshot
from monitor.i18n.figures import percent
from monitor.report.history import Kind, What
from monitor.web.pages.charts import Chart, draw
from monitor.web.pages.render import PageRequest
from monitor.web.pages.rows import Index, card_rows, firing


def show(visit: PageRequest) -> Response:
    """Show one card."""
    node, number = visit.request.path_params["node"], visit.request.path_params["index"]
    index = Index(visit.sources.asked.view())
    gpu = next((each for each in index.cards.get(node, ()) if each.index == number), None)
    name = f"{node} / GPU {number}"
    if gpu is None:
        return visit.missing(name)
    agent = next((each for each in visit.sources.parts.agents() if each.node == node), None)
    snapshot = agent.snapshot if agent is not None else None
    fact = _fact(snapshot, number)
    points = visit.sources.series(Kind.CARD, f"{node}/{number}", What.UTILIZATION)
    last = "?" if gpu.utilization_ratio is None else percent(gpu.utilization_ratio)
    sections = [
        visit.section("facts", "card", row=card_rows(visit, [gpu])[0], fact=fact),
        visit.section(
            "charts",
            "charts",
            charts=draw(visit.now, visit.lang, Chart(visit.t("chart.utilization"), points, 1.0, last)),
        ),
        visit.section("alerts", "alerts", polite=True, rows=firing(visit, node=node, gpu=str(number))),
        visit.section("processes", "processes", processes=_processes(snapshot, gpu.uuid), known=snapshot is not None),
        visit.section("health", "card_health", fact=fact, xids=_xids(snapshot, gpu.uuid)),
    ]
    return visit.answer("gpu.html", name, *sections, node=node)


def _fact(snapshot: NodeSnapshot | None, index: int) -> GpuFact | None:
    inventory = snapshot.gpu if snapshot is not None else None
    return next((each for each in inventory.gpus if each.index == index), None) if inventory is not None else None


def _processes(snapshot: NodeSnapshot | None, uuid: str | None) -> list[GpuProcessFact]:
    found = (snapshot.gpu_processes or ()) if snapshot is not None else ()
    return [each for each in found if each.gpu_uuid == uuid]


def _xids(snapshot: NodeSnapshot | None, uuid: str | None) -> list[object]:
    found = snapshot.xid.counts if snapshot is not None and snapshot.xid is not None else ()
    return [each for each in found if each.gpu_uuid == uuid]
