# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monitor.facts.services import ServiceFact
from monitor.probes.runner import MAX_ABANDONED, ProbeError, ServiceProbes, ServiceTarget, run_probe
from monitor.probes.tcp import network_error
from tests.agent.registries import Authority, registry
from tests.agent.servers import answer, drip, flood, reset_after_reading, server, stay_silent
from tests.support import free_port, wait_until
from tests.support.fake_agents import Behaviour, FakeAgent, answers

LIMIT = 30.0
SOON = 30.0


def target(kind: str, url: str, **more: Any) -> ServiceTarget:
    defaults: dict[str, Any] = {"limit": LIMIT, "interval": 60.0}
    return ServiceTarget(name="it", kind=kind, url=url, **(defaults | more))


@contextmanager
def probing(service: ServiceTarget, probe: Callable[[ServiceTarget], None] = run_probe) -> Iterator[ServiceProbes]:
    probes = ServiceProbes([service], probe)
    probes.start()
    try:
        yield probes
    finally:
        probes.stop()


def fact_of(service: ServiceTarget) -> ServiceFact:
    """Result of the first probe of a service."""
    with probing(service) as probes:
        probes.wait_first_round(service.limit + SOON)
        return probes.facts()[0]


def health(**statuses: str) -> Behaviour:
    parts = [
        {"name": name, "status": status, "error": "" if status == "healthy" else "dial tcp: refused"}
        for name, status in statuses.items()
    ]
    whole = "healthy" if all(status == "healthy" for status in statuses.values()) else "unhealthy"
    return answers(json.dumps({"status": whole, "components": parts}).encode())


def moved(to: str) -> Behaviour:
    return answers(b"", 302, Location=to)


PAGES: list[tuple[str, str, Behaviour, dict[str, Any], str | None, str]] = [
    ("a page", "http", answers(b"welcome"), {}, None, ""),
    ("bad gateway", "http", answers(b"upstream is gone", 502), {}, "status", "502 Bad Gateway: upstream is gone"),
    ("bad gateway as HTML", "http", answers(b"<html><h1>502</h1>", 502), {}, "status", "502 Bad Gateway"),
    ("an accepted status", "http", answers(b"", 401), {"status": (200, 401)}, None, ""),
    ("a status that is not accepted", "http", answers(b"", 204), {"status": (200,)}, "status", "204"),
    ("the text is there", "http", answers("欢迎".encode()), {"contains": "欢迎"}, None, ""),
    ("the text is not there", "http", answers(b"maintenance"), {"contains": "welcome"}, "status", "does not contain 'welcome'"),
    ("a redirect to another host is not followed", "http", moved("http://192.0.2.1/login"), {}, None, ""),
    ("a redirect to itself", "http", moved("/"), {}, "error", "redirects"),
    ("a registry", "registry", answers(b"{}"), {}, None, ""),
    ("a registry that wants a login", "registry", answers(b"{}", 401), {}, None, ""),
    ("no registry", "registry", answers(b"{}", 404), {}, "status", "404"),
    ("Harbor is healthy", "harbor", health(core="healthy", database="healthy"), {}, None, ""),
    ("parts of Harbor are not", "harbor", health(core="healthy", redis="unhealthy", database="unhealthy"), {}, "component", "redis: dial tcp: refused; database: dial tcp: refused"),
    ("Harbor is unhealthy and does not say why", "harbor", answers(b'{"status": "unhealthy"}'), {}, "component", "unhealthy"),
    ("not Harbor", "harbor", answers(b"[1]"), {}, "error", "not Harbor"),
    ("Harbor behind a proxy that cannot reach it", "harbor", answers(b"", 503), {}, "status", "503"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "behave", "more", "cause", "says"), PAGES, ids=[row[0] for row in PAGES])
def test_a_page(name: str, kind: str, behave: Behaviour, more: dict[str, Any], cause: str | None, says: str) -> None:
    with FakeAgent(behave) as site:
        fact = fact_of(target(kind, f"http://{site.target}", **more))
    assert (fact.ok, fact.cause) == (cause is None, cause)
    assert says in (fact.detail or "")
    assert fact.latency_seconds is not None
    assert site.paths[0] == {"registry": "/v2/", "harbor": "/api/v2.0/health"}.get(kind, "/")


