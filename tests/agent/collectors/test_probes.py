"""Registry probes against real registries, and against servers that fail in each known way."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.probes import ProbesCollector
from monitor.agent.probe import without_credentials
from monitor.agent.settings import RegistryTarget
from monitor.facts import ProbeFact
from tests.agent.registries import Authority, registry
from tests.agent.servers import answer, close_after_reading, drip, flood, reset_after_reading, server, stay_silent
from tests.support import free_port, need

TIMEOUT_SECONDS = 5.0  # of servers that answer at once
SHORT_SECONDS = 0.5  # of servers that never answer


def target(url: str, ca_file: Path | None = None, *, verify_tls: bool = True) -> RegistryTarget:
    return RegistryTarget(url=url, ca_file=str(ca_file) if ca_file else None, verify_tls=verify_tls)


def probe(
    url: str, ca_file: Path | None = None, *, timeout: float = TIMEOUT_SECONDS, verify_tls: bool = True
) -> ProbeFact:
    (fact,) = ProbesCollector((target(url, ca_file, verify_tls=verify_tls),), timeout).collect()
    return fact


def outcome(fact: ProbeFact) -> tuple[bool, str | None, str | None, int | None]:
    return fact.ok, fact.stage, fact.cause, fact.status


class Registries:
    """Ports of real registries, one per condition."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.authority = Authority(directory / "ca")
        self._directory = directory
        self._stack = stack
        self.plain = self._start("plain")
        self.login = self._start("login", login=True)
        self.tls = self._start("tls", host="IP:127.0.0.1")
        self.expired = self._start("expired", host="IP:127.0.0.1", days=-1)
        self.other_host = self._start("other", host="DNS:harbor.example")

    def _start(self, name: str, *, host: str | None = None, days: int = 1, login: bool = False) -> int:
        tls = self.authority.issue(name, host, days) if host else None
        return self._stack.enter_context(registry(self._directory / name, tls=tls, login=login))


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registries]:
    with ExitStack() as stack:
        yield Registries(tmp_path_factory.mktemp("registries"), stack)


def test_a_real_registry(registries: Registries) -> None:
    before = time.time()
    fact = probe(f"http://127.0.0.1:{registries.plain}")
    assert outcome(fact) == (True, None, None, 200)
    assert fact.target == f"http://127.0.0.1:{registries.plain}"
    assert fact.address == "127.0.0.1"
    assert fact.error is None
    assert before <= fact.at <= time.time()
    assert fact.duration_seconds is not None
    assert 0 < fact.duration_seconds < TIMEOUT_SECONDS


@pytest.mark.parametrize(
    ("url", "trusted", "expected"),
    [
        ("http://127.0.0.1:{plain}/", True, (True, None, None, 200)),
        ("http://localhost:{plain}", True, (True, None, None, 200)),
        ("http://127.0.0.1:{login}", True, (True, None, None, 401)),
        ("https://127.0.0.1:{tls}", True, (True, None, None, 200)),
        ("https://127.0.0.1:{tls}", False, (False, "tls", "tls-untrusted", None)),
        ("https://127.0.0.1:{expired}", True, (False, "tls", "tls-expired", None)),
        ("https://127.0.0.1:{other_host}", True, (False, "tls", "tls-hostname", None)),
        ("https://localhost:{other_host}", True, (False, "tls", "tls-hostname", None)),
        ("https://127.0.0.1:{plain}", True, (False, "tls", "plain-http", None)),
        ("http://127.0.0.1:{tls}", True, (False, "http", "http-status", 400)),
    ],
)
def test_real_registries(
    registries: Registries, url: str, trusted: bool, expected: tuple[bool, str | None, str | None, int | None]
) -> None:
    fact = probe(url.format(**vars(registries)), registries.authority.certificate if trusted else None)
    assert outcome(fact) == expected
    assert (fact.error is None) == fact.ok


@pytest.mark.parametrize("port", ["tls", "expired", "other_host"])
def test_a_certificate_is_not_looked_at_when_told_so(registries: Registries, port: str) -> None:
    assert probe(f"https://127.0.0.1:{getattr(registries, port)}", verify_tls=False).ok


