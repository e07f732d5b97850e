"""The routes of all pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.web.context import PageDeps
from monitor.web.pages import disks, fits, gpus, jobs, nodes, pods, users, why
from monitor.web.pages.alert import AlertPage
from monitor.web.pages.alerts import AlertPages
from monitor.web.pages.audit import AuditPage
from monitor.web.pages.cached import CachedQueries
from monitor.web.pages.cleanup import CleanupPages
from monitor.web.pages.overview import OverviewPage
from monitor.web.pages.render import PageRequest
from monitor.web.pages.report import ReportPage

Show = Callable[[PageRequest], Response]


def page_routes(deps: PageDeps) -> list[Route]:
    """Routes of all pages whose dependencies are available."""
    deps = replace(deps, cluster=CachedQueries(deps.cluster))
    pages: list[tuple[str, Show]] = [
        ("/", OverviewPage().show),
        ("/nodes", nodes.show_all),
        ("/nodes/{name}", nodes.show),
        ("/nodes/{name}/disk", disks.show),
        ("/gpus/{node}/{index:int}", gpus.show),
        ("/pods", pods.show_all),
        ("/pods/{namespace}/{name}", pods.show),
        ("/jobs/{namespace}/{name:path}", jobs.show),
        ("/users", users.show_users),
        ("/users/{name}", users.show_user),
        ("/queues", users.show_queues),
        ("/queues/{name}", users.show_queue),
        ("/fits", fits.show),
        ("/why", why.show),
        ("/suggest", why.suggest),
    ]
    if deps.alerts is not None:
        alerts = AlertPages(deps.alerts)
        pages += [
            ("/alerts", alerts.show),
            ("/alerts/preview-silence", alerts.preview),
            ("/alerts/{fingerprint}", AlertPage(deps.alerts).show),
        ]
    if deps.cleanup is not None:
        cleanup = CleanupPages(deps.cleanup)
        pages += [
            ("/cleanup", cleanup.show),
            ("/cleanup/plan", cleanup.plan),
            ("/cleanup/preview-run", cleanup.preview),
        ]
    if deps.reports is not None:
        pages.append(("/report", ReportPage(deps.reports).show))
    if deps.audit is not None:
        pages.append(("/audit", AuditPage(deps.audit).show))
    return [Route(path, _endpoint(show, deps)) for path, show in pages]


def _endpoint(show: Show, deps: PageDeps) -> Callable[[Request], Response]:
    """A plain function, which Starlette runs on a worker thread: it may block."""

    def endpoint(request: Request) -> Response:
        return show(PageRequest(request, deps))

    return endpoint
