"""Alerts over HTTP: alerts, their history, deliveries, silences, test messages, and Alertmanager webhook calls.

Reading needs the role viewer; `monitor.web.authorization` authorizes changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Role
from monitor.alert.silences import Silence
from monitor.alert.store import Delivery
from monitor.base.units import parse_duration
from monitor.facts.base import Fact
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent, ReceiverTestResult
from monitor.present.timeline import TimelineEntry
from monitor.queries.alerts import AcknowledgeRequest, SilenceRequest
from monitor.web.authorization import TOKEN_SETTING, check_access, check_role, name_of
from monitor.web.forms import read_body
from monitor.web.responses import decode_body, error_response, json_response, language_of, limit_of, respond

MAX_BODY_BYTES = 8 * 1024 * 1024  # a webhook call of an Alertmanager may contain thousands of alerts
DEFAULT_SINCE = "24h"
DEFAULT_ROWS = 500
MAX_ROWS = 10_000


class AlertsBackend(Protocol):
    """Queries about alerts, and the changes to them."""

    def alerts(self, lang: str, /) -> tuple[LocalizedAlert, ...]: ...

    def merged_into(self, fingerprint: str, /) -> str:
        """Fingerprint of the alert that continues one from before an upgrade; any other one as it is."""
        ...

    def past(self, fingerprint: str, lang: str, /) -> LocalizedAlert | None:
        """An alert that is no longer among all alerts; None if it is not on record."""
        ...

    def timeline(self, fingerprint: str, /) -> tuple[TimelineEntry, ...]: ...

    def acknowledge(self, fingerprint: str, by: str, comment: str, /) -> None:
        """Record who takes care of an alert. Raise ValueError."""
        ...

    def history(self, since: float, limit: int, lang: str, /) -> tuple[LocalizedAlertEvent, ...]: ...

    def events_about(
        self, labels: Mapping[str, str], since: float, limit: int, lang: str, /
    ) -> tuple[LocalizedAlertEvent, ...]:
        """Events of the alerts with these labels, newest first."""
        ...

    def deliveries(self, limit: int, /) -> tuple[Delivery, ...]: ...

    def silences(self) -> tuple[Silence, ...]: ...

    def silence(self, request: SilenceRequest, /) -> Silence:
        """Create a silence. Raise ValueError."""
        ...

    def unsilence(self, silence_id: str, /) -> bool: ...

    def test(self, receiver: str | None, rule: str | None, /) -> tuple[ReceiverTestResult, ...]:
        """Send a test message. Raise ValueError."""
        ...

    def call(self, body: bytes, /) -> int:
        """Handle an Alertmanager webhook call. Raise ValueError."""
        ...


@dataclass(frozen=True)
class ApiTokens:
    """Tokens for changes and for Alertmanager webhook calls; None if not configured."""

    daemon: str | None = field(default=None, repr=False)
    callback: str | None = field(default=None, repr=False)


class SendTestRequest(Fact, frozen=True, kw_only=True):
    """Receiver and rule of a test message; by default all receivers, and any rule."""

    receiver: str | None = None
    rule: str | None = None


def alert_routes(alerts: AlertsBackend, tokens: ApiTokens) -> list[Route]:
    """Routes of alerts, silences and deliveries."""
    routes = _AlertRoutes(alerts, tokens)
    return [
        Route("/v1/alerts", routes.alerts),
        Route("/v1/alerts/history", routes.history),
        Route("/v1/alerts/test", routes.test, methods=["POST"]),
        Route("/v1/alerts/acknowledge/{fingerprint}", routes.acknowledge, methods=["POST"]),
        Route("/v1/deliveries", routes.deliveries),
        Route("/v1/silences", routes.silences, methods=["GET"]),
        Route("/v1/silences", routes.silence, methods=["POST"]),
        Route("/v1/silences/{own}", routes.unsilence, methods=["DELETE"]),
        Route("/v1/alertmanager", routes.alertmanager, methods=["POST"]),
    ]


class _AlertRoutes:
    """Endpoints. Bodies are read on the event loop; the work is done on worker threads."""

    def __init__(self, alerts: AlertsBackend, tokens: ApiTokens) -> None:
        self._alerts = alerts
        self._tokens = tokens

    def alerts(self, request: Request) -> Response:
        return respond(lambda: self._alerts.alerts(language_of(request)))

    def history(self, request: Request) -> Response:
        def read() -> tuple[LocalizedAlertEvent, ...]:
            since = time.time() - parse_duration(request.query_params.get("since", DEFAULT_SINCE))
            return self._alerts.history(since, limit_of(request, DEFAULT_ROWS, MAX_ROWS), language_of(request))

        return respond(read)

    def deliveries(self, request: Request) -> Response:
        return respond(lambda: self._alerts.deliveries(limit_of(request, DEFAULT_ROWS, MAX_ROWS)))

    def silences(self, _request: Request) -> Response:
        return respond(self._alerts.silences)

    async def silence(self, request: Request) -> Response:
        def create(body: bytes) -> Silence:
            silence = decode_body(body, SilenceRequest)
            return self._alerts.silence(replace(silence, author=name_of(request, silence.author)))

        return await self._change(request, create, HTTPStatus.CREATED)

    def unsilence(self, request: Request) -> Response:
        try:
            check_access(request, self._tokens.daemon, TOKEN_SETTING)
        except RequestRejectedError as error:
            return error_response(error, error.status)
        silence_id = request.path_params["own"]
        if self._alerts.unsilence(silence_id):
            return json_response({"ended": silence_id})
        return error_response("there is no such active silence", HTTPStatus.NOT_FOUND)

    async def test(self, request: Request) -> Response:
        def send(body: bytes) -> tuple[ReceiverTestResult, ...]:
            content = decode_body(body or b"{}", SendTestRequest)
            return self._alerts.test(content.receiver, content.rule)

        return await self._change(request, send)

    async def acknowledge(self, request: Request) -> Response:
        principal = check_role(request, Role.USER)
        fingerprint = self._alerts.merged_into(request.path_params["fingerprint"])

        def acknowledge(body: bytes) -> dict[str, str]:
            content = decode_body(body or b"{}", AcknowledgeRequest)
            alert = next((alert for alert in self._alerts.alerts("en") if alert.fingerprint == fingerprint), None)
            if alert is not None and not principal.may_act_on(alert.labels.get("user")):
                message = f"{principal.name} may acknowledge alerts about their own workloads only"
                raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
            self._alerts.acknowledge(fingerprint, principal.name, content.comment)
            return {"acknowledged": fingerprint}

        body = await read_body(request, MAX_BODY_BYTES)
        return await run_in_threadpool(respond, lambda: acknowledge(body))

    async def alertmanager(self, request: Request) -> Response:
        token, setting = self._tokens.callback, "daemon.alerts.callback.token"
        if token is None and self._tokens.daemon is not None:
            token, setting = self._tokens.daemon, TOKEN_SETTING
        return await self._change(request, lambda body: {"messages": self._alerts.call(body)}, token=(token, setting))

    async def _change(
        self,
        request: Request,
        change: Callable[[bytes], object],
        status: HTTPStatus = HTTPStatus.OK,
        token: tuple[str | None, str] | None = None,
    ) -> Response:
        try:
            check_access(request, *(token or (self._tokens.daemon, TOKEN_SETTING)))
            body = await read_body(request, MAX_BODY_BYTES)
        except RequestRejectedError as error:
            return error_response(error, error.status)
        return await run_in_threadpool(respond, lambda: change(body), status)
