"""One disk of a node: how full it is, was and will be."""

from __future__ import annotations

from starlette.responses import Response

from monitor.history.model import HistorySubject, disk_name
from monitor.present import disks
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.render import PageRequest


def show(page: PageRequest) -> Response:
    """The page of a disk."""
    node, mount = page.request.path_params["name"], page.query("mount")
    rows = [row for row in disks.node_disks(page.agent_of(node)) if row.fact.mount == mount]
    if not rows:
        return page.not_found(f"{node} {mount}")
    sections = [
        page.section("disks", "disks", css="panel", disks=page.with_forecasts(rows), brief=False),
        page.history(HistorySubject.DISK, disk_name(node, mount)),
        page.section("alerts", "alerts", polite=True, rows=firing_alerts(page, node=node, mount=mount)),
    ]
    return page.respond("disk.html", mount, *sections, node=node)
