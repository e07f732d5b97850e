"""All pages, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.web.context import PageDeps
from monitor.web.pages import gpus, nodes, pods, why
from monitor.web.pages import users as people
from monitor.web.pages.alerts import AlertPages
from monitor.web.pages.audit import AuditPage
from monitor.web.pages.cached import CachedQueries
from monitor.web.pages.cleanup import CleanupPages
from monitor.web.pages.overview import Overview
from monitor.web.pages.render import PageRequest
from monitor.web.pages.report import ReportPage

Show = Callable[[PageRequest], Response]


def page_routes(sources: PageDeps) -> list[Route]:
    """Given whom to ask, return the routes of all pages there is something for."""
    sources = replace(sources, asked=CachedQueries(sources.asked))
    shown: list[tuple[str, Show]] = [
        ("/", Overview().show),
        ("/nodes", nodes.show_all),
        ("/nodes/{name}", nodes.show),
        ("/gpus/{node}/{index:int}", gpus.show),
        ("/pods", pods.show_all),
        ("/pods/{namespace}/{name}", pods.show),
        ("/users", people.show_users),
        ("/users/{name}", people.show_user),
        ("/queues", people.show_queues),
        ("/queues/{name}", people.show_queue),
        ("/why", why.show),
    ]
    if sources.alerts is not None:
        alerts = AlertPages(sources.alerts)
        shown += [
            ("/alerts", alerts.show),
            ("/alerts/preview-silence", alerts.preview),
            ("/alerts/{fingerprint}", alerts.one),
        ]
    if sources.cleanup is not None:
        cleanup = CleanupPages(sources.cleanup)
        shown += [
            ("/cleanup", cleanup.show),
            ("/cleanup/plan", cleanup.plan),
            ("/cleanup/preview-run", cleanup.preview),
        ]
    if sources.reports is not None:
        shown.append(("/report", ReportPage(sources.reports).show))
    if sources.audit is not None:
        shown.append(("/audit", AuditPage(sources.audit).show))
    return [Route(path, _endpoint(show, sources)) for path, show in shown]


def _endpoint(show: Show, sources: PageDeps) -> Callable[[Request], Response]:
    """Return an endpoint. A plain function: it runs on a worker thread, and may wait."""

    def endpoint(request: Request) -> Response:
        return show(PageRequest(request, sources))

    return endpoint
