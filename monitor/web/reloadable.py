"""An application that is replaced while the server keeps its socket and its connections."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MAX_WAIT_SECONDS = 20.0  # of a request, for the next application
DRAIN_SECONDS = 3.0  # for requests in progress, before their application is replaced
POLL_SECONDS = 0.02
HEALTH_PATH = "/healthz"


class ReloadableApp:
    """Passes requests on to the current application; while there is none, they wait."""

    def __init__(self) -> None:
        self._current: ASGIApp | None = None
        self._last: ASGIApp | None = None
        self._in_progress = 0  # changed by the server's thread only

    def serve(self, app: ASGIApp) -> None:
        """Use an application for all requests from now on."""
        self._current = self._last = app

    def pause(self) -> None:
        """Let new requests wait for the next application, and wait briefly for those in progress."""
        self._current = None
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._in_progress and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == HEALTH_PATH and self._last is not None:
            await self._last(scope, receive, send)
            return
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while (app := self._current) is None:
            if time.monotonic() >= deadline:
                headers = {"Retry-After": "5"}
                response = PlainTextResponse("reloading\n", HTTPStatus.SERVICE_UNAVAILABLE, headers)
                await response(scope, receive, send)
                return
            await asyncio.sleep(POLL_SECONDS)
        self._in_progress += 1
        try:
            await app(scope, receive, send)
        finally:
            self._in_progress -= 1
