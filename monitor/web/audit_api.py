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
from monitor.web.authorization import PERSON, check_role, peer_of
from monitor.web.responses import json_response

DEFAULT_ROWS, MAX_ROWS = 100, 1000
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
SEEN = 4096  # bytes of what is asked that are looked at
HEARD = 256 * 1024  # and of the answer

# What is asked for, by method and the beginning of the path; what is not here writes its own record.
AUDITED_ACTIONS = {
    ("POST", "/v1/silences"): "silence",
    ("DELETE", "/v1/silences/"): "unsilence",
    ("POST", "/v1/alerts/test"): "test-message",
    ("POST", "/v1/cleanup/run"): "cleanup-run",
    ("POST", "/v1/cleanup/release"): "release-gpu",
    ("POST", "/v1/cleanup/restore/"): "restore",
    ("POST", "/v1/cleanup/scan"): "scan",
    ("POST", "/v1/cleanup/scan/stop"): "scan-stop",
    ("POST", "/v1/login-link"): "login-link",
}


def audit_routes(audit: AuditLog) -> list[Route]:
    """Given the record, return the routes. It is for admins."""

    def deeds(request: Request) -> Response:
        check_role(request, Role.ADMIN)
        try:
            limit = _number(request, "limit", MAX_ROWS) or DEFAULT_ROWS
            before = _number(request, "before", 1 << 62)
        except ValueError as error:
            return json_response({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        return json_response(audit.latest(limit, before))

    return [Route("/v1/audit", deeds)]


class AuditMiddleware:
    """Writes down each change that somebody asks the API for, and what was answered."""

    def __init__(self, app: ASGIApp, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        what = _deed(scope)
        if what is None:
            await self._app(scope, receive, send)
            return
        asked, answered, status = bytearray(), bytearray(), [0]

        async def hear() -> Message:
            message = await receive()
            asked.extend(message.get("body", b"")[: SEEN - len(asked)])
            return message

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            answered.extend(message.get("body", b"")[: HEARD - len(answered)])
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # Written down before it is answered: whoever has the answer finds it in the record.
                await self._write(scope, what, bytes(asked), status[0], bytes(answered))
            await send(message)

        await self._app(scope, hear, tell)

    async def _write(self, scope: Scope, what: str, asked: bytes, status: int, answered: bytes) -> None:
        person: Principal = scope["state"][PERSON]
        if person.known:
            values = (what, _about(scope, asked), *_result(status, answered))
            await run_in_threadpool(self._audit.write, person, peer_of(Request(scope)), *values)


def _deed(scope: Scope) -> str | None:
    """Return the word for what a request asks for; None if nothing of it is written down here."""
    if scope["type"] != "http" or scope["method"] not in UNSAFE:
        return None
    method, path = scope["method"], scope["path"]
    exact = AUDITED_ACTIONS.get((method, path))
    if exact is not None:
        return exact
    longer = ((verb, start) for verb, start in AUDITED_ACTIONS if verb == method and start.endswith("/"))
    return next((AUDITED_ACTIONS[key] for key in longer if path.startswith(key[1])), None)


def _about(scope: Scope, body: bytes) -> str:
    """Return what a request is about: what its path ends with, and what its body says."""
    path = scope["path"]
    known = next((start for _, start in AUDITED_ACTIONS if start.endswith("/") and path.startswith(start)), None)
    parts = [path.removeprefix(known)] if known is not None and (scope["method"], path) not in AUDITED_ACTIONS else []
    try:
        said: Any = msgspec.json.decode(body) if body else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        said = {}
    if isinstance(said, dict):
        parts += [f"{name}={_short(value)}" for name, value in said.items() if value not in (None, "", [])]
    return " ".join(parts)


def _short(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class _Item(msgspec.Struct):
    state: str = ""
    message: str | None = None


class _Run(msgspec.Struct):
    end: str | None = None


class _Said(msgspec.Struct):
    error: str = ""
    run: _Run | None = None
    items: tuple[_Item, ...] = ()


def _result(status: int, body: bytes) -> tuple[str, str]:
    """Return what came of a request, as a word, and what was said about it."""
    try:
        said = msgspec.json.decode(body, type=_Said)
    except (msgspec.MsgspecError, UnicodeError):
        said = _Said()
    if not HTTPStatus.OK <= status < HTTPStatus.BAD_REQUEST:
        refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        return "refused" if refused else "failed", said.error
    undone = next((item for item in said.items if item.state != "done"), None)
    if undone is not None:
        return "failed" if undone.state == "failed" else "refused", undone.message or undone.state
    return ("refused", "") if said.run is not None and said.run.end == "refused" else ("done", "")


def _number(request: Request, name: str, most: int) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not 0 < int(text) <= most:
        raise ValueError(f"{name} is a number from 1 to {most}")
    return int(text)
