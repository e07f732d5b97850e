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
WITHOUT_TOKEN: list[tuple[str, dict[str, str], str]] = [
    ("from this machine", HERE | JSON, "127.0.0.1"),
    ("by name", {"host": "localhost:9836"} | JSON, "::1"),
    ("IPv4 in IPv6", HERE | JSON, "::ffff:127.0.0.1"),
    ("from elsewhere", {"host": "10.0.0.1:9836"} | JSON, "10.0.0.9"),
    ("a name that points here", {"host": "evil.example:9836"} | JSON, "127.0.0.1"),
    ("through a proxy", HERE | JSON | {"x-forwarded-for": "10.0.0.9"}, "127.0.0.1"),
    ("a browser", HERE | JSON | {"origin": "http://127.0.0.1:9836"}, "127.0.0.1"),
    ("a form", HERE | {"content-type": "text/plain"}, "127.0.0.1"),
    ("nothing at all", {}, ""),
]


@pytest.mark.parametrize(("name", "headers", "peer"), WITHOUT_TOKEN, ids=[row[0] for row in WITHOUT_TOKEN])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_without_credentials_nothing_is_changed_from_anywhere(
    name: str, headers: dict[str, str], peer: str, method: str
) -> None:
    assert ask(headers, peer, method=method) == HTTPStatus.UNAUTHORIZED


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
