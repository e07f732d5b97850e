"""Who may change something: an admin or, while nobody has to show who they are, whoever sits at this machine.

A browser is a way from the whole world to the loopback address: a page anywhere can post a form there, and a name that
is made to point at 127.0.0.1 makes its answers readable. So without a token the request has to name this machine, and
has to be JSON, which no form can send.
"""

from __future__ import annotations

import functools
import hmac
import inspect
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.base.net import is_loopback

# What a proxy on this machine adds to what others ask.
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
BROWSER = ("origin", "sec-fetch-site", "hx-request")  # what only a browser adds to what it sends
SETTING = "daemon.token"
MACHINE = Principal("local", Role.ADMIN, how=AuthMethod.MACHINE)
PERSON, CLOSED = "person", "closed"  # what the gate writes down about a request

Endpoint = Callable[..., Response] | Callable[..., Awaitable[Response]]


def check_access(request: Request, token: str | None, setting: str) -> None:
    """Given a request to change something and the token of `setting`, if there is one. Raise RefusedError."""
    if token is not None and _knows(request, token):
        return
    if token is not None and not (setting == SETTING and _known(request)):  # what has its own token is for that alone
        raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, f"this needs the token of {setting} as a bearer token")
    check_role(request, Role.ADMIN, setting)


def check_role(request: Request, role: Role | str, setting: str = SETTING) -> Principal:
    """Given a request for which a role is needed, return who makes it. Raise RefusedError."""
    state = _state(request)
    person: Principal | None = state.get(PERSON)
    if person is None or not person.known:
        if person is not None and person.may(role):
            return person
        person = at_this_machine(request, setting)
    if not person.may(role):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, f"{person.name} has the role {person.role}; this needs {role}")
    state[PERSON] = person
    return person


def needs(role: Role | str) -> Callable[[Endpoint], Endpoint]:
    """Return what makes an endpoint one for this role and those above it."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        if inspect.iscoroutinefunction(endpoint):

            @functools.wraps(endpoint)
            async def later(*arguments: Any) -> Any:
                check_role(arguments[-1], role)
                return await endpoint(*arguments)

            return later

        @functools.wraps(endpoint)
        def now(*arguments: Any) -> Any:
            check_role(arguments[-1], role)
            return endpoint(*arguments)

        return now

    return guarded


def at_this_machine(request: Request, setting: str) -> Principal:
    """Return that a request comes from this machine, and is meant. Raise RefusedError."""
    if _state(request).get(CLOSED):
        raise RequestRejectedError(HTTPStatus.UNAUTHORIZED, "sign in, or send a token of daemon.access.tokens")
    if any(name in request.headers for name in PASSED_ON) or not is_loopback(peer_of(request)):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, f"only this machine may do that; set {setting} for others")
    if not is_loopback(_named_host(request)):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, f"ask http://127.0.0.1, not another name; set {setting} for others")
    if request.method not in ("GET", "HEAD") and any(name in request.headers for name in BROWSER):
        raise RequestRejectedError(HTTPStatus.FORBIDDEN, "a browser has to be signed in: gpuwarden login-link prints a link")
    if request.method in ("POST", "PUT", "PATCH") and _content_type(request) != "application/json":
        raise RequestRejectedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, with Content-Type: application/json")
    return MACHINE


def is_here(request: Request) -> bool:
    """Return whether a request was made on this machine, by a name that means this machine."""
    passed_on = any(name in request.headers for name in PASSED_ON)
    return not passed_on and is_loopback(peer_of(request)) and is_loopback(_named_host(request))


def peer_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client is not None else ""


def name_of(request: Request, named: str) -> str:
    """Return who asks, for the record: by how they are known here, else by the name they gave."""
    person = _state(request).get("person")
    if isinstance(person, Principal) and person.how in (AuthMethod.TOKEN, AuthMethod.SESSION, AuthMethod.HEADER):
        return person.name
    return named


def _state(request: Request) -> dict[str, Any]:
    state: dict[str, Any] = request.scope.setdefault("state", {})
    return state


def _known(request: Request) -> bool:
    person: Principal | None = _state(request).get(PERSON)
    return person is not None and person.known


def _knows(request: Request, token: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # Compared as bytes, and in a time that does not depend on how much of it is right.
    right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and right


def _named_host(request: Request) -> str:
    """Return the host that was asked for, without its port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
