"""TLS of the agent's server, with and without client certificates, and the daemon's side of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from monitor.agent.server import AgentServer
from monitor.agent.settings import TlsSettings
from monitor.base.peer_http import PeerTls
from monitor.cluster.agents.client import AgentError, SnapshotClient
from tests.support.certificates import Authority, authority
from tests.support.snapshots import full_snapshot


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls") / "foreign")


@pytest.fixture(scope="module", params=["agent", "agent-and-daemon"])
def server(request: pytest.FixtureRequest, ours: Authority) -> Iterator[AgentServer]:
    certificate, key = ours.sign("agent", "DNS:gpuwarden-agent")
    client_ca = ours.ca_file if request.param == "agent-and-daemon" else None
    tls = TlsSettings(cert_file=certificate, key_file=key, client_ca_file=client_ca)
    server = AgentServer("127.0.0.1", 0, None, full_snapshot, tls=tls)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mutual(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.callspec.params["server"] == "agent-and-daemon")


def target(server: AgentServer) -> str:
    host, port = server.address
    return f"{host}:{port}"


def fetch(server: AgentServer, tls: PeerTls | None, limit: float = 30.0) -> bytes:
    return SnapshotClient(limit, None, tls)(target(server))


def test_who_has_what_is_asked_for_is_answered(server: AgentServer, ours: Authority) -> None:
    certificate, key = ours.sign("daemon", "DNS:daemon")
    assert b"gpu-01" in fetch(server, PeerTls(ours.ca_file, certificate, key, "gpuwarden-agent"))


def test_who_has_no_certificate(server: AgentServer, ours: Authority, mutual: bool) -> None:
    tls = PeerTls(ours.ca_file, server_name="gpuwarden-agent")
    if not mutual:
        assert b"gpu-01" in fetch(server, tls)
        return
    with pytest.raises(AgentError):
        fetch(server, tls)


def test_who_has_a_certificate_of_somebody_else(
    server: AgentServer, ours: Authority, foreign: Authority, mutual: bool
) -> None:
    tls = PeerTls(ours.ca_file, *foreign.sign("daemon", "DNS:daemon"), "gpuwarden-agent")
    if not mutual:
        assert b"gpu-01" in fetch(server, tls)
        return
    with pytest.raises(AgentError):
        fetch(server, tls)


def test_an_agent_that_is_not_known(server: AgentServer, ours: Authority, foreign: Authority) -> None:
    certificate, key = ours.sign("daemon", "DNS:daemon")
    with pytest.raises(AgentError, match="certificate verify failed"):
        fetch(server, PeerTls(foreign.ca_file, certificate, key, "gpuwarden-agent"))
    with pytest.raises(AgentError, match="certificate verify failed"):
        fetch(server, PeerTls(ours.ca_file, certificate, key))  # the certificate is not for 127.0.0.1


def test_plain_http_is_not_answered(server: AgentServer) -> None:
    with pytest.raises(AgentError):
        fetch(server, None)
    with pytest.raises(requests.RequestException):
        requests.get(f"http://{target(server)}/healthz", timeout=60)


def test_one_that_does_not_shake_hands_holds_up_nobody(server: AgentServer, ours: Authority) -> None:
    certificate, key = ours.sign("daemon", "DNS:daemon")
    with socket.create_connection(server.address) as mute:
        assert b"gpu-01" in fetch(server, PeerTls(ours.ca_file, certificate, key, "gpuwarden-agent"), 60.0)
        mute.setblocking(False)
        with pytest.raises(BlockingIOError):  # still open: the other one was answered without waiting for its end
            mute.recv(1)


def test_shaking_hands_counts_in_the_limit(ours: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        host, port = mute.getsockname()[:2]
        started = time.monotonic()
        with pytest.raises(AgentError, match=r"no complete answer within 0\.3 s"):
            SnapshotClient(0.3, None, PeerTls(ours.ca_file))(f"{host}:{port}")
        assert time.monotonic() - started < 30


def test_files_that_cannot_be_used(ours: Authority, tmp_path: Path) -> None:
    certificate, _ = ours.sign("agent", "DNS:gpuwarden-agent")
    tls = TlsSettings(cert_file=certificate, key_file=str(tmp_path / "none"), client_ca_file=None)
    with pytest.raises(OSError, match=r"agent\.actions\.tls: a file cannot be used"):
        AgentServer("127.0.0.1", 0, None, full_snapshot, tls=tls)
    with pytest.raises(ValueError, match=r"daemon\.agents\.tls: a file cannot be used"):
        SnapshotClient(1.0, None, PeerTls(str(tmp_path / "none")))