def test_what_harbor_says_is_named() -> None:
    with FakeAgent(health(redis="unhealthy", database="unhealthy", core="healthy")) as site:
        assert fact_of(target("harbor", f"http://{site.target}/")).component == "database, redis"


def test_a_redirect_on_the_same_host_is_followed() -> None:
    def behave(handler: Any) -> None:
        (moved("/login") if handler.path == "/" else answers(b"please log in"))(handler)

    with FakeAgent(behave) as site:
        assert fact_of(target("http", f"http://{site.target}/", contains="log in")).ok
        assert site.paths[:2] == ["/", "/login"]


BROKEN: list[tuple[str, Callable[[Any], object], str]] = [
    ("silent", stay_silent, "timeout"),
    ("a byte now and then", drip, "timeout"),
    ("a flood without an end", flood, "error"),
    ("reset", reset_after_reading, "error"),
    ("no HTTP", answer("SSH-2.0-OpenSSH\r\n"), "error"),
]


@pytest.mark.parametrize(("name", "behave", "cause"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_server_that_misbehaves(name: str, behave: Callable[[Any], object], cause: str) -> None:
    with server(behave) as port:
        fact = fact_of(target("http", f"http://127.0.0.1:{port}", limit=0.5 if cause == "timeout" else LIMIT))
    assert (fact.ok, fact.cause) == (False, cause)
    assert fact.detail


@pytest.mark.parametrize("kind", ["http", "tcp", "harbor", "registry"])
@pytest.mark.parametrize(("host", "cause"), [("127.0.0.1", "refused"), ("no-such-host.invalid", "dns")])
def test_nobody_there(kind: str, host: str, cause: str) -> None:
    scheme = "tcp" if kind == "tcp" else "http"
    fact = fact_of(target(kind, f"{scheme}://{host}:{free_port()}", limit=60.0))
    assert (fact.ok, fact.cause) == (False, cause)


def test_a_port_that_takes_connections() -> None:
    with server(stay_silent) as port:
        assert fact_of(target("tcp", f"tcp://127.0.0.1:{port}")).ok


def test_certificates_of_a_real_registry(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    good = authority.issue("good", "IP:127.0.0.1", 2)
    with registry(tmp_path / "registry", tls=good) as port:
        url = f"https://127.0.0.1:{port}"
        untrusted = fact_of(target("registry", url))
        trusted = fact_of(target("registry", url, ca_file=str(authority.certificate)))
        unchecked = fact_of(target("registry", url, verify_tls=False))
        wrong = fact_of(target("registry", url.replace("https", "http")))
    assert (untrusted.cause, trusted.ok, wrong.ok) == ("tls", True, False)
    assert "issuer" in (untrusted.detail or "") or "self" in (untrusted.detail or "")
    assert unchecked.ok


def test_plain_http_where_tls_is_expected() -> None:
    with FakeAgent(answers(b"")) as site:
        assert fact_of(target("http", f"https://{site.target}")).cause == "tls"


def test_since_when_it_fails_is_kept_until_it_is_well() -> None:
    with (
        FakeAgent(answers(b"", 500)) as site,
        probing(target("http", f"http://{site.target}", interval=0.05)) as probes,
    ):
        probes.wait_first_round(SOON)
        first = probes.facts()[0]
        assert first.failing_since is not None
        assert abs(first.failing_since - time.time()) < SOON
        wait_until(lambda: probes.facts()[0].at > first.at, SOON, "it is probed again")
        assert probes.facts()[0].failing_since == first.failing_since
        site.behave = answers(b"")
        wait_until(lambda: probes.facts()[0].ok, SOON, "it is healthy again")
        assert probes.facts()[0].failing_since is None


def test_one_that_hangs_is_left_behind_a_few_times_and_comes_back() -> None:
    release, calls = threading.Event(), []

    def hang(_: ServiceTarget) -> None:
        calls.append(1)
        release.wait(120)

    with probing(target("tcp", "tcp://x:1", limit=0.05, interval=0.05), hang) as probes:
        wait_until(lambda: len(calls) == MAX_ABANDONED, SOON, "as many attempts as allowed")
        seen = probes.facts()[0].at
        wait_until(lambda: probes.facts()[0].at > seen + 0.3, SOON, "more intervals have passed")
        assert (len(calls), probes.facts()[0].cause) == (MAX_ABANDONED, "timeout")
        release.set()
        wait_until(lambda: probes.facts()[0].ok, SOON, "it is healthy again")


def hangs(_target: ServiceTarget) -> None:
    time.sleep(30.0)


def breaks(_target: ServiceTarget) -> None:
    raise ProbeError("timeout", "timed out")


def healthy(_target: ServiceTarget) -> None:
    pass


@pytest.mark.parametrize(
    ("name", "probe", "pause", "expect"),
    [
        ("hung, and we ran", hangs, 0.0, ["timeout"]),
        ("hung, as far as we know", hangs, 600.0, []),
        ("broke off, and we ran", breaks, 0.0, ["timeout"]),
        ("broke off after we had stood still", breaks, 600.0, []),
        ("was healthy all the same", healthy, 600.0, [None]),
    ],
)  # fmt: skip
def test_what_we_missed_while_we_were_stopped_is_not_held_against_a_service(
    name: str, probe: Callable[[ServiceTarget], None], pause: float, expect: list[str | None]
) -> None:
    """The clock continues while a process is stopped, so that an attempt seems to end late."""
    clock = SimpleNamespace(time=time.time, monotonic=lambda: pause)
    probes = ServiceProbes([target("http", "http://it", limit=0.2)], probe, clock)
    service = probes._probes[0]
    service.fact = service._attempt(0.0)
    assert [fact.cause for fact in probes.facts()] == expect, name


@pytest.mark.parametrize(
    ("name", "set_by", "expect"), [("goes on", 0.0, 40.0), ("back", -600.0, 40.0), ("ahead", 600.0, 40.0)]
)
def test_a_clock_that_is_set_does_not_change_for_how_long_it_fails(name: str, set_by: float, expect: float) -> None:
    now = SimpleNamespace(wall=1e9, up=50.0)
    clock = SimpleNamespace(time=lambda: now.wall, monotonic=lambda: now.up)
    probe = ServiceProbes([target("http", "http://it")], breaks, clock)._probes[0]
    probe.fact = probe._attempt(now.up)
    now.wall, now.up = now.wall + 40.0 + set_by, now.up + 40.0
    probe.fact = fact = probe._attempt(now.up)
    assert fact is not None
    assert fact.at - (fact.failing_since or 0.0) == pytest.approx(expect), name


def test_one_that_hangs_costs_the_others_nothing() -> None:
    release = threading.Event()

    def probe(service: ServiceTarget) -> None:
        if service.name == "hangs":
            release.wait(120)

    targets = [ServiceTarget(name=name, kind="tcp", url="tcp://x:1", limit=60) for name in ("hangs", "healthy")]
    probes = ServiceProbes(targets, probe)
    probes.start()
    try:
        wait_until(
            lambda: [(fact.name, fact.ok) for fact in probes.facts()] == [("healthy", True)], SOON, "one is healthy"
        )
    finally:
        release.set()
        probes.stop()


def test_a_mistake_is_a_fact_about_the_service() -> None:
    def mistake(_: ServiceTarget) -> None:
        raise ZeroDivisionError("division by zero")

    with probing(target("tcp", "tcp://x:1"), mistake) as probes:
        probes.wait_first_round(SOON)
        assert (probes.facts()[0].cause, probes.facts()[0].detail) == ("error", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://admin@db.lab:5432/jobs", "postgresql://db.lab:5432/jobs"),
        ("https://portal.lab/login?token=s3cret", "https://portal.lab/login"),
        ("tcp://[::1]:22", "tcp://[::1]:22"),
    ],
)
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    assert target("http", url).shown == shown


def test_a_password_is_in_no_representation() -> None:
    assert "s3cret" not in repr(target("postgresql", "postgresql://db", password="s3cret"))


def test_an_error_that_wraps_itself_is_understood() -> None:
    error = OSError("odd")
    error.__cause__ = error
    assert isinstance(network_error(error), ProbeError)
