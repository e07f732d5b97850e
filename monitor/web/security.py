"""Authentication, audit, login and actions, wrapped around the application."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from monitor.access.audit import AuditLog
from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Role
from monitor.access.settings import AccessSettings, AccessToken
from monitor.base.sqlite import DatabaseError, is_locked
from monitor.base.state_problems import StateProblem
from monitor.i18n import say
from monitor.leader.elector import NotLeaderError
from monitor.web.actions_api import ActionsBackend, action_routes
from monitor.web.audit_api import AuditMiddleware, audit_routes
from monitor.web.authenticator import Authenticator
from monitor.web.context import language_of
from monitor.web.login import login_routes
from monitor.web.middleware import CALLBACK, AuthMiddleware, rejection
from monitor.web.responses import error_response

LOCK_RETRY_SECONDS = 5.0
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
    """Authentication, with the optional audit log and actions."""

    authenticator: Authenticator
    audit: AuditLog | None = None
    actions: ActionsBackend | None = None

    def routes(self) -> list[Route]:
        """Routes of login, audit log and actions."""
        routes = login_routes(self.authenticator, self.audit)
        routes += audit_routes(self.audit) if self.audit is not None else []
        return routes + (action_routes(self.actions) if self.actions is not None else [])

    @property
    def state_problem(self) -> StateProblem | None:
        """Why the audit log is not written; None if it is."""
        return self.audit.problem if self.audit is not None else None

    def close(self) -> None:
        if self.audit is not None:
            self.audit.close()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """The application behind the middleware."""
        audited = AuditMiddleware(app, self.audit) if self.audit is not None else app
        return AuthMiddleware(audited, self.authenticator)


def open_security(token: str | None) -> Security:
    """Without accounts: local clients may read, and the token, if one is set, allows changes."""
    tokens = (AccessToken("daemon.token", Role.ADMIN, token),) if token is not None else ()
    return Security(Authenticator(AccessSettings(tokens=tokens)))


def _rejected(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestRejectedError):
        raise error
    return rejection(request, error)


def _not_leading(request: Request, error: Exception) -> Response:
    """Response of a replica that is not the leader. An Alertmanager retries on a new connection."""
    if not isinstance(error, NotLeaderError):
        raise error
    is_callback = request.url.path == CALLBACK
    status = HTTPStatus.SERVICE_UNAVAILABLE if is_callback else HTTPStatus.CONFLICT
    response = error_response(error.said(language_of(request)), status)
    if is_callback:
        response.headers.update({"Retry-After": "1", "Connection": "close"})
    return response


def _database_locked(request: Request, error: Exception) -> Response:
    """Response while another process locks the database; other database errors are not expected."""
    if not isinstance(error, DatabaseError) or not is_locked(error):
        raise error
    message = say(language_of(request), "access.database-locked", {})
    rejected = RequestRejectedError(HTTPStatus.SERVICE_UNAVAILABLE, message, LOCK_RETRY_SECONDS)
    return rejection(request, rejected)


HANDLERS: dict[object, ExceptionHandler] = {
    RequestRejectedError: _rejected,
    NotLeaderError: _not_leading,
    DatabaseError: _database_locked,
}
