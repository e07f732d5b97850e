"""Alerts by HTTP: what fires, what happened, what was sent, silences, test messages, and calls of an Alertmanager.

Everybody who reaches the page may read. Changes are for those whom `monitor.web.authorization` lets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, TypeVar

from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.access.errors import RequestRejectedError
from monitor.alert.silences import Silence
from monitor.alert.store import Delivery
from monitor.base.units import parse_duration
from monitor.facts.base import Fact
from monitor.present.alerts import AlertView, AlertEventView, ReceiverTestResult
from monitor.queries.alerts import SilenceRequest
from monitor.web.authorization import check_access, name_of
from monitor.web.forms import read_body
from monitor.web.responses import respond, decode_body, json_response, language_of, limit_of

MAX_BODY_BYTES = 8 * 1024 * 1024  # an Alertmanager that knows of many alerts tells of all of them at once
DAY = "24h"
DEFAULT_ROWS = 500
MAX_ROWS = 10_000

T = TypeVar("T")


class AlertsBackend(Protocol):
    """What can be asked of alerts, and changed about them."""

    def alerts(self, lang: str) -> tuple[AlertView, ...]: ...

    def history(self, since: float, limit: int, lang: str) -> tuple[AlertEventView, ...]: ...

    def deliveries(self, limit: int) -> tuple[Delivery, ...]: ...

    def silences(self) -> tuple[Silence, ...]: ...

    def silence(self, wanted: SilenceRequest) -> Silence:
        """Add a silence. Raise ValueError."""
        ...

    def unsilence(self, own: str) -> bool: ...

    def test(self, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
        """Send a test message. Raise ValueError."""
        ...

    def call(self, body: bytes) -> int:
        """Take in what an Alertmanager tells. Raise ValueError."""
        ...


@dataclass(frozen=True)
class ApiTokens:
    """Who may change something, and who may call as an Alertmanager; None: no token is configured."""

    daemon: str | None = field(default=None, repr=False)
    callback: str | None = field(default=None, repr=False)


class SendTestRequest(Fact, frozen=True, kw_only=True):
    """To whom a test message goes, and about what; None: to everybody, about anything."""

    receiver: str | None = None
    rule: str | None = None


def alert_routes(asked: AlertsBackend, tokens: ApiTokens) -> list[Route]:
    """Given whom to ask, return the routes."""
    views = _AlertRoutes(asked, tokens)
    return [
        Route("/v1/alerts", views.alerts),
        Route("/v1/alerts/history", views.history),
        Route("/v1/alerts/test", views.test, methods=["POST"]),
        Route("/v1/deliveries", views.deliveries),
        Route("/v1/silences", views.silences, methods=["GET"]),
        Route("/v1/silences", views.silence, methods=["POST"]),
        Route("/v1/silences/{own}", views.unsilence, methods=["DELETE"]),
        Route("/v1/alertmanager", views.alertmanager, methods=["POST"]),
    ]


class _AlertRoutes:
    """The endpoints. Those that read a body wait for it on the loop, and answer on worker threads."""

    def __init__(self, asked: AlertsBackend, tokens: ApiTokens) -> None:
        self._asked = asked
        self._tokens = tokens

    def alerts(self, request: Request) -> Response:
        return respond(lambda: self._asked.alerts(language_of(request)))

    def history(self, request: Request) -> Response:
        def read() -> tuple[AlertEventView, ...]:
            since = time.time() - parse_duration(request.query_params.get("since", DAY))
            return self._asked.history(since, limit_of(request, DEFAULT_ROWS, MAX_ROWS), language_of(request))

        return respond(read)

    def deliveries(self, request: Request) -> Response:
        return respond(lambda: self._asked.deliveries(limit_of(request, DEFAULT_ROWS, MAX_ROWS)))

    def silences(self, _request: Request) -> Response:
        return respond(self._asked.silences)

    async def silence(self, request: Request) -> Response:
        def add(body: bytes) -> Silence:
            wanted = decode_body(body, SilenceRequest)
            return self._asked.silence(replace(wanted, author=name_of(request, wanted.author)))

        return await self._change(request, add, HTTPStatus.CREATED)

    def unsilence(self, request: Request) -> Response:
        try:
            check_access(request, self._tokens.daemon, "daemon.token")
        except RequestRejectedError as refused:
            return json_response({"error": str(refused)}, refused.status)
        own = request.path_params["own"]
        if self._asked.unsilence(own):
            return json_response({"ended": own})
        return json_response({"error": "there is no such silence in force here"}, HTTPStatus.NOT_FOUND)

    async def test(self, request: Request) -> Response:
        def send(body: bytes) -> tuple[ReceiverTestResult, ...]:
            wanted = decode_body(body or b"{}", SendTestRequest)
            return self._asked.test(wanted.receiver, wanted.rule)

        return await self._change(request, send)

    async def alertmanager(self, request: Request) -> Response:
        token, setting = self._tokens.callback, "daemon.alerts.callback.token"
        if token is None:
            token, setting = self._tokens.daemon, "daemon.token"
        return await self._change(request, lambda body: {"messages": self._asked.call(body)}, token=(token, setting))

    async def _change(
        self,
        request: Request,
        change: Callable[[bytes], object],
        status: HTTPStatus = HTTPStatus.OK,
        token: tuple[str | None, str] | None = None,
    ) -> Response:
        try:
            check_access(request, *(token or (self._tokens.daemon, "daemon.token")))
            body = await read_body(request, MAX_BODY_BYTES)
        except RequestRejectedError as refused:
            return json_response({"error": str(refused)}, refused.status)
        return await run_in_threadpool(respond, lambda: change(body), status)
