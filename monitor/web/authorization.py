"""Authorization: changes need a principal with a role, and reading without one is limited to this machine.

The loopback address proves nothing: every user of the machine can connect to it, and a browser does so on behalf of any
site. With a host name that resolves to 127.0.0.1 (DNS rebinding) a site can also read the response. Reading without
authentication therefore requires a host name of this machine, and changes always require authentication.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Any

from starlette.requests import Request

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.base.net import is_loopback

# Headers that a proxy on this machine adds to forwarded requests.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
TOKEN_SETTING = "daemon.token"  # noqa: S105  # the name of a setting
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
    principal: Principal | None = _state(request).get(PRINCIPAL)
    if principal is not None and principal.has_role(role):
        return principal
    if principal is None or not principal.authenticated:
        message = f"sign in with a link of gpuwarden login-link, or set {setting} and send that token as a bearer token"
        raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, message)
    message = f"{principal.name} has the role {principal.role}; this needs {role}"
    raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)


def no_access_error(request: Request) -> RequestRejectedError:
    """Why a request without credentials may not even read."""
    if _state(request).get(CLOSED):
        return RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in, or send a token of daemon.access.tokens")
    if _is_proxied(request) or not is_loopback(peer_of(request)):
        message = "allowed from this machine only; set daemon.access to allow it from others"
        return RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    if not is_loopback(_requested_host(request)):
        message = "use http://127.0.0.1 as the host name; set daemon.access to allow others"
        return RequestRejectedError(HTTPStatus.FORBIDDEN, message)
    return RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in first")


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
