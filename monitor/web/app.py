"""The web application: pages of the cluster and of alerts, both as JSON too, and a sign of life."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import jinja2
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor import overview, overview_alerts, overview_cluster, overview_findings
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView
from monitor.overview_findings import SaidFinding
from monitor.questions import Why
from monitor.report import ReportAsked
from monitor.web.alerts_api import AlertsAsked, Tokens, alert_routes
from monitor.web.answers import NO_STORE, json_answer
from monitor.web.cleanup_api import CleanupAsked, cleanup_routes
from monitor.web.report_api import report_routes
from monitor.words import LANGUAGES

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "X-Content-Type-Options": "nosniff",
}
MESSAGES = 50  # the latest that the page of alerts shows


class Asked(Protocol):
    """What the pages ask of the cluster."""

    def view(self) -> ClusterView:
        """Return the cluster as it is now."""
        ...

    def findings(self, lang: str) -> tuple[SaidFinding, ...] | None:
        """Return what is wrong, in words; None while nobody has looked."""
        ...

    def why(self, name: str, namespace: str | None, lang: str) -> Why:
        """Return why a pod or job is as it is."""
        ...


def create_app(
    asked: Asked,
    own_node: Callable[[], NodeSnapshot] | None = None,
    alerts: AlertsAsked | None = None,
    tokens: Tokens | None = None,
    cleanup: CleanupAsked | None = None,
    reports: ReportAsked | None = None,
) -> ASGIApp:
    """Given whom to ask about the cluster, about alerts and about cleanup, return the application.

    `own_node` gives this machine's snapshot if its agent is here; `tokens` say who may change something.
    """
    views = _Views(asked, own_node)
    routes = [
        Route("/", views.status),
        Route("/healthz", healthz),
        Route("/v1/view", views.view),
        Route("/v1/findings", views.findings),
        Route("/v1/why", views.why),
        Route("/v1/snapshot", views.snapshot),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    if alerts is not None:
        page = _AlertPages(alerts, views.page)
        routes += [Route("/alerts", page.alerts), Route("/alerts/{fingerprint}", page.alert)]
        routes += alert_routes(alerts, tokens or Tokens())
    if cleanup is not None:
        routes += cleanup_routes(cleanup, tokens.daemon if tokens is not None else None)
    if reports is not None:
        routes += report_routes(reports)
    return SafeHeaders(Starlette(routes=routes))


class SafeHeaders:
    """Adds the headers that keep a browser from running what a name or a message might smuggle in, to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_safely)


def healthz(_request: Request) -> Response:
    """Answer as long as this process does: what it cannot reach is no reason to restart it."""
    return PlainTextResponse("ok\n", headers=NO_STORE)


class _Views:
    """The endpoints. Plain functions: they run on worker threads and may wait."""

    def __init__(self, asked: Asked, own_node: Callable[[], NodeSnapshot] | None) -> None:
        self._asked = asked
        self._own_node = own_node
        loader = jinja2.FileSystemLoader(HERE / "templates")
        environment = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._template = environment.get_template("status.html")

    def status(self, request: Request) -> Response:
        view, everything = self._asked.view(), "all" in request.query_params
        findings = self._asked.findings(_language(request))
        lines = [overview_cluster.headline(view)]
        tables = [overview_findings.table(findings, view.at, everything), *overview_cluster.tables(view)]
        if self._own_node is not None:
            snapshot = self._own_node()
            lines.append(overview.headline(snapshot))
            tables += overview.tables(snapshot)
        return self.page(lines, tables)

    def page(self, lines: list[str], tables: list[overview.Table], status: int = 200) -> Response:
        """Return a page of these lines and tables."""
        page = self._template.render(
            numbers=overview.NUMBERS, lines=lines, tables=tables, own=self._own_node is not None
        )
        return HTMLResponse(page, status, headers=NO_STORE)

    def view(self, _request: Request) -> Response:
        return json_answer(self._asked.view())

    def findings(self, request: Request) -> Response:
        lang = request.query_params.get("lang", "en")
        if lang not in LANGUAGES:
            return json_answer({"error": "ask /v1/findings, with lang=en or lang=zh if you like"}, 400)
        findings = self._asked.findings(lang)
        if findings is None:
            return json_answer({"error": "nobody has looked yet; ask again in a few seconds"}, 503)
        return json_answer(findings)

    def why(self, request: Request) -> Response:
        name = request.query_params.get("name")
        lang = request.query_params.get("lang", "en")
        if not name or lang not in LANGUAGES:
            return json_answer(
                {"error": "ask /v1/why?name=POD, with namespace=NS and lang=en or lang=zh if you like"}, 400
            )
        return json_answer(self._asked.why(name, request.query_params.get("namespace"), lang).as_dict())

    def snapshot(self, _request: Request) -> Response:
        if self._own_node is None:
            return json_answer({"error": "this process has no agent; ask the agents, or /v1/view"}, 404)
        return json_answer(self._own_node())


class _AlertPages:
    """Where the links in messages lead."""

    def __init__(self, asked: AlertsAsked, page: Callable[[list[str], list[overview.Table], int], Response]) -> None:
        self._asked = asked
        self._page = page

    def alerts(self, request: Request) -> Response:
        """Show what fires, of one group if it is named, and what was sent."""
        now, group = time.time(), request.query_params.get("group")
        alerts = [each for each in self._asked.alerts(_language(request)) if group is None or each.group == group]
        tables = [
            overview_alerts.alerts_table(alerts, now, everything=group is not None or "all" in request.query_params),
            overview_alerts.silences_table(self._asked.silences(), now),
            overview_alerts.deliveries_table(self._asked.deliveries(MESSAGES)),
        ]
        return self._page([], tables, 200)

    def alert(self, request: Request) -> Response:
        """Show all about one alert."""
        wanted = request.path_params["fingerprint"]
        found = next((each for each in self._asked.alerts(_language(request)) if each.fingerprint == wanted), None)
        if found is None:
            return self._page(["This alert is over, and was forgotten; see the history."], [], 404)
        return self._page([], [overview_alerts.alert_table(found, time.time())], 200)


def _language(request: Request) -> str:
    lang = request.query_params.get("lang", "en")
    return lang if lang in LANGUAGES else "en"
