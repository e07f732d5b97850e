"""Authorization of changes."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from starlette.requests import Request

from monitor.access.errors import RequestRejectedError
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.web.authorization import check_access, name_of

TOKEN = "s3cret-t0ken"
JSON = {"content-type": "application/json"}


def ask(
    headers: dict[str, str], peer: str = "127.0.0.1", token: str | None = None, method: str = "POST"
) -> HTTPStatus | None:
    """Status of a rejected request, None if it is accepted. The message must not contain the token."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    request = Request({"type": "http", "method": method, "headers": raw, "client": (peer, 50000)})
    try:
        check_access(request, token, "daemon.token")
    except RequestRejectedError as error:
        return None if TOKEN in str(error) else error.status
    return None


HERE = {"host": "127.0.0.1:9836"}
WITHOUT_TOKEN: list[tuple[str, dict[str, str], str, HTTPStatus | None]] = [
    ("from this machine", HERE | JSON, "127.0.0.1", None),
    ("by name", {"host": "localhost:9836"} | JSON, "::1", None),
    ("IPv6", {"host": "[::1]:9836"} | JSON, "::1", None),
    ("IPv4 in IPv6", HERE | JSON, "::ffff:127.0.0.1", None),
    ("with a charset", HERE | {"content-type": "application/json; charset=utf-8"}, "127.0.0.1", None),
    ("from elsewhere", {"host": "10.0.0.1:9836"} | JSON, "10.0.0.9", HTTPStatus.FORBIDDEN),
    ("from elsewhere, with a local host name", HERE | JSON, "10.0.0.9", HTTPStatus.FORBIDDEN),
    ("a name that points here", {"host": "evil.example:9836"} | JSON, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("a name that looks like here", {"host": "127.0.0.1.evil.example"} | JSON, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("no name at all", JSON, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("through a proxy", HERE | JSON | {"x-forwarded-for": "10.0.0.9"}, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("a browser", HERE | JSON | {"origin": "http://127.0.0.1:9836"}, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("a page that polls", HERE | JSON | {"hx-request": "true"}, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("through a proxy that sends Via", HERE | JSON | {"via": "1.1 proxy"}, "127.0.0.1", HTTPStatus.FORBIDDEN),
    ("a form", HERE | {"content-type": "text/plain"}, "127.0.0.1", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    ("no content type", HERE, "127.0.0.1", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
]


@pytest.mark.parametrize(("name", "headers", "peer", "expect"), WITHOUT_TOKEN, ids=[row[0] for row in WITHOUT_TOKEN])
def test_without_a_token(name: str, headers: dict[str, str], peer: str, expect: HTTPStatus | None) -> None:
    assert ask(headers, peer) == expect


def test_what_has_no_body_needs_no_type() -> None:
    assert ask(HERE, method="DELETE") is None
    assert ask({"host": "evil.example"}, method="DELETE") == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("authorization", "expect"),
    [
        (f"Bearer {TOKEN}", None),
        (f"bearer {TOKEN}", None),
        (f"Bearer  {TOKEN}", None),
        ("Bearer s3cret-t0ke", HTTPStatus.UNAUTHORIZED),
        ("Bearer s3cret-t0ken2", HTTPStatus.UNAUTHORIZED),
        ("Bearer \xe9", HTTPStatus.UNAUTHORIZED),
        (f"Basic {TOKEN}", HTTPStatus.UNAUTHORIZED),
        (TOKEN, HTTPStatus.UNAUTHORIZED),
        ("Bearer", HTTPStatus.UNAUTHORIZED),
        ("", HTTPStatus.UNAUTHORIZED),
    ],
)
def test_with_a_token_it_is_all_that_counts(authorization: str, expect: HTTPStatus | None) -> None:
    for peer in ("127.0.0.1", "10.0.0.9"):
        assert ask({"host": "gpuwarden.lab", "authorization": authorization}, peer, TOKEN) == expect


@pytest.mark.parametrize(
    ("method", "expect"),
    [
        (AuthMethod.SESSION, "li"),
        (AuthMethod.TOKEN, "li"),
        (AuthMethod.HEADER, "li"),
        (AuthMethod.MACHINE, "zhang"),
        (AuthMethod.ANONYMOUS, "zhang"),
    ],
)
def test_who_is_known_is_not_asked_for_a_name(method: AuthMethod, expect: str) -> None:
    scope = {"type": "http", "headers": [], "state": {"principal": Principal("li", Role.ADMIN, method=method)}}
    assert name_of(Request(scope), "zhang") == expect
