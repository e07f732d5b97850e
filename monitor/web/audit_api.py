"""The audit log over HTTP, and the middleware that writes it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.access.audit import AuditLog
from monitor.access.principal import Principal, Role
from monitor.web.authorization import PRINCIPAL, check_role, peer_of
from monitor.web.responses import error_response, json_response

DEFAULT_ROWS, MAX_ROWS = 100, 1000
UNSAFE_METHODS = ("POST", "PUT", "PATCH", "DELETE")
MAX_REQUEST_BYTES = 4096  # inspected for the entry
MAX_RESPONSE_BYTES = 256 * 1024

# Actions by method and path, a prefix if it ends with /; endpoints that are not listed write their own entries.
AUDITED_ACTIONS = {
    ("POST", "/v1/silences"): "silence",
    ("DELETE", "/v1/silences/"): "unsilence",
    ("POST", "/v1/alerts/test"): "test-message",
    ("POST", "/v1/alerts/acknowledge/"): "acknowledge",
    ("POST", "/v1/cleanup/run"): "cleanup-run",
    ("POST", "/v1/cleanup/release"): "release-gpu",
    ("POST", "/v1/cleanup/restore/"): "restore",
    ("POST", "/v1/cleanup/scan"): "scan",
    ("POST", "/v1/cleanup/scan/stop"): "scan-stop",
    ("POST", "/v1/login-link"): "login-link",
}


def audit_routes(audit: AuditLog) -> list[Route]:
    """Route of the audit log, for admins."""

    def entries(request: Request) -> Response:
        check_role(request, Role.ADMIN)
        try:
            limit = _number(request, "limit", MAX_ROWS) or DEFAULT_ROWS
            before = _number(request, "before", 1 << 62)
        except ValueError as error:
            return error_response(error, HTTPStatus.BAD_REQUEST)
        return json_response(audit.latest(limit, before))

    return [Route("/v1/audit", entries)]


class AuditMiddleware:
    """Writes an audit entry for each change made through the API, with its result."""

    def __init__(self, app: ASGIApp, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        action = _action(scope)
        if action is None:
            await self._app(scope, receive, send)
            return
        request_body, response_body, status = bytearray(), bytearray(), [0]

        async def recording_receive() -> Message:
            message = await receive()
            request_body.extend(message.get("body", b"")[: MAX_REQUEST_BYTES - len(request_body)])
            return message

        async def recording_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            response_body.extend(message.get("body", b"")[: MAX_RESPONSE_BYTES - len(response_body)])
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # Before the response is sent, so that the client finds the entry.
                await self._write(scope, action, bytes(request_body), status[0], bytes(response_body))
            await send(message)

        await self._app(scope, recording_receive, recording_send)

    async def _write(self, scope: Scope, action: str, request_body: bytes, status: int, response_body: bytes) -> None:
        principal: Principal = scope["state"][PRINCIPAL]
        if principal.authenticated:
            values = (action, _target(scope, request_body), *_result(status, response_body))
            await run_in_threadpool(self._audit.write, principal, peer_of(Request(scope)), *values)


def _action(scope: Scope) -> str | None:
    """The audited action of a request, if any."""
    if scope["type"] != "http" or scope["method"] not in UNSAFE_METHODS:
        return None
    method, path = scope["method"], scope["path"]
    exact = AUDITED_ACTIONS.get((method, path))
    if exact is not None:
        return exact
    prefixes = (key for key in AUDITED_ACTIONS if key[0] == method and key[1].endswith("/"))
    return next((AUDITED_ACTIONS[key] for key in prefixes if path.startswith(key[1])), None)


def _target(scope: Scope, body: bytes) -> str:
    """The target of a request: the variable part of its path, and the fields of its body."""
    path = scope["path"]
    prefix = next((start for _, start in AUDITED_ACTIONS if start.endswith("/") and path.startswith(start)), None)
    is_exact = (scope["method"], path) in AUDITED_ACTIONS
    parts = [path.removeprefix(prefix)] if prefix is not None and not is_exact else []
    try:
        content: Any = msgspec.json.decode(body) if body else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        content = {}
    if isinstance(content, dict):
        parts += [f"{name}={_short(value)}" for name, value in content.items() if value not in (None, "", [])]
    return " ".join(parts)


def _short(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class _ItemSummary(msgspec.Struct):
    state: str = ""
    message: str | None = None


class _RunSummary(msgspec.Struct):
    end: str | None = None


class _ResponseSummary(msgspec.Struct):
    error: str = ""
    run: _RunSummary | None = None
    items: tuple[_ItemSummary, ...] = ()


def _result(status: int, body: bytes) -> tuple[str, str]:
    """Result and detail of a request, from its response."""
    try:
        response = msgspec.json.decode(body, type=_ResponseSummary)
    except (msgspec.MsgspecError, UnicodeError):
        response = _ResponseSummary()
    if not HTTPStatus.OK <= status < HTTPStatus.BAD_REQUEST:
        refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        return "refused" if refused else "failed", response.error
    undone = next((item for item in response.items if item.state != "done"), None)
    if undone is not None:
        return "failed" if undone.state == "failed" else "refused", undone.message or undone.state
    return ("refused", "") if response.run is not None and response.run.end == "refused" else ("done", "")


def _number(request: Request, name: str, maximum: int) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not 0 < int(text) <= maximum:
        raise ValueError(f"{name} is a number from 1 to {maximum}")
    return int(text)
