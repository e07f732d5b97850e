"""The web application: pages, JSON API, metrics and health check."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.facts import NodeSnapshot
from monitor.facts.agents import AgentFact
from monitor.i18n import LANGUAGES
from monitor.leader.elector import SingleReplica
from monitor.queries.fits import TOLERATE, parse_request
from monitor.queries.search import search_why
from monitor.report.model import ReportSource
from monitor.web.alerts_api import AlertsBackend, ApiTokens, alert_routes
from monitor.web.cleanup_api import CleanupBackend, cleanup_routes
from monitor.web.context import ClusterBackend, PageData, PageDeps
from monitor.web.history_api import HistoryBackend, history_routes
from monitor.web.http_errors import http_error
from monitor.web.incident_api import incident_routes
from monitor.web.mcp_api import mcp_routes
from monitor.web.metrics_api import metrics_routes
from monitor.web.openapi import openapi_routes
from monitor.web.owner_page import OwnerAnswersBackend, owner_routes
from monitor.web.pages.routes import page_routes
from monitor.web.report_api import report_routes
from monitor.web.responses import NO_STORE, error_response, json_response
from monitor.web.security import HANDLERS, HEADERS, Security, open_security
from monitor.web.tools import query_tools

STATIC_FILES = Path(__file__).parent / "static"
MIN_COMPRESSED_BYTES = 2048


def create_app(
    cluster: ClusterBackend,
    own_node: Callable[[], NodeSnapshot] | None = None,
    alerts: AlertsBackend | None = None,
    tokens: ApiTokens | None = None,
    cleanup: CleanupBackend | None = None,
    reports: ReportSource | None = None,
    security: Security | None = None,
    page_data: PageData | None = None,
    metrics: Callable[[], bytes] | None = None,
    history: HistoryBackend | None = None,
    answers: OwnerAnswersBackend | None = None,
) -> ASGIApp:
    """Create the application from its backends; only `cluster` is required.

    `own_node` returns the snapshot of an agent in this process; `metrics` renders the metrics for Prometheus.
    """
    cluster_api = _ClusterRoutes(cluster, own_node)
    data = page_data or PageData(agents=lambda: _own_agent(own_node))
    token = tokens.daemon if tokens is not None else None
    routes = [
        Route("/healthz", healthz),
        Route("/v1/view", cluster_api.view),
        Route("/v1/findings", cluster_api.findings),
        Route("/v1/why", cluster_api.why),
        Route("/v1/fits", cluster_api.fits),
        Route("/v1/snapshot", cluster_api.snapshot),
        Route(
            "/v1/lease", lambda _: json_response(data.lease() if data.lease is not None else SingleReplica().state())
        ),
        Mount("/static", StaticFiles(directory=STATIC_FILES)),
    ]
    security = security or open_security(token)
    audit = security.audit.latest if security.audit is not None else None
    if alerts is not None:
        routes += alert_routes(alerts, tokens or ApiTokens()) + incident_routes(alerts, audit, data.timezone)
    if cleanup is not None:
        routes += cleanup_routes(cleanup, token)
    if answers is not None:
        routes += owner_routes(answers, security.audit, data.timezone, security.authenticator.lockout_peer)
    if reports is not None:
        routes += report_routes(reports, data.timezone)
    if history is not None:
        routes += history_routes(history)
    if metrics is not None:
        routes += metrics_routes(metrics)
    routes += mcp_routes(query_tools(cluster, alerts, reports, data.timezone))
    routes += security.routes()
    routes += openapi_routes(routes)
    deps = PageDeps(cluster, data, alerts, cleanup, reports, audit)
    routes += page_routes(deps)
    handlers = HANDLERS | {HTTPException: partial(http_error, deps)}
    app = SecurityHeadersMiddleware(security.wrap(Starlette(routes=routes, exception_handlers=handlers)))
    # A higher level costs more CPU and saves little.
    # Of a scrape of 1,000 nodes, level 4 takes twice the CPU and saves 12 %.
    return GZipMiddleware(app, minimum_size=MIN_COMPRESSED_BYTES, compresslevel=1)


class SecurityHeadersMiddleware:
    """Adds the headers that restrict what a browser runs and embeds to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


async def healthz(_request: Request) -> Response:
    """Liveness only: a restart does not help against unreachable dependencies. It needs no worker thread."""
    return PlainTextResponse("ok\n", headers=NO_STORE)


class _ClusterRoutes:
    """Endpoints. Plain functions: they run on worker threads and may block."""

    def __init__(self, cluster: ClusterBackend, own_node: Callable[[], NodeSnapshot] | None) -> None:
        self._cluster = cluster
        self._own_node = own_node

    def view(self, _request: Request) -> Response:
        return json_response(self._cluster.view())

    def findings(self, request: Request) -> Response:
        lang = request.query_params.get("lang", "en")
        if lang not in LANGUAGES:
            return error_response("use /v1/findings, optionally with lang=en or lang=zh", 400)
        findings = self._cluster.findings(lang)
        if findings is None:
            return error_response("the rules have not been evaluated yet; try again in a few seconds", 503)
        return json_response(findings)

    def why(self, request: Request) -> Response:
        name = request.query_params.get("name")
        lang = request.query_params.get("lang", "en")
        if not name or lang not in LANGUAGES:
            return error_response(
                "use /v1/why?name=NAME (of a pod, job or user), optionally with namespace=NS and lang=en or lang=zh",
                400,
            )
        return json_response(search_why(self._cluster, name, request.query_params.get("namespace"), lang))

    def fits(self, request: Request) -> Response:
        asked = request.query_params
        try:
            wanted = parse_request(asked, asked.getlist(TOLERATE))
        except ValueError as error:
            return error_response(error, 400)
        lang = asked.get("lang", "en")
        if lang not in LANGUAGES:
            return error_response("lang is en or zh", 400)
        return json_response(self._cluster.fits(wanted, lang))

    def snapshot(self, _request: Request) -> Response:
        if self._own_node is None:
            return error_response("this process has no agent; use an agent's API, or /v1/view", 404)
        return json_response(self._own_node())


def _own_agent(own_node: Callable[[], NodeSnapshot] | None) -> tuple[AgentFact, ...]:
    """The agent in this process."""
    if own_node is None:
        return ()
    snapshot = own_node()
    return (AgentFact(target="", node=snapshot.node, snapshot=snapshot, received_at=snapshot.at),)
