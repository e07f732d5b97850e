"""All nodes, and one: its cards, its pods, its disks, and what its agent says."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from starlette.responses import Response

from monitor.detect.lib.storage import used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import NodeView
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import ImageFact
from monitor.i18n.figures import percent
from monitor.present.node import tables as snapshot_tables
from monitor.report.history import Kind, What
from monitor.web.pages import disks
from monitor.web.pages.charts import Chart, draw
from monitor.web.pages.gpumap import node_notes
from monitor.web.pages.render import Visit
from monitor.web.pages.rows import Index, card_rows, firing, pod_rows

IMAGES = 12


def show_all(visit: Visit) -> Response:
    """Show all nodes, those in trouble first."""
    index = Index(visit.sources.asked.view())
    wanted = visit.query("q").lower()
    found = [node for node in index.view.nodes if wanted in node.name.lower()]
    rows = [(node, node_notes(visit, node), index.cards.get(node.name, [])) for node in found]
    rows.sort(key=lambda row: not row[1])
    listed = visit.section("nodes", "nodes", rows=rows)
    return visit.answer("list.html", visit.t("nav.nodes"), listed, search=visit.query("q"), path="/nodes")


def show(visit: Visit) -> Response:
    """Show one node."""
    name = visit.request.path_params["name"]
    index = Index(visit.sources.asked.view())
    node = index.nodes.get(name)
    agent = next((each for each in visit.sources.parts.agents() if each.node == name), None)
    if node is None:
        return visit.missing(name)
    pods = pod_rows(index, (pod for pod in index.view.pods if pod.node == name))
    snapshot = agent.snapshot if agent is not None else None
    sections = [
        visit.section("facts", "node", node=node, notes=node_notes(visit, node), agent=agent, snapshot=snapshot),
        visit.section("charts", "charts", charts=_charts(visit, node)),
        visit.section("alerts", "alerts", polite=True, rows=firing(visit, node=name)),
        visit.section("cards", "cards", rows=card_rows(visit, index.cards.get(name, ())), where=False),
        visit.section("pods", "pods", rows=pods, more=0),
        visit.section("disks", "disks", disks=_disks(visit, agent), brief=False),
        visit.section("images", "images", images=_largest(snapshot)[:IMAGES], cache=snapshot and snapshot.images),
        visit.section("agent", "tables", tables=_told(snapshot)),
    ]
    return visit.answer("node.html", name, *sections)


def _charts(visit: Visit, node: NodeView) -> Markup:
    made = []
    for what, key, top in (
        (What.UTILIZATION, "utilization", 1.0),
        (What.FREE, "free", float(node.cards or node.allocatable or 1)),
        (What.DISK, "disk", 1.0),
    ):
        points = visit.sources.series(Kind.NODE, node.name, what)
        made.append(Chart(visit.t(f"chart.{key}"), points, top, _last(points, what)))
    return draw(visit.now, visit.lang, *made)


def _last(points: Sequence[tuple[float, float | None]], what: What) -> str:
    value = points[-1][1] if points else None
    if value is None:
        return "?"
    return f"{value:g}" if what in (What.FREE, What.GPUS) else percent(value)


def _disks(visit: Visit, agent: AgentFact | None) -> list[disks.DiskRow]:
    if agent is None or agent.snapshot is None or agent.node is None:
        return []
    found = [disks.DiskRow(agent.node, disk, used_ratio(disk)) for disk in agent.snapshot.disk or ()]
    found.sort(key=lambda row: -(row.share or 0.0))
    trend = {agent.node: visit.sources.series(Kind.NODE, agent.node, What.DISK)}
    return disks.with_times(found, disks.told_seconds(visit.sources.parts.found()), trend, visit.now)


def _largest(snapshot: NodeSnapshot | None) -> list[ImageFact]:
    caches = (snapshot.images or ()) if snapshot is not None else ()
    return sorted((image for cache in caches for image in cache.images), key=lambda image: -(image.size_bytes or 0))


def _told(snapshot: NodeSnapshot | None) -> list[object]:
    """Return what else the agent says, as the terminal shows it: without what has a section of its own."""
    own = ("GPUs", "Disks", "Largest images", "Image caches")
    shown = [] if snapshot is None else snapshot_tables(snapshot)
    return [table for table in shown if not table.title.startswith(own)]
