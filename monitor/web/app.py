"""The web application: pages of the cluster and of alerts, both as JSON too, and a sign of life."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.facts import NodeSnapshot
from monitor.facts.agents import AgentFact
from monitor.i18n import LANGUAGES
from monitor.leader.elector import Alone
from monitor.report.model import ReportAsked
from monitor.web.alerts_api import AlertsBackend, ApiTokens, alert_routes
from monitor.web.cleanup_api import CleanupBackend, cleanup_routes
from monitor.web.context import ClusterBackend, PageData, PageDeps
from monitor.web.metrics_api import metrics_routes
from monitor.web.openapi import openapi_routes
from monitor.web.pages.routes import page_routes
from monitor.web.report_api import report_routes
from monitor.web.responses import NO_STORE, json_response
from monitor.web.security import HANDLERS, HEADERS, Security, open_security

HERE = Path(__file__).parent
LITTLE, QUICK = 2048, 4  # bytes below which packing is not worth it; how hard it is tried


def create_app(
    asked: ClusterBackend,
    own_node: Callable[[], NodeSnapshot] | None = None,
    alerts: AlertsBackend | None = None,
    tokens: ApiTokens | None = None,
    cleanup: CleanupBackend | None = None,
    reports: ReportAsked | None = None,
    guard: Security | None = None,
    parts: PageData | None = None,
    metrics: Callable[[], bytes] | None = None,
) -> ASGIApp:
    """Given whom to ask about the cluster, about alerts and about cleanup, return the application: API and pages.

    `own_node` gives this machine's snapshot if its agent is here; `tokens` and `guard` say who may do what; `metrics`
    renders what Prometheus is told.
    """
    views = _ClusterRoutes(asked, own_node)
    parts = parts or PageData(agents=lambda: _own_agent(own_node))
    routes = [
        Route("/healthz", healthz),
        Route("/v1/view", views.view),
        Route("/v1/findings", views.findings),
        Route("/v1/why", views.why),
        Route("/v1/snapshot", views.snapshot),
        Route("/v1/lease", lambda _: json_response(parts.lease() if parts.lease is not None else Alone().state())),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    if alerts is not None:
        routes += alert_routes(alerts, tokens or ApiTokens())
    if cleanup is not None:
        routes += cleanup_routes(cleanup, tokens.daemon if tokens is not None else None)
    if reports is not None:
        routes += report_routes(reports)
    if metrics is not None:
        routes += metrics_routes(metrics)
    guard = guard or open_security(tokens.daemon if tokens is not None else None)
    routes += guard.routes()
    routes += openapi_routes(routes)
    audit = guard.audit.latest if guard.audit is not None else None
    routes += page_routes(PageDeps(asked, parts, alerts, cleanup, reports, audit))
    app = SecurityHeadersMiddleware(guard.around(Starlette(routes=routes, exception_handlers=HANDLERS)))
    return GZipMiddleware(app, minimum_size=LITTLE, compresslevel=QUICK)


class SecurityHeadersMiddleware:
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


class _ClusterRoutes:
    """The endpoints. Plain functions: they run on worker threads and may wait."""

    def __init__(self, asked: ClusterBackend, own_node: Callable[[], NodeSnapshot] | None) -> None:
        self._asked = asked
        self._own_node = own_node

    def view(self, _request: Request) -> Response:
        return json_response(self._asked.view())

    def findings(self, request: Request) -> Response:
        lang = request.query_params.get("lang", "en")
        if lang not in LANGUAGES:
            return json_response({"error": "ask /v1/findings, with lang=en or lang=zh if you like"}, 400)
        findings = self._asked.findings(lang)
        if findings is None:
            return json_response({"error": "nobody has looked yet; ask again in a few seconds"}, 503)
        return json_response(findings)

    def why(self, request: Request) -> Response:
        name = request.query_params.get("name")
        lang = request.query_params.get("lang", "en")
        if not name or lang not in LANGUAGES:
            return json_response(
                {"error": "ask /v1/why?name=POD, with namespace=NS and lang=en or lang=zh if you like"}, 400
            )
        return json_response(self._asked.why(name, request.query_params.get("namespace"), lang).as_dict())

    def snapshot(self, _request: Request) -> Response:
        if self._own_node is None:
            return json_response({"error": "this process has no agent; ask the agents, or /v1/view"}, 404)
        return json_response(self._own_node())


def _own_agent(own_node: Callable[[], NodeSnapshot] | None) -> tuple[AgentFact, ...]:
    """Return the agent in this process, as pages know agents."""
    if own_node is None:
        return ()
    snapshot = own_node()
    return (AgentFact(target="", node=snapshot.node, snapshot=snapshot, received_at=snapshot.at),)