def test_a_ca_file_that_is_put_right_is_noticed(registries: Registries, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    collector = ProbesCollector((target(f"https://127.0.0.1:{registries.tls}", ca_file),), TIMEOUT_SECONDS)

    def cause() -> str | None:
        return collector.collect()[0].cause

    assert cause() == "tls-other", "missing"
    ca_file.write_text("no certificate")
    assert cause() == "tls-other", "not one"
    shutil.copy(Authority(tmp_path / "another").certificate, ca_file)
    assert cause() == "tls-untrusted", "the wrong one"
    shutil.copy(registries.authority.certificate, ca_file)
    assert cause() is None, "the right one"
    ca_file.unlink()
    assert cause() == "tls-other", "gone again"


def test_a_ca_file_that_is_missing_is_named(registries: Registries, tmp_path: Path) -> None:
    fact = probe(f"https://127.0.0.1:{registries.tls}", tmp_path / "ca.pem")
    assert fact.error == f"{tmp_path}/ca.pem: No such file or directory"


def test_a_registry_that_wants_a_certificate_of_ours(registries: Registries) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*registries.authority.issue("mutual", "IP:127.0.0.1", 1))
    context.load_verify_locations(registries.authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = (
        ssl.TLSVersion.TLSv1_2
    )  # later versions refuse after the handshake, where a reset may come first
    with server(lambda connection: context.wrap_socket(connection, server_side=True).close()) as port:
        fact = probe(f"https://127.0.0.1:{port}", registries.authority.certificate)
    assert (fact.ok, fact.cause) == (False, "tls-other")


@pytest.mark.parametrize(
    ("scheme", "behave", "timeout", "expected"),
    [
        ("http", reset_after_reading, TIMEOUT_SECONDS, (False, "http", "reset", None)),
        ("http", close_after_reading, TIMEOUT_SECONDS, (False, "http", "reset", None)),
        ("http", stay_silent, SHORT_SECONDS, (False, "http", "timeout", None)),
        ("http", drip, SHORT_SECONDS, (False, "http", "timeout", None)),
        ("http", flood, TIMEOUT_SECONDS, (False, "http", "http-other", None)),
        ("http", answer("SSH-2.0-OpenSSH_9.2\r\n"), TIMEOUT_SECONDS, (False, "http", "http-other", None)),
        ("http", answer("HTTP/1.1 OK\r\n\r\n"), TIMEOUT_SECONDS, (False, "http", "http-other", None)),
        ("http", answer("HTTP/1.1 502 Bad Gateway\r\n\r\n"), TIMEOUT_SECONDS, (False, "http", "http-status", 502)),
        ("http", answer("HTTP/1.1 404 Not Found\r\n\r\n"), TIMEOUT_SECONDS, (False, "http", "http-status", 404)),
        ("http", answer("HTTP/1.1 503\r\n\r\n"), TIMEOUT_SECONDS, (False, "http", "http-status", 503)),
        ("http", answer("HTTP/1.1 401 Unauthorized\r\n\r\n"), TIMEOUT_SECONDS, (True, None, None, 401)),
        ("http", answer("HTTP/1.0 200\n\n"), TIMEOUT_SECONDS, (True, None, None, 200)),
        ("https", reset_after_reading, TIMEOUT_SECONDS, (False, "tls", "reset", None)),
        ("https", close_after_reading, TIMEOUT_SECONDS, (False, "tls", "reset", None)),
        ("https", stay_silent, SHORT_SECONDS, (False, "tls", "timeout", None)),
        ("https", answer("SSH-2.0-OpenSSH_9.2\r\n"), TIMEOUT_SECONDS, (False, "tls", "tls-other", None)),
        ("https", answer("HTTP/1.1 400 Bad Request\r\n\r\n"), TIMEOUT_SECONDS, (False, "tls", "plain-http", None)),
    ],
)
def test_servers_that_misbehave(
    scheme: str,
    behave: Callable[[socket.socket], None],
    timeout: float,
    expected: tuple[bool, str | None, str | None, int | None],
) -> None:
    with server(behave) as port:
        began = time.monotonic()
        fact = probe(f"{scheme}://127.0.0.1:{port}", timeout=timeout)
    assert outcome(fact) == expected
    assert time.monotonic() - began < timeout + 30


class Waking:
    """A clock that is ahead by the time the process was suspended."""

    def __init__(self) -> None:
        self.stopped = 0.0

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic() + self.stopped


@pytest.mark.parametrize("seconds", [0.0, 600.0])
def test_what_was_missed_while_we_were_stopped_is_no_word_about_a_registry(seconds: float) -> None:
    clock, asked = Waking(), threading.Event()

    def suspend(connection: socket.socket) -> None:
        connection.recv(4096)
        clock.stopped += seconds
        asked.set()  # and close

    with server(suspend) as port:
        collector = ProbesCollector((target(f"http://127.0.0.1:{port}"),), TIMEOUT_SECONDS, clock)
        facts = collector.collect()
    assert asked.is_set()
    assert [outcome(fact) for fact in facts] == ([] if seconds else [(False, "http", "reset", None)])


def test_the_status_line_is_the_error() -> None:
    with server(answer("HTTP/1.1 502 Bad Gateway\r\nServer: nginx\r\n\r\n<html>")) as port:
        assert probe(f"http://127.0.0.1:{port}").error == "502 Bad Gateway"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nobody_listens(scheme: str) -> None:
    fact = probe(f"{scheme}://127.0.0.1:{free_port()}")
    assert outcome(fact) == (False, "tcp", "refused", None)
    assert fact.address == "127.0.0.1"


def test_no_route() -> None:
    # The kernel refuses to connect to the broadcast address and sends nothing.
    assert outcome(probe("http://255.255.255.255:5000")) == (False, "tcp", "unreachable", None)


def test_packets_are_swallowed() -> None:
    with socket.socket() as listener, socket.socket() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting.connect(listener.getsockname())  # the queue is full: the kernel drops further connections
        fact = probe(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=SHORT_SECONDS)
    assert outcome(fact) == (False, "tcp", "timeout", None)


@pytest.mark.parametrize("url", ["http://a..b", f"http://{'a' * 64}.lab", "http://127.0.0.1:99999"])
def test_addresses_that_cannot_be(url: str) -> None:
    fact = probe(url)
    assert outcome(fact) == (False, "dns", "dns", None)
    assert fact.address is None


def test_a_name_that_does_not_exist() -> None:
    fact = probe("https://registry.invalid", timeout=2.0)
    assert (fact.ok, fact.stage) == (False, "dns")
    assert fact.cause in ("dns", "timeout"), "timeout where the resolver itself does not answer"


def test_credentials_are_neither_sent_nor_shown() -> None:
    received: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        received.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with server(behave) as port:
        fact = probe(f"http://robot:hunter2@127.0.0.1:{port}/")
    assert fact.ok
    assert fact.target == f"http://127.0.0.1:{port}/"
    (request,) = received
    assert request.startswith(b"GET /v2/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port)
    assert b"hunter2" not in request
    assert b"uthorization" not in request


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://harbor.lab", "https://harbor.lab"),
        ("https://u:p@harbor.lab:8443/", "https://harbor.lab:8443/"),
        ("https://u:p@x@harbor.lab", "https://harbor.lab"),
        ("https://harbor.lab/@", "https://harbor.lab/@"),
    ],
)
def test_urls_without_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_redirects_are_not_followed() -> None:
    asked = threading.Event()
    with server(lambda _: asked.set()) as elsewhere:
        redirect = answer(f"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:{elsewhere}/v2/\r\n\r\n")
        with server(redirect) as port:
            fact = probe(f"http://127.0.0.1:{port}")
    assert outcome(fact) == (False, "http", "http-status", 307)
    assert not asked.is_set()


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with server(answer("HTTP/1.1 200 OK\r\n\r\n")) as port:
        assert probe(f"http://127.0.0.1:{port}").ok


