"""All nodes, and one node: GPUs, pods, disks, images, and the other data of its agent."""

from __future__ import annotations

from starlette.responses import Response

from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import ImageFact
from monitor.history.model import HistorySubject
from monitor.present import disks
from monitor.present.node import tables as snapshot_tables
from monitor.present.node_rows import in_order, node_rows
from monitor.present.rows import ClusterIndex, gpu_rows, node_problems, pod_rows
from monitor.present.table import TextTable, in_language
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.render import PageRequest

MAX_IMAGES = 12
TABLES_WITH_SECTIONS = ("Disks", "Largest images", "Image caches")  # and the first, that of the GPUs


def show_all(page: PageRequest) -> Response:
    """All nodes, in the order that the query names."""
    index = ClusterIndex(page.deps.cluster.view())
    search, order = page.query("q"), page.query("sort")
    agents = {agent.node: agent for agent in page.deps.data.agents() if agent.node is not None}
    rows = [row for row in node_rows(index, agents, page.lang) if search.lower() in row.node.name.lower()]
    section = page.section("nodes", "nodes", **page.limited(in_order(rows, order)), search=search, order=order)
    return page.respond("nodes.html", page.t("nav.nodes"), section, search=search, order=order)


def show(page: PageRequest) -> Response:
    """The page of a node."""
    name = page.request.path_params["name"]
    index = ClusterIndex(page.deps.cluster.view())
    node = index.nodes.get(name)
    if node is None:
        return page.not_found(name)
    agent = page.agent_of(name)
    snapshot = agent.snapshot if agent is not None else None
    pods = pod_rows(index, (pod for pod in index.view.pods if pod.node == name))
    rows = gpu_rows(index.gpus_by_node.get(name, ()), page.lang)
    images = _largest_images(snapshot)[:MAX_IMAGES]
    sections = [
        page.section("facts", "node", node=node, notes=node_problems(node, page.lang), agent=agent, snapshot=snapshot),
        page.history(HistorySubject.NODE, name),
        page.section("alerts", "alerts", polite=True, rows=firing_alerts(page, node=name)),
        page.section("cards", "cards", rows=rows, where=False),
        page.section("pods", "pods", rows=pods, more=0),
        page.section("disks", "disks", disks=page.with_forecasts(disks.node_disks(agent)), brief=False),
        page.section("images", "images", images=images, cache=snapshot and snapshot.images),
        page.section("agent", "tables", tables=_other_tables(snapshot, page.lang)),
    ]
    return page.respond("node.html", name, *sections)


def _largest_images(snapshot: NodeSnapshot | None) -> list[ImageFact]:
    caches = (snapshot.images or ()) if snapshot is not None else ()
    return sorted((image for cache in caches for image in cache.images), key=lambda image: -(image.size_bytes or 0))


def _other_tables(snapshot: NodeSnapshot | None, lang: str) -> list[TextTable]:
    """The tables of the terminal that have no section of their own."""
    tables = [] if snapshot is None else snapshot_tables(snapshot, lang)
    return [in_language(table, lang) for table in tables[1:] if table.title not in TABLES_WITH_SECTIONS]
