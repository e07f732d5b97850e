"""The permissions of each role on every operation of the API, and attempts to claim a role."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from monitor.access.audit import AuditLog
from monitor.access.principal import Role
from monitor.history.heatmap import HeatMap
from monitor.history.model import HistorySubject
from monitor.queries.history import HistoryAnswer
from monitor.web.alerts_api import ApiTokens
from monitor.web.app import create_app
from monitor.web.openapi_table import OPERATIONS, Operation
from monitor.web.server import WebServer
from tests.support.local_token import AS_LOCAL
from tests.web import test_alerts_api, test_cleanup_api
from tests.web.cluster import ACCESS, TOKENS, Client, FakeActions, site
from tests.web.test_app import FakeCluster

BODIES: dict[str, Any] = {
    "silence": {"matchers": ["node=x"], "duration": "1h"},
    "cleanupRun": {"policy": "images"},
    "cleanupBeginScan": {"policy": "data"},
    "cleanupStopScan": {"policy": "data"},
    "cleanupRelease": {"node": "gpu01", "gpu": 0},
    "releaseGpu": {"node": "gpu01", "gpu": 0},
    "deletePods": {"pods": [{"namespace": "a", "name": "b"}]},
    "cordon": {"nodes": ["gpu01"]},
    "uncordon": {"nodes": ["gpu01"]},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}
QUERIES = {"why": "?name=x", "fits": "?gpus=8", "cleanupScan": "?policy=data", "history": "?subject=cluster"}
ABSENT = ("snapshot", "report", "incident")  # this site has neither an agent nor a report, nor the alert


class FakeHistory:
    """A history without records."""

    def answer(self, subject: HistorySubject, name: str, *_: object) -> HistoryAnswer:
        return HistoryAnswer(subject=subject, name=name, start=0, step_seconds=60)

    def heat_map(self, *_: object) -> HeatMap:
        return HeatMap(start=0, step_seconds=60, nodes=0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    audit = AuditLog(str(tmp_path_factory.mktemp("audit") / "audit.db"))
    backends: dict[str, Any] = {
        "alerts": test_alerts_api.FakeAlerts(),
        "cleanup": test_cleanup_api.FakeCleanup(),
        "actions": FakeActions(),
        "audit": audit,
        "history": FakeHistory(),
    }
    with site(ACCESS | {"anonymous": "none"}, **backends) as address:
        yield address
    audit.close()


def ask(client: Client, operation: Operation, **headers: str) -> int:
    path = operation.path.replace("{own}", "s1").replace("{trash}", "t1") + QUERIES.get(operation.name, "")
    if operation.method == "POST":
        return client.post(path, BODIES.get(operation.name, {}), Accept="application/json", **headers).status
    return client.ask(operation.method, path, **headers).status


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_who_may(url: str, operation: Operation) -> None:
    """A role that is too low is forbidden; without credentials a login is required."""
    assert ask(Client(url), operation) == 401
    for role in (Role.VIEWER, Role.USER, Role.ADMIN):
        status = ask(Client(url), operation, Authorization=f"Bearer {TOKENS[role]}")
        if not role.includes(operation.role):
            assert status == 403, role
        elif operation.name in ABSENT:
            assert status == 404
        else:
            assert status < 300, role


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.method == "GET"], ids=lambda each: each.name)
def test_a_session_may_what_its_role_may(url: str, operation: Operation) -> None:
    client = Client(url)
    client.sign_in("guest")
    expected = 404 if operation.name in ABSENT else 200 if operation.role is Role.VIEWER else 403
    assert ask(client, operation) == expected


def test_what_is_open_to_everybody_shows_nothing(url: str) -> None:
    assert Client(url).get("/healthz").body == "ok\n"
    assert Client(url).get("/login").status == 200
    assert Client(url).get("/static/login.css").status == 200
    assert Client(url).get("/v1/nonsense").status == 401  # unknown paths are not revealed


@pytest.mark.parametrize("path", [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/%2fetc/passwd",
    "/static/....//app.py", "/static/..\\app.py", "/static/%00", "/static/login.css/../../app.py",
    "/healthz/../v1/view", "/login/../v1/view", "/static/../v1/view", "//v1/view", "/v1//view",
    "/V1/view", "/%76%31/view",
])  # fmt: skip
def test_no_path_leads_around_the_gate_or_out_of_it(url: str, path: str) -> None:
    answer = Client(url).get(path)
    assert answer.status in (303, 400, 401, 404), answer.status
    for leaked in ("import", "root:", '"gpus"', "gpu-01"):
        assert leaked not in answer.body


SPOOFS: list[tuple[str, dict[str, str]]] = [
    ("a header that is not configured", {"X_Forwarded_User": "root"}),
    ("a role", {"X_Role": "admin", "X_Forwarded_User": "root"}),
    ("claims to come from this machine", {"X_Forwarded_For": "127.0.0.1"}),
    (
        "claims to come from a proxy",
        {"X_Forwarded_For": "10.0.0.5", "X_Real_IP": "10.0.0.5", "X_Forwarded_User": "root"},
    ),
    ("a cookie of one's own making", {"Cookie": "gpuwarden-0=admin; session=admin"}),
    ("no password", {"Authorization": "Basic cm9vdDo="}),
    ("an empty token", {"Authorization": "Bearer "}),
    ("a token that is nearly right", {"Authorization": f"Bearer {TOKENS['admin'][:-1]}"}),
]


@pytest.mark.parametrize(("name", "headers"), SPOOFS, ids=[row[0] for row in SPOOFS])
def test_saying_so_is_not_enough(url: str, name: str, headers: dict[str, str]) -> None:
    assert Client(url).get("/v1/view", **headers).status == 401


PROXIED: list[tuple[str, str, dict[str, str], tuple[int, str]]] = [
    ("as the proxy says", "127.0.0.1", {"X_Forwarded_User": "li"}, (200, "li viewer li")),
    ("with a role", "127.0.0.1", {"X_Forwarded_User": "li", "X_Role": "user"}, (200, "li user li")),
    ("a role that there is not", "127.0.0.1", {"X_Forwarded_User": "li", "X_Role": "god"}, (200, "li viewer li")),
    ("a user with an account", "127.0.0.1", {"X_Forwarded_User": "zhang.wei"}, (200, "zhang.wei user zhang")),
    (
        "a name in Chinese",
        "127.0.0.1",
        {"X_Forwarded_User": "张三".encode().decode("latin-1")},
        (200, "张三 viewer 张三"),
    ),
    ("no header", "127.0.0.1", {}, (401, "")),
    ("an empty name", "127.0.0.1", {"X_Forwarded_User": " "}, (401, "")),
    ("a role without a name", "127.0.0.1", {"X_Role": "admin"}, (401, "")),
    ("too long a name", "127.0.0.1", {"X_Forwarded_User": "x" * 101}, (400, "")),
    ("not from the proxy", "10.0.0.5", {"X_Forwarded_User": "li", "X_Role": "admin"}, (401, "")),
    (
        "not from the proxy, though it says so",
        "10.0.0.5",
        {"X_Forwarded_User": "li", "X_Forwarded_For": "10.0.0.5", "X_Real_IP": "10.0.0.5"},
        (401, ""),
    ),
]


@pytest.mark.parametrize(("name", "proxy", "headers", "expect"), PROXIED, ids=[row[0] for row in PROXIED])
def test_a_proxy_is_believed_and_nobody_else(
    name: str, proxy: str, headers: dict[str, str], expect: tuple[int, str]
) -> None:
    header = {"name": "X-Forwarded-User", "role_header": "X-Role", "from": [proxy]}
    access = {"users": ACCESS["users"], "anonymous": "none", "trusted_header": header}
    with site(access) as address:
        answer = Client(address).get("/v1/me", **headers)
    assert answer.status == expect[0]
    if answer.status == 200:
        assert "{name} {role} {cluster_user}".format(**answer.json) == expect[1]


def test_two_headers_are_one_too_many() -> None:
    header = {"name": "X-Forwarded-User", "from": ["127.0.0.1"]}
    with site({"trusted_header": header, "anonymous": "none"}) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        connection.putrequest("GET", "/v1/me")
        for name in ("li", "root"):
            connection.putheader("X-Forwarded-User", name)
        connection.endheaders()
        assert connection.getresponse().status == 400
        connection.close()


ANONYMOUS: list[tuple[str, dict[str, Any], dict[str, str], int]] = [
    ("here", {}, {}, 200),
    ("here, where others sign in", {"users": ACCESS["users"]}, {}, 200),
    ("by another name", {}, {"Host": "evil.example"}, 403),
    ("passed on by a proxy", {}, {"X_Forwarded_For": "10.0.0.9"}, 403),
    ("passed on, where others sign in", {"users": ACCESS["users"]}, {"X_Forwarded_For": "10.0.0.9"}, 401),
    ("anyone may read", {"anonymous": "viewer"}, {"Host": "gpu.lab", "X_Forwarded_For": "10.0.0.9"}, 200),
    ("no one may read", {"anonymous": "none", "users": ACCESS["users"]}, {}, 401),
]


@pytest.mark.parametrize(("name", "access", "headers", "status"), ANONYMOUS, ids=[row[0] for row in ANONYMOUS])
def test_who_may_look_without_saying_who_they_are(
    name: str, access: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    with site(access) as address:
        assert Client(address).get("/v1/view", **headers).status == status


@pytest.mark.parametrize("access", [{}, {"users": ACCESS["users"]}], ids=["by default", "with users"])
def test_only_the_local_token_makes_a_process_on_this_machine_an_admin(access: dict[str, Any]) -> None:
    actions = FakeActions()
    with site(access, actions=actions) as address:
        assert Client(address).post("/v1/actions/cordon", {"nodes": ["gpu01"]}).status == 401
        assert Client(address, AS_LOCAL).post("/v1/actions/cordon", {"nodes": ["gpu01"]}).status == 200
    assert [(what, who) for what, _, who in actions.calls] == [("perform", "local")]


def test_a_weak_token_is_not_guessed() -> None:
    """The daemon token may be short, so lockout applies to it; strong tokens are exempt."""
    server = WebServer(
        create_app(FakeCluster(), tokens=ApiTokens(daemon="abc")), socket.create_server(("127.0.0.1", 0))
    )
    server.start()
    try:
        client = Client("http://{}:{}".format(*server.address))
        assert client.get("/v1/view", Authorization="Bearer abc").status == 200
        tried = [client.get("/v1/view", Authorization=f"Bearer x{number}").status for number in range(25)]
        assert tried == [401] * 20 + [429] * 5
        assert client.get("/v1/view", Authorization="Bearer abc").status == 429
    finally:
        server.begin_stop()
        server.wait_stopped()
    with site(ACCESS) as address:
        client = Client(address)
        for number in range(25):
            client.get("/v1/view", Authorization=f"Bearer x{number}")
        assert client.get("/v1/view", Authorization=f"Bearer {TOKENS['viewer']}").status == 200
