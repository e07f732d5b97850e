"""Who may change something: whoever knows the token or, if there is none, whoever sits at this machine.

A browser is a way from the whole world to the loopback address: a page anywhere can post a form there, and a name that
is made to point at 127.0.0.1 makes its answers readable. So without a token the request has to name this machine, and
has to be JSON, which no form can send.
"""

from __future__ import annotations

import hmac
import ipaddress
from http import HTTPStatus

from starlette.requests import Request

NAMES = ("localhost", "localhost.localdomain")
PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip")  # what a proxy on this machine adds to what others ask


class RefusedError(Exception):
    """What was asked for may not be done. The message says what would have to be different."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_access(request: Request, token: str | None, setting: str) -> None:
    """Given a request to change something and the token of `setting`, if there is one. Raise RefusedError."""
    if token is not None:
        if not _knows(request, token):
            raise RefusedError(HTTPStatus.UNAUTHORIZED, f"this needs the token of {setting} as a bearer token")
        return
    if any(name in request.headers for name in PASSED_ON) or not _is_loopback(_peer(request)):
        raise RefusedError(HTTPStatus.FORBIDDEN, f"only this machine may do that; set {setting} for others")
    if not _is_loopback(_named_host(request)):
        raise RefusedError(HTTPStatus.FORBIDDEN, f"ask http://127.0.0.1, not another name; set {setting} for others")
    if request.method == "POST" and _content_type(request) != "application/json":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, with Content-Type: application/json")


def _knows(request: Request, token: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # Compared as bytes, and in a time that does not depend on how much of it is right.
    right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and right


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _named_host(request: Request) -> str:
    """Return the host that was asked for, without its port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() in NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
