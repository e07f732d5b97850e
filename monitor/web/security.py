"""Everything about who may do what, put around the application: the gate, the record, signing in, acting."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from monitor.access.audit import AuditLog
from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Role
from monitor.access.settings import AccessSettings, AccessToken
from monitor.leader.elector import NotLeadingError
from monitor.web.actions_api import ActionsBackend, action_routes
from monitor.web.audit_api import AuditMiddleware, audit_routes
from monitor.web.authenticator import Authenticator
from monitor.web.context import language_of
from monitor.web.login import login_routes
from monitor.web.middleware import API, CALLBACK, AuthMiddleware, refusal
from monitor.web.responses import json_response

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
class Security:
    """Who knows everybody, who writes down what they do, and who does it. Without a record nothing is written."""

    authenticator: Authenticator
    audit: AuditLog | None = None
    acts: ActionsBackend | None = None

    def routes(self) -> list[Route]:
        """Return the routes to sign in, to act, and to the record of that."""
        found = login_routes(self.authenticator, self.audit)
        found += audit_routes(self.audit) if self.audit is not None else []
        return found + (action_routes(self.acts) if self.acts is not None else [])

    def close(self) -> None:
        """Close the record."""
        if self.audit is not None:
            self.audit.close()

    def around(self, app: ASGIApp) -> ASGIApp:
        """Given an application, return it with everything that comes before it."""
        return AuthMiddleware(AuditMiddleware(app, self.audit) if self.audit is not None else app, self.authenticator)


def open_security(token: str | None) -> Security:
    """Return a guard that lets this machine look and, unless there is a token, act."""
    tokens = (AccessToken("daemon.token", Role.ADMIN, token),) if token is not None else ()
    return Security(Authenticator(AccessSettings(tokens=tokens)))


def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestRejectedError):
        raise error
    return refusal(request, error)


def _elsewhere(request: Request, error: Exception) -> Response:
    """Answer that another replica acts. An Alertmanager tries again, by another connection that may lead there."""
    if not isinstance(error, NotLeadingError):
        raise error
    called = request.url.path == CALLBACK
    said = {"error": error.said(language_of(request))}
    answer = json_response(said, HTTPStatus.SERVICE_UNAVAILABLE if called else HTTPStatus.CONFLICT)
    if called:
        answer.headers.update({"Retry-After": "1", "Connection": "close"})
    return answer


def _not_found(request: Request, error: Exception) -> Response:
    """Answer what is not there, or not in this way: to programs in JSON, as everything else."""
    if not isinstance(error, HTTPException):
        raise error
    if request.url.path.startswith(API):
        answer = json_response({"error": error.detail}, error.status_code)
        answer.headers.update(error.headers or {})
        return answer
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


HANDLERS: dict[object, ExceptionHandler] = {
    RequestRejectedError: _refused,
    HTTPException: _not_found,
    NotLeadingError: _elsewhere,
}
