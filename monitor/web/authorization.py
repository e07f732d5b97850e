"""Authorization of changes: for admins or, while no authentication is configured, for local processes.

A browser can reach the loopback address on behalf of any site: every page can post a form there, and with a host name
that resolves to 127.0.0.1 (DNS rebinding) it can read the response. Without a token a request therefore has to name
this machine, and has to be JSON, which no form can send.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Any

from starlette.requests import Request

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.base.net import is_loopback
from monitor.web.forms import content_type

# Headers that a proxy on this machine adds to forwarded requests.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
BROWSER_HEADERS = ("origin", "sec-fetch-site", "hx-request")
TOKEN_SETTING = "daemon.token"  # noqa: S105  # the name of a setting
LOCAL_PROCESS = Principal("local", Role.ADMIN, method=AuthMethod.MACHINE)
PRINCIPAL, CLOSED = "principal", "closed"  # request state set by AuthMiddleware


def check_access(request: Request, token: str | None, setting: str) -> None:
    """Authorize a change that needs the token of `setting`, if one is configured. Raise RequestRejectedError."""
    if token is not None and _has_token(request, token):
        return
    # An endpoint with a token of its own accepts nothing else.
    if token is not None and not (setting == TOKEN_SETTING and _is_authenticated(request)):
        raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, f"this needs the token of {setting} as a bearer token")
    check_role(request, Role.ADMIN, setting)


def check_role(request: Request, role: Role | str, setting: str = TOKEN_SETTING) -> Principal:
    """The principal of a request that needs a role. Raise RequestRejectedError."""
    state = _state(request)
    principal: Principal | None = state.get(PRINCIPAL)
    if principal is None or not principal.authenticated:
        if principal is not None and principal.has_role(role):
            return principal
        principal = check_local(request, setting)
    if not principal.has_role(role):
        message = f"{principal.name} has the role {principal.role}; this needs {role}"
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    state[PRINCIPAL] = principal
    return principal


def check_local(request: Request, setting: str) -> Principal:
    """Check that a request comes from a local process and not from a browser. Raise RequestRejectedError."""
    if _state(request).get(CLOSED):
        raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in, or send a token of daemon.access.tokens")
    if _is_proxied(request) or not is_loopback(peer_of(request)):
        message = f"allowed from this machine only; set {setting} to allow it from others"
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    if not is_loopback(_requested_host(request)):
        message = f"use http://127.0.0.1 as the host name; set {setting} to allow others"
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    if request.method not in ("GET", "HEAD") and any(name in request.headers for name in BROWSER_HEADERS):
        message = "a browser has to be signed in: gpuwarden login-link prints a link"
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    if request.method in ("POST", "PUT", "PATCH") and content_type(request) != "application/json":
        message = "send JSON, with Content-Type: application/json"
        raise RequestRejectedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
    return LOCAL_PROCESS


def is_local(request: Request) -> bool:
    """Whether a request was made on this machine, under a host name of this machine."""
    return not _is_proxied(request) and is_loopback(peer_of(request)) and is_loopback(_requested_host(request))


def peer_of(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client is not None else ""


def name_of(request: Request, given: str) -> str:
    """The name for the record: that of an authenticated principal, else the one given in the request."""
    principal = _state(request).get(PRINCIPAL)
    methods = (AuthMethod.TOKEN, AuthMethod.SESSION, AuthMethod.HEADER)
    return principal.name if isinstance(principal, Principal) and principal.method in methods else given


def bearer_token(request: Request) -> str | None:
    """The bearer token of a request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _state(request: Request) -> dict[str, Any]:
    state: dict[str, Any] = request.scope.setdefault("state", {})
    return state


def _is_authenticated(request: Request) -> bool:
    principal: Principal | None = _state(request).get(PRINCIPAL)
    return principal is not None and principal.authenticated


def _has_token(request: Request, token: str) -> bool:
    given = bearer_token(request)
    # Compared as bytes in constant time.
    return given is not None and hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _is_proxied(request: Request) -> bool:
    return any(name in request.headers for name in PROXY_HEADERS)


def _requested_host(request: Request) -> str:
    """The Host header without the port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
