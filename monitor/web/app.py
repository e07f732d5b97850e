"""The web application: a status page, the view and its explanations as JSON, and a sign of life."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import jinja2
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor import overview, overview_cluster, overview_findings
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView
from monitor.overview_findings import SaidFinding
from monitor.questions import Why
from monitor.words import LANGUAGES

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "X-Content-Type-Options": "nosniff",
}
# What is shown is true now and for nobody's cache.
NO_STORE = {"Cache-Control": "no-store"}


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


def create_app(asked: Asked, own_node: Callable[[], NodeSnapshot] | None = None) -> ASGIApp:
    """Given whom to ask about the cluster, and this machine's snapshot if its agent is here, return the application."""
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
        view, lang = self._asked.view(), request.query_params.get("lang", "en")
        everything = "all" in request.query_params
        findings = self._asked.findings(lang if lang in LANGUAGES else "en")
        lines = [overview_cluster.headline(view)]
        tables = [overview_findings.table(findings, view.at, everything), *overview_cluster.tables(view)]
        if self._own_node is not None:
            snapshot = self._own_node()
            lines.append(overview.headline(snapshot))
            tables += overview.tables(snapshot)
        page = self._template.render(
            numbers=overview.NUMBERS, lines=lines, tables=tables, own=self._own_node is not None
        )
        return HTMLResponse(page, headers=NO_STORE)

    def view(self, _request: Request) -> Response:
        return _json(self._asked.view())

    def findings(self, request: Request) -> Response:
        lang = request.query_params.get("lang", "en")
        if lang not in LANGUAGES:
            return _json({"error": "ask /v1/findings, with lang=en or lang=zh if you like"}, 400)
        findings = self._asked.findings(lang)
        if findings is None:
            return _json({"error": "nobody has looked yet; ask again in a few seconds"}, 503)
        return _json(findings)

    def why(self, request: Request) -> Response:
        name = request.query_params.get("name")
        lang = request.query_params.get("lang", "en")
        if not name or lang not in LANGUAGES:
            return _json({"error": "ask /v1/why?name=POD, with namespace=NS and lang=en or lang=zh if you like"}, 400)
        return _json(self._asked.why(name, request.query_params.get("namespace"), lang).as_dict())

    def snapshot(self, _request: Request) -> Response:
        if self._own_node is None:
            return _json({"error": "this process has no agent; ask the agents, or /v1/view"}, 404)
        return _json(self._own_node())


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, NO_STORE, media_type="application/json")
