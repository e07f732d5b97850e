"""One question to one agent, over a real connection: bounded in time and size; its text is not repeated."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from monitor.cluster.agents.client import AgentError, SnapshotClient
from tests.support import need
from tests.support.fake_agents import (
    Behaviour,
    FakeAgent,
    answers,
    full_house,
    reports,
    resets,
    says,
    says_nothing,
    sends,
    sends_chunks,
    trickles,
    trickles_chunks,
    trickles_headers,
)

SECRET = "s3cret-t0ken"


@pytest.mark.parametrize(
    ("name", "behave", "limit", "words"),
    [
        ("says nothing", says_nothing, 0.3, "no complete answer within 0.3 s"),
        ("trickles its headers", trickles_headers, 0.3, "no complete answer within 0.3 s"),
        ("trickles its body", trickles, 0.3, "no complete answer within 0.3 s"),
        ("trickles chunks", trickles_chunks, 0.3, "no complete answer within 0.3 s"),
        ("announces 9 MiB", sends(1, Content_Length=9 * 1024**2), 60, "sent more than 8 MiB"),
        ("sends 9 MiB unannounced", sends(9), 60, "sent more than 8 MiB"),
        ("sends 9 MiB in chunks", sends_chunks(9), 60, "sent more than 8 MiB"),
        ("wants a token", answers(b"{}", 401), 60, "answered 401 Unauthorized"),
        ("is broken", answers(b"oops", 500, "Out of \x1b[31mluck"), 60, "answered 500 Internal Server Error"),
        ("answers with a number nobody knows", answers(b"", 799), 60, "answered 799"),
        ("hangs up in the body", answers(b"{" * 10, Content_Length=1000), 60, "broke off after 10 bytes"),
        ("hangs up in a chunk", says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"), 60,
         "broke off in the middle of the answer"),
        ("hangs up at once", says(b""), 60, "Remote end closed connection without response"),
        ("resets", resets, 60, "Connection reset by peer"),
        ("speaks another protocol", says(b"SSH-2.0-OpenSSH_9.2\r\n"), 60,
         "what answered speaks no HTTP (BadStatusLine)"),
        ("has endless headers", says(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200), 60,
         "what answered speaks no HTTP (HTTPException)"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_had(name: str, behave: Behaviour, limit: float, words: str) -> None:
    with FakeAgent(behave) as agent:
        began = time.monotonic()
        with pytest.raises(AgentError) as refused:
            SnapshotClient(limit, None)(agent.target)
        assert str(refused.value) == words
        assert time.monotonic() - began < 30


def test_connecting_counts_too() -> None:
    with full_house() as target:
        began = time.monotonic()
        with pytest.raises(AgentError, match=r"no complete answer within 0\.3 s"):
            SnapshotClient(0.3, None)(target)
        assert 0.25 < time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:port", "InvalidURL"),
        (f"{'a' * 70}.lab:1", "UnicodeError"),
    ],
)
def test_nobody_there(target: str, words: str) -> None:
    with pytest.raises(AgentError, match=words):
        SnapshotClient(60, None)(target)


def test_an_address_of_version_6() -> None:
    need(socket.has_ipv6 and "lo" in Path("/proc/net/if_inet6").read_text(), "IPv6 on loopback")
    with FakeAgent(reports("gpu-01"), host="::1") as agent:
        assert agent.target.startswith("[::1]:")
        assert b"gpu-01" in SnapshotClient(60, None)(agent.target)


def test_a_redirect_is_not_followed() -> None:
    with FakeAgent(reports("elsewhere")) as other:
        away = answers(b"", 302, Location=f"http://{other.target}/v1/snapshot")
        with FakeAgent(away) as agent, pytest.raises(AgentError, match="answered 302 Found"):
            SnapshotClient(60, SECRET)(agent.target)
        assert other.asked == []


def test_proxies_of_the_environment_are_not_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeAgent(reports("the proxy")) as proxy, FakeAgent(reports("gpu-01")) as agent:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.target}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert b"gpu-01" in SnapshotClient(60, None)(agent.target)
        assert proxy.asked == []


def test_the_token_is_sent_to_the_agent() -> None:
    with FakeAgent(reports("gpu-01")) as agent:
        SnapshotClient(60, SECRET)(agent.target)
        SnapshotClient(60, None)(agent.target)
    assert [headers.get("authorization") for headers in agent.headers] == [f"Bearer {SECRET}", None]
    assert set(agent.paths) == {"/v1/snapshot"}


def test_one_that_hangs_up_slowly_holds_up_nobody() -> None:
    hanging_up, go_on = threading.Event(), threading.Event()

    class Slow(socket.socket):
        def close(self) -> None:
            hanging_up.set()
            go_on.wait(120)
            super().close()

    fetch = SnapshotClient(60, None)
    thread = threading.Thread(target=fetch._client._hang_up, args=(Slow(),), daemon=True)
    thread.start()
    assert hanging_up.wait(60)
    try:
        with FakeAgent(reports("gpu-01")) as agent:
            answered = threading.Thread(target=fetch, args=(agent.target,), daemon=True)
            answered.start()
            answered.join(60)
            assert not answered.is_alive()
    finally:
        go_on.set()
        thread.join(60)
