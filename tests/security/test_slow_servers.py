"""A server that sends a byte now and then holds no client beyond its deadline, and no connection of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import monitor.kube.client
from monitor.agent.probe import RegistryProbe, TlsContext
from monitor.agent.runtime.unix_http import UnixHttp
from monitor.agent.settings import RegistryTarget
from monitor.alert.receivers.apprise import MAX_UNFINISHED
from monitor.alert.receivers.base import DeliveryError, MailSettings
from monitor.alert.receivers.registry import KINDS
from monitor.base.endpoint import Endpoint
from monitor.base.http import exchange, get
from monitor.base.peer_http import PeerClient
from monitor.base.threads import run_parallel
from monitor.cleanup.execute.harbor import Harbor
from monitor.cleanup.policy import RegistryPolicy
from monitor.cluster.agents.client import SnapshotClient
from monitor.kube.client import KubeApi, connect
from monitor.probes.runner import ServiceTarget, run_probe
from tests.alert.receivers.batches import batch, receiver
from tests.kube.test_pod_writes import kubeconfig
from tests.support import need, wait_until
from tests.support.drip_server import DripServer

LIMIT_SECONDS = 0.5
ENOUGH_SECONDS = 30.0  # a client without a deadline for the whole still waits then
OK = b"HTTP/1.1 200 OK\r\n"
SLOW_ANSWERS = {  # what is sent at once, before the single bytes
    "status line": b"HTTP/1.1 2",
    "headers": OK + b"X-Slow: ",
    "body": OK + b"Content-Length: 100000\r\n\r\n",
    "body without a length": OK + b"Connection: close\r\n\r\n",
    "size of a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n",
}
POSTGRESQL_READY = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"
Call = Callable[[DripServer], object]


def endpoint(server: DripServer) -> Endpoint:
    return Endpoint(f"http://{server.target}/", timeout=LIMIT_SECONDS)


def deliver(kind: str) -> Call:
    return lambda server: receiver(kind, f"http://{server.target}/a", timeout=LIMIT_SECONDS).deliver(batch())


def probe(kind: str) -> Call:
    return lambda server: run_probe(ServiceTarget("s", kind, f"http://{server.target}", limit=LIMIT_SECONDS))


def harbor(server: DripServer) -> object:
    policy = RegistryPolicy(name="r", url=f"http://{server.target}")
    return Harbor(policy, threading.Event(), LIMIT_SECONDS).retention_rules()


CLIENTS: dict[str, Call] = {
    "an outside service": lambda server: get(endpoint(server)),
    "an exchange": lambda server: exchange("GET", endpoint(server)),
    "an agent": lambda server: SnapshotClient(LIMIT_SECONDS, None)(server.target),
    "a peer": lambda server: PeerClient(LIMIT_SECONDS, 1024).request(server.target, "POST", "/", b"{}"),
    "Harbor": harbor,
    **{f"the probe {kind}": probe(kind) for kind in ("http", "harbor", "registry")},
    **{f"the receiver {kind}": deliver(kind) for kind in KINDS if kind not in ("mail", "console", "apprise")},
}


def assert_let_go(server: DripServer, call: Callable[[], object]) -> None:
    """The call ends in time, with an error or a result that says so, and its connection does not survive it."""
    (outcome,) = run_parallel([lambda: repr(call())], ENOUGH_SECONDS)
    assert not outcome.late, "still waiting"
    assert server.accepted, "or it proves nothing"
    wait_until(lambda: server.clients == 0, ENOUGH_SECONDS, "the connection is closed")


@pytest.fixture(autouse=True)
def _no_proxies_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("greeting", SLOW_ANSWERS.values(), ids=SLOW_ANSWERS)
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_no_http_server_holds_a_client(client: Call, greeting: bytes) -> None:
    with DripServer(greeting) as server:
        assert_let_go(server, lambda: client(server))


API_CALLS: dict[str, Callable[[KubeApi], object]] = {
    "get": lambda api: api.get("/version", {}, "application/json", LIMIT_SECONDS),
    "send": lambda api: api.send("POST", "/x", b"{}", LIMIT_SECONDS),
}


@pytest.mark.parametrize("greeting", SLOW_ANSWERS.values(), ids=SLOW_ANSWERS)
@pytest.mark.parametrize("call", API_CALLS.values(), ids=API_CALLS)
def test_no_api_server_holds_a_request(
    call: Callable[[KubeApi], object], greeting: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor.kube.client, "CONNECT_TIMEOUT_SECONDS", LIMIT_SECONDS)
    with DripServer(greeting) as server:
        api = connect(kubeconfig(tmp_path, server.port))
        assert_let_go(server, lambda: call(api))


@pytest.mark.parametrize("greeting", SLOW_ANSWERS.values(), ids=SLOW_ANSWERS)
def test_no_container_engine_holds_a_request(greeting: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "engine")
    with DripServer(greeting, path=path) as server, UnixHttp(path) as engine:
        assert_let_go(server, lambda: engine.get("/version", LIMIT_SECONDS))


def test_no_registry_holds_the_probe_of_an_agent() -> None:
    with DripServer(SLOW_ANSWERS["status line"]) as server:
        target = RegistryTarget(url=f"http://{server.target}", ca_file=None, verify_tls=True)
        assert_let_go(server, RegistryProbe(target, LIMIT_SECONDS, TlsContext(target)).run)


@pytest.mark.parametrize("greeting", [b"220-", b"220 hello\r\n250-"], ids=["greeting", "answer"])
def test_no_mail_server_holds_a_delivery(greeting: bytes) -> None:
    with DripServer(greeting) as server:
        settings = MailSettings(host="127.0.0.1", port=server.port, sender="a@lab", to=("b@lab",), tls="none")
        assert_let_go(server, lambda: receiver("mail", mail=settings, timeout=LIMIT_SECONDS).deliver(batch()))


@pytest.mark.parametrize(
    "greeting", [b"R\0\1\0\0", POSTGRESQL_READY + b"T\0\1\0\0"], ids=["connecting", "result of a query"]
)
def test_no_database_holds_a_probe(greeting: bytes) -> None:
    pytest.importorskip("psycopg")
    with DripServer(greeting) as server:
        url = f"postgresql://u@{server.target}/d?sslmode=disable&gssencmode=disable"
        target = ServiceTarget("s", "postgresql", url, limit=LIMIT_SECONDS)
        assert_let_go(server, lambda: run_probe(target))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
def test_a_service_of_apprise_holds_only_so_many_deliveries() -> None:
    """The library opens the connections itself: they cannot be closed, so their number is bounded."""
    library: Any = pytest.importorskip("apprise")
    need(library.Apprise().add("json://localhost"), "Apprise's plug-ins, which it loads the first time")
    with DripServer(SLOW_ANSWERS["headers"]) as server:
        to = receiver("apprise", f"json://{server.target}/", timeout=2.0)
        for _ in range(MAX_UNFINISHED):
            with pytest.raises(DeliveryError, match="did not finish within 2 s"):
                to.deliver(batch())
        with pytest.raises(DeliveryError, match="earlier deliveries have not finished") as refused:
            to.deliver(batch())
        assert refused.value.retryable
        assert server.accepted <= MAX_UNFINISHED
