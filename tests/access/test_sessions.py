"""Login and logout: sessions cannot be fixated or guessed, and they expire."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from monitor.access.principal import AuthMethod, Principal, Role
from monitor.access.sessions import CODE_LIFETIME_SECONDS, MAX_CODES, LoginCodes, Sessions
from monitor.web.forms import local_target
from tests.support.local_token import AS_LOCAL
from tests.web.cluster import ACCESS, PASSWORD, TOKENS, Client, FakeActions, site

ROOT = Principal("root", Role.ADMIN)


class Clock:
    """A clock that moves only by hand."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture(scope="module")
def closed() -> Iterator[str]:
    """A site that requires authentication."""
    with site(ACCESS | {"anonymous": "none"}) as url:
        yield url


def test_a_session_is_found_by_its_id_until_it_ends() -> None:
    sessions = Sessions(lifetime=100.0, idle=30.0)
    session_id, principal = sessions.begin(ROOT, 0.0)
    assert (principal.name, principal.method, principal.role) == ("root", AuthMethod.SESSION, Role.ADMIN)
    assert sessions.find(session_id, 1.0) == principal
    assert sessions.find(session_id + "x", 1.0) is None
    sessions.end(session_id)
    assert sessions.find(session_id, 1.0) is None


@pytest.mark.parametrize(
    ("requests", "expect"),
    [
        ([29.0], True),
        ([30.0], False),
        ([29.0, 58.0, 87.0], True),
        ([29.0, 58.0, 87.0, 99.0], True),
        ([29.0, 58.0, 87.0, 100.0], False),
    ],
)
def test_it_ends_when_it_is_not_used_and_in_any_case(requests: list[float], expect: bool) -> None:
    sessions = Sessions(lifetime=100.0, idle=30.0)
    session_id, _ = sessions.begin(ROOT, 0.0)
    found = [sessions.find(session_id, at) is not None for at in requests]
    assert found[-1] is expect
    assert all(found[:-1])


def test_ids_and_secrets_are_never_the_same_and_only_hashes_are_kept() -> None:
    sessions = Sessions(100.0, 30.0, max_sessions=50)
    made = [sessions.begin(ROOT, 0.0) for _ in range(80)]
    assert len({session_id for session_id, _ in made}) == len({principal.csrf for _, principal in made}) == 80
    assert not {session_id for session_id, _ in made} & set(sessions._sessions)
    assert sum(sessions.find(session_id, 1.0) is not None for session_id, _ in made) == 50  # the oldest are dropped
    assert str(made[0][1].csrf) not in repr(made[0][1])


def test_a_code_is_good_once_and_not_for_ever() -> None:
    codes = LoginCodes()
    code, late = codes.make(0.0), codes.make(0.0)
    assert [codes.use(code, 1.0), codes.use(code, 1.0)] == [True, False]
    assert not codes.use(late, CODE_LIFETIME_SECONDS)
    many = [codes.make(0.0) for _ in range(MAX_CODES + 5)]
    assert [codes.use(each, 1.0) for each in many] == [False] * 5 + [True] * MAX_CODES


def test_signing_in_gives_a_cookie_that_scripts_and_other_sites_do_not_have(closed: str) -> None:
    client = Client(closed)
    assert client.get("/v1/view").status == 401
    answer = client.sign_in("root")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert re.search(r"^gpuwarden-\d+=[\w-]{40,};", cookie)
    for word in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert word in cookie
    assert "Secure" not in cookie
    assert client.get("/v1/view").status == 200
    behind_tls = Client(closed).sign_in("root", X_Forwarded_Proto="https")
    assert "Secure" in behind_tls.headers["set-cookie"]


def test_an_id_that_was_planted_is_not_taken_over(closed: str) -> None:
    """Session fixation: a planted cookie must not become a valid session."""
    attacker, victim = Client(closed), Client(closed)
    name = next(iter(_signed_in(closed, "guest").cookies))
    victim.cookies[name] = "planted-by-an-attacker-0123456789"
    attacker.cookies[name] = victim.cookies[name]
    assert victim.sign_in("root").status == 303
    assert victim.cookies[name] != "planted-by-an-attacker-0123456789"
    assert attacker.get("/v1/view").status == 401


def test_signing_in_again_makes_a_new_session_and_ends_the_old_one(closed: str) -> None:
    client = _signed_in(closed, "guest")
    before = dict(client.cookies)
    assert client.sign_in("root").status == 303
    assert client.cookies != before
    assert Client(closed, cookies=before).get("/v1/view").status == 401


def test_signing_out_ends_it_on_the_server_too(closed: str) -> None:
    client = _signed_in(closed, "root")
    stolen = Client(closed, cookies=dict(client.cookies))
    assert client.form("/logout", {}).status == 403  # another site cannot sign the user out
    assert stolen.get("/v1/view").status == 200
    answer = client.form("/logout", {"csrf": client.csrf()})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert stolen.get("/v1/view").status == 401
    assert client.get("/v1/view").status == 401