def test_dead_registries_cost_the_others_nothing() -> None:
    with server(stay_silent) as dead, server(answer("HTTP/1.1 200 OK\r\n\r\n")) as alive:
        urls = [f"http://127.0.0.1:{dead}", f"https://127.0.0.1:{dead}", f"http://127.0.0.1:{alive}"]
        facts = ProbesCollector(tuple(target(url) for url in urls), TIMEOUT_SECONDS).collect()
    assert facts[2].at < facts[0].at, "the registries are not probed in parallel"
    assert [fact.target for fact in facts] == urls
    assert [fact.ok for fact in facts] == [False, False, True]
    assert facts[2].duration_seconds is not None


def test_no_registries() -> None:
    with pytest.raises(AbsentError, match=r"agent\.registries"):
        ProbesCollector((), TIMEOUT_SECONDS).collect()


LOOKUP_TWICE = """
import json, os, sys, time, msgspec
from monitor.agent.collectors.probes import ProbesCollector
from monitor.agent.settings import RegistryTarget
targets = [RegistryTarget(url=url, ca_file=None, verify_tls=True) for url in sys.argv[1:]]
collector = ProbesCollector(tuple(targets), 10.0)
for _ in range(2):
    began = time.monotonic()
    facts = collector.collect()
    print(json.dumps([time.monotonic() - began, msgspec.to_builtins(facts)]), flush=True)
os._exit(0)  # do not wait for the lookup
"""


def test_a_resolver_that_never_answers(tmp_path: Path) -> None:
    """A lookup cannot be interrupted. With a name server that drops every query it takes 90 seconds here."""
    need(os.geteuid() == 0, "root")
    need(shutil.which("unshare") is not None, "unshare")
    (tmp_path / "resolv.conf").write_text("nameserver 127.9.9.9\noptions timeout:30 attempts:3\n")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as name_server,
        server(answer("HTTP/1.1 200 OK\r\n\r\n")) as alive,
    ):
        name_server.bind(("127.9.9.9", 53))
        command = f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec "$@"'
        urls = ["https://harbor.lab", f"http://127.0.0.1:{alive}"]
        ran = subprocess.run(
            ["unshare", "--mount", "sh", "-c", command, "sh", sys.executable, "-c", LOOKUP_TWICE, *urls],
            cwd=Path(__file__).parents[3],
            stdout=subprocess.PIPE,
            timeout=150,
            check=True,
        )
    (first_took, first), (second_took, second) = map(json.loads, ran.stdout.splitlines())
    assert 10 <= first_took < 60
    assert second_took < 10, "a lookup that has not returned is waited for again"
    for facts in (first, second):
        stuck, answered = facts
        assert (stuck["ok"], stuck["stage"], stuck["cause"]) == (False, "dns", "timeout")
        assert answered["ok"]


def test_tls_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, monitor.agent.collectors.probes; print('ssl' in sys.modules)"
    root = Path(__file__).parents[3]
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, check=True, timeout=300)
    assert ran.stdout == b"False\n"
