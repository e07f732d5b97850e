"""Everything about who may do what, put around the application: the gate, the record, signing in, acting."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from monitor.access.audit import Audit
from monitor.access.errors import RefusedError
from monitor.access.principal import Role
from monitor.access.settings import AccessSettings, AccessToken
from monitor.leader.elector import NotLeaderError
from monitor.web.actions_api import ActsAsked, action_routes
from monitor.web.audit_api import Audited, audit_routes
from monitor.web.authenticator import Doorkeeper
from monitor.web.context import language_of
from monitor.web.login import login_routes
from monitor.web.middleware import API, CALLBACK, Gate, refusal
from monitor.web.responses import json_answer

# What keeps a browser from running, showing or telling what it should not.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Guard:
    """Who knows everybody, who writes down what they do, and who does it. Without a record nothing is written."""

    doorkeeper: Doorkeeper
    audit: Audit | None = None
    acts: ActsAsked | None = None

    def routes(self) -> list[Route]:
        """Return the routes to sign in, to act, and to the record of that."""
        found = login_routes(self.doorkeeper, self.audit)
        found += audit_routes(self.audit) if self.audit is not None else []
        return found + (action_routes(self.acts) if self.acts is not None else [])

    def close(self) -> None:
        """Close the record."""
        if self.audit is not None:
            self.audit.close()

    def around(self, app: ASGIApp) -> ASGIApp:
        """Given an application, return it with everything that comes before it."""
        return Gate(Audited(app, self.audit) if self.audit is not None else app, self.doorkeeper)


def open_guard(token: str | None) -> Guard:
    """Return a guard that lets this machine look and, unless there is a token, act."""
    tokens = (AccessToken("daemon.token", Role.ADMIN, token),) if token is not None else ()
    return Guard(Doorkeeper(AccessSettings(tokens=tokens)))


def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, RefusedError):
        raise error
    return refusal(request, error)


def _elsewhere(request: Request, error: Exception) -> Response:
    """Answer that another replica acts. An Alertmanager tries again, by another connection that may lead there."""
    if not isinstance(error, NotLeaderError):
        raise error
    called = request.url.path == CALLBACK
    said = {"error": error.said(language_of(request))}
    answer = json_answer(said, HTTPStatus.SERVICE_UNAVAILABLE if called else HTTPStatus.CONFLICT)
    if called:
        answer.headers.update({"Retry-After": "1", "Connection": "close"})
    return answer


def _not_found(request: Request, error: Exception) -> Response:
    """Answer what is not there, or not in this way: to programs in JSON, as everything else."""
    if not isinstance(error, HTTPException):
        raise error
    if request.url.path.startswith(API):
        answer = json_answer({"error": error.detail}, error.status_code)
        answer.headers.update(error.headers or {})
        return answer
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


HANDLERS: dict[object, ExceptionHandler] = {
    RefusedError: _refused,
    HTTPException: _not_found,
    NotLeaderError: _elsewhere,
}