def test_a_session_ends_by_the_clock() -> None:
    clock = Clock()
    with site(ACCESS | {"anonymous": "none", "session_idle": "1h", "session_lifetime": "8h"}, clock) as url:
        client = _signed_in(url, "root")
        for _ in range(9):
            clock.at += 3000.0
            assert client.get("/v1/view").status == 200
        clock.at += 3000.0
        assert client.get("/v1/view").status == 401  # the lifetime of 8 hours is over


def test_a_wrong_password_says_nothing_about_the_name(closed: str) -> None:
    known, unknown = (Client(closed).sign_in(name, "nonsense") for name in ("zhang.wei", "nobody-here"))
    assert (known.status, unknown.status) == (401, 401)
    assert known.body == unknown.body
    assert "set-cookie" not in known.headers
    assert "nonsense" not in known.body


def test_who_guesses_is_kept_waiting_also_with_the_right_password() -> None:
    with site(ACCESS) as url:
        statuses = [Client(url).sign_in("root", f"guess-{number}").status for number in range(7)]
        assert statuses == [401] * 5 + [429] * 2
        locked = Client(url).sign_in("root", PASSWORD)
        assert locked.status == 429
        assert 0 < int(locked.headers["retry-after"]) <= 2
        assert "Too many attempts" in locked.body
        assert Client(url).sign_in("guest").status == 303  # others are not locked out


@pytest.mark.parametrize(
    ("wanted", "expect"),
    [
        ("/nodes/gpu01?x=1", "/nodes/gpu01?x=1"),
        ("/users/张三", "/users/张三"),
        ("", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("\\\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/x\r\nSet-Cookie: a=b", "/"),
        ("/login", "/"),
        ("/" + "x" * 5000, "/"),
    ],
)
def test_after_signing_in_one_stays_on_this_site(closed: str, wanted: str, expect: str) -> None:
    assert local_target(wanted) == expect
    answer = Client(closed).form("/login", {"name": "guest", "password": PASSWORD, "next": wanted})
    assert answer.status == 303
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith("//")
    assert "evil" not in answer.headers["location"]


def test_a_page_leads_to_the_sign_in_and_back(closed: str) -> None:
    answer = Client(closed).get("/nodes/gpu01?a=b&c=d")
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=/nodes/gpu01%3Fa%3Db%26c%3Dd")
    page = Client(closed).get(answer.headers["location"])
    assert 'name="next" value="/nodes/gpu01?a=b&amp;c=d"' in page.body
    polled = Client(closed).get("/", HX_Request="true")
    assert (polled.status, polled.headers["hx-redirect"]) == (401, "/login")


def test_the_page_to_sign_in_speaks_both_languages_and_reflects_nothing(closed: str) -> None:
    assert "请用用户名和密码登录" in Client(closed).get("/login", Accept_Language="zh-CN,zh;q=0.9").body
    assert "Sign in with your name" in Client(closed).get("/login").body
    evil = Client(closed).get("/login?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E&lang=%3Cb%3E")
    assert "<script>alert" not in evil.body
    assert "<b>" not in evil.body


# Without accounts


def test_a_link_makes_a_browser_an_admin_once() -> None:
    with site({}, actions=FakeActions()) as url:
        client = Client(url)
        path = client.post("/v1/login-link", {}, **AS_LOCAL).json["path"]
        assert path.startswith("/login#code=")
        code = path.partition("=")[2]
        content = {"node": "gpu01", "gpu": 0, "dry_run": True}
        assert client.form("/v1/actions/release-gpu", {"node": "gpu01"}).status == 401  # not signed in
        assert client.form("/login", {"code": code}).status == 303
        assert client.post("/v1/actions/release-gpu", content).status == 403  # a session needs the CSRF token
        assert Client(url).form("/login", {"code": code}).status == 401
        assert Client(url).form("/login", {"code": "nonsense"}).status == 401


@pytest.mark.parametrize("headers", [{}, {"Host": "evil.example"}, {"X_Forwarded_For": "10.0.0.9"}], ids=str)
def test_a_link_is_for_admins(headers: dict[str, Any]) -> None:
    with site({}) as url:
        answer = Client(url).post("/v1/login-link", {}, **headers)
        assert answer.status in (401, 403)
        assert "code" not in answer.body


def test_a_token_signs_a_browser_in_with_its_role(closed: str) -> None:
    client = Client(closed)
    assert client.form("/login", {"code": TOKENS["viewer"]}).status == 303
    assert client.get("/v1/view").status == 200
    assert client.get("/v1/me").json["role"] == "viewer"


def _signed_in(url: str, name: str) -> Client:
    client = Client(url)
    assert client.sign_in(name).status == 303
    return client
