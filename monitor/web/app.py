"""The web application: a status page of this machine, its snapshot as JSON, and a sign of life."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jinja2
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor import overview
from monitor.facts import NodeSnapshot

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "X-Content-Type-Options": "nosniff",
}
# What is shown is true now and for nobody's cache.
NO_STORE = {"Cache-Control": "no-store"}


class NoSnapshotError(Exception):
    """There is no snapshot right now; the message says why, in a sentence for the page."""


def create_app(read: Callable[[], NodeSnapshot]) -> ASGIApp:
    """Given how to read this machine, which may raise NoSnapshotError, return the web application."""
    views = _Views(read)
    routes = [
        Route("/", views.status),
        Route("/healthz", healthz),
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
    """The endpoints that show a snapshot. Plain functions: they run on worker threads and may wait."""

    def __init__(self, read: Callable[[], NodeSnapshot]) -> None:
        self._read = read
        loader = jinja2.FileSystemLoader(HERE / "templates")
        environment = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._template = environment.get_template("status.html")

    def status(self, _request: Request) -> Response:
        try:
            snapshot = self._read()
        except NoSnapshotError as error:
            return self._page(503, node="this machine", headline=str(error), tables=())
        shown = {"headline": overview.headline(snapshot), "tables": overview.tables(snapshot)}
        return self._page(200, node=snapshot.node, **shown)

    def snapshot(self, _request: Request) -> Response:
        try:
            status, content = 200, msgspec.json.encode(self._read())
        except NoSnapshotError as error:
            status, content = 503, msgspec.json.encode({"error": str(error)})
        return Response(content, status, NO_STORE, media_type="application/json")

    def _page(self, status: int, **shown: object) -> Response:
        return HTMLResponse(self._template.render(numbers=overview.NUMBERS, **shown), status, NO_STORE)
