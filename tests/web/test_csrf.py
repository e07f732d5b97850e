"""Cross-site request forgery: other sites cannot make a browser change anything here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from monitor.web.forms import MAX_FORM_BYTES
from tests.support.local_token import AS_LOCAL
from tests.web.cluster import ACCESS, PASSWORD, TOKENS, Client, FakeActions, site
from tests.web.test_alerts_api import FakeAlerts

CORDON = {"nodes": ["gpu01"]}
PATH = "/v1/actions/cordon"
PROXY = {"trusted_header": {"name": "X-Forwarded-User", "role_header": "X-Role", "from": ["127.0.0.1"]}}
PROXY_HEADERS = {"X_Forwarded_User": "zhang", "X_Role": "admin"}


@dataclass
class CsrfSite:
    """A site and its recording backends."""

    url: str
    actions: FakeActions
    alerts: FakeAlerts


@pytest.fixture
def target() -> Iterator[CsrfSite]:
    actions, alerts = FakeActions(), FakeAlerts()
    with site(ACCESS | PROXY, actions=actions, alerts=alerts) as url:
        yield CsrfSite(url, actions, alerts)


@pytest.fixture
def root(target: CsrfSite) -> Client:
    client = Client(target.url)
    assert client.sign_in("root").status == 303
    return client


def test_a_session_alone_changes_nothing(target: CsrfSite, root: Client) -> None:
    for headers in ({}, {"X_CSRF_Token": ""}, {"X_CSRF_Token": "nonsense"}, {"X_CSRF_Token": "\xe9"}):
        assert root.post(PATH, CORDON, **headers).status == 403
    assert root.ask("DELETE", "/v1/silences/s1").status == 403
    assert root.post("/v1/silences", {"matchers": ["node=x"], "duration": "1h"}).status == 403
    assert root.form("/v1/silences", {"matchers": "node=x"}).status == 403
    assert target.actions.calls == []
    assert target.alerts.calls == []


def test_with_its_secret_it_does(target: CsrfSite, root: Client) -> None:
    secret = root.csrf()
    assert root.post(PATH, CORDON, X_CSRF_Token=secret).status == 200
    assert root.ask("DELETE", "/v1/silences/s1", X_CSRF_Token=secret).status == 200
    assert [each[0] for each in target.actions.calls] == ["perform"]
    assert target.alerts.calls == [("unsilence", "s1")]


def test_the_secret_of_another_session_is_not_its_own(target: CsrfSite, root: Client) -> None:
    again, guest = Client(target.url), Client(target.url)
    again.sign_in("root")
    guest.sign_in("guest")
    assert again.csrf() != root.csrf()
    for other in (again, guest):
        assert root.post(PATH, CORDON, X_CSRF_Token=other.csrf()).status == 403
    assert target.actions.calls == []


def test_a_form_carries_it_in_a_field_and_is_read_again_by_who_it_is_for(root: Client) -> None:
    assert root.form("/logout", {"other": "x", "csrf": "nonsense"}).status == 403
    assert root.form("/logout", {"x": "y" * (MAX_FORM_BYTES + 10)}).status == 413
    assert root.ask("POST", "/logout", b"csrf=%ff", Content_Type="application/x-www-form-urlencoded").status == 400
    assert root.form("/logout", {"other": "x", "csrf": root.csrf()}).status == 303


def test_what_a_proxy_vouches_for_may_be_forged_by_a_page_too(target: CsrfSite) -> None:
    client = Client(target.url)
    assert client.post(PATH, CORDON, **PROXY_HEADERS).status == 403
    secret = client.get("/v1/me", **PROXY_HEADERS).json["csrf"]
    assert client.post(PATH, CORDON, X_CSRF_Token=secret, X_Forwarded_User="li", X_Role="admin").status == 403
    assert target.actions.calls == []
    assert client.post(PATH, CORDON, X_CSRF_Token=secret, **PROXY_HEADERS).status == 200
    assert [each[2] for each in target.actions.calls] == ["zhang"]


def test_a_token_needs_none_for_no_browser_adds_it_by_itself(target: CsrfSite) -> None:
    answer = Client(target.url).post(PATH, CORDON, Authorization=f"Bearer {TOKENS['admin']}")
    assert answer.status == 200
    assert len(target.actions.calls) == 1


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1:1", 403),
        (None, 303),
        ("own", 303),
        ("own-tls", 303),
    ],
)
def test_another_site_does_not_sign_somebody_in_under_a_name_of_its_choice(
    target: CsrfSite, origin: str | None, status: int
) -> None:
    origins = {"own": target.url, "own-tls": target.url.replace("http:", "https:")}
    headers = {"Origin": origins.get(origin, origin)} if origin is not None else {}
    answer = Client(target.url).form("/login", {"name": "guest", "password": PASSWORD}, **headers)
    assert answer.status == status
    assert ("set-cookie" in answer.headers) is (status == 303)


def test_without_a_name_no_form_does_anything() -> None:
    actions = FakeActions()
    with site({}, actions=actions) as url:
        client = Client(url)
        assert client.form("/logout", {}).status == 401
        assert client.form(PATH, {"nodes": "gpu01"}).status == 401
        assert client.ask("POST", PATH, '{"nodes": ["gpu01"]}', Content_Type="text/plain").status == 401
        assert client.post(PATH, CORDON).status == 401
        assert actions.calls == []
        assert client.post(PATH, CORDON, **AS_LOCAL).status == 200  # no other site knows the token


def test_answers_cannot_be_framed_nor_read_by_others(target: CsrfSite, root: Client) -> None:
    for path in ("/login", "/v1/view", "/v1/me", "/static/login.js", "/nope"):
        headers = root.get(path).headers
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "form-action 'self'" in headers["content-security-policy"]
        assert "unsafe-" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
    preflight = root.ask("OPTIONS", PATH, Origin="http://evil.example", Access_Control_Request_Method="POST")
    assert preflight.status == 405
    assert "access-control-allow-origin" not in preflight.headers
