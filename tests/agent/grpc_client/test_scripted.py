"""Responses that a real gRPC server gives rarely or never."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from monitor.agent.grpc_client.channel import GrpcChannel
from monitor.agent.grpc_client.status import (
    ConnectionLostError,
    GrpcConnectError,
    GrpcError,
    GrpcStatus,
    GrpcStatusError,
    GrpcTimeoutError,
)
from monitor.agent.runtime.proto import cri_pb2 as pb
from tests.agent.grpc_client.scripted import HEADERS, OK, Script, Stream, framed, scripted, scripted_early

PATH = "/runtime.v1.RuntimeService/Version"
VERSION = pb.VersionResponse(runtime_name="containerd", runtime_version="2.0.0")
ENCODED = VERSION.SerializeToString()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


def ask(
    channel: GrpcChannel, timeout: float = 20.0, *, repeatable: bool = True, namespace: str = ""
) -> pb.VersionResponse:
    metadata = (("containerd-namespace", namespace),) if namespace else ()
    request = pb.VersionRequest()
    return channel.call(PATH, request, pb.VersionResponse, timeout, metadata=metadata, repeatable=repeatable)


def answers(stream: Stream) -> None:
    stream.respond(ENCODED)


def hangs_up(stream: Stream) -> None:
    stream.hang_up()


def hangs_up_midway(stream: Stream) -> None:
    stream.headers()
    stream.data(framed(ENCODED)[:7])
    stream.hang_up()


def shuts_down(stream: Stream) -> None:
    stream.goaway(last_stream_id=stream.number)


def shuts_down_without_it(stream: Stream) -> None:
    stream.goaway(last_stream_id=0)


def says_nothing(stream: Stream) -> None:
    stream.stopped.wait(60)


def resets(code: ErrorCodes) -> Script:
    return lambda stream: stream.reset(code)


def test_one_connection_serves_many_calls(path: str) -> None:
    with scripted(path, answers) as server:
        channel = GrpcChannel(path)
        for _ in range(50):
            assert ask(channel, namespace="k8s.io") == VERSION
        assert server.connections == 1
        channel.close()
    request = server.received[-1]
    assert bytes(request.body) == framed(b"")
    timeout = request.headers.pop("grpc-timeout")
    assert timeout[-1] == "m"
    assert 0 < int(timeout[:-1]) <= 20_000
    assert request.headers.pop("user-agent").startswith("gpuwarden/")
    assert request.headers == {
        ":method": "POST",
        ":scheme": "http",
        ":path": PATH,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        "containerd-namespace": "k8s.io",
    }


@pytest.mark.parametrize(
    "loss", [hangs_up, hangs_up_midway, shuts_down, shuts_down_without_it, resets(ErrorCodes.REFUSED_STREAM)]
)
def test_a_read_is_repeated_once_on_a_new_connection(loss: Script, path: str) -> None:
    with scripted(path, loss, answers) as server:
        assert ask(GrpcChannel(path)) == VERSION
    assert server.connections == 2
    assert len(server.received) == 2


@pytest.mark.parametrize("loss", [hangs_up, shuts_down])
def test_a_read_is_not_repeated_twice(loss: Script, path: str) -> None:
    with scripted(path, loss) as server, pytest.raises(ConnectionLostError, match="UNAVAILABLE: "):
        ask(GrpcChannel(path))
    assert len(server.received) == 2


@pytest.mark.parametrize("loss", [hangs_up, hangs_up_midway, shuts_down])
def test_what_may_have_been_done_is_not_repeated(loss: Script, path: str) -> None:
    with scripted(path, loss, answers) as server, pytest.raises(ConnectionLostError):
        ask(GrpcChannel(path), repeatable=False)
    assert len(server.received) == 1


@pytest.mark.parametrize("loss", [shuts_down_without_it, resets(ErrorCodes.REFUSED_STREAM)])
def test_what_the_server_has_not_begun_is_always_repeated(loss: Script, path: str) -> None:
    with scripted(path, loss, answers) as server:
        assert ask(GrpcChannel(path), repeatable=False) == VERSION
    assert len(server.received) == 2


@pytest.mark.parametrize("end", [hangs_up, shuts_down])
def test_a_connection_that_ended_while_idle_costs_no_call(end: Script, path: str) -> None:
    ended = threading.Event()

    def answers_and_ends(stream: Stream) -> None:
        stream.respond(ENCODED)
        end(stream)
        ended.set()

    with scripted(path, answers_and_ends, answers) as server:
        channel = GrpcChannel(path)
        assert ask(channel, repeatable=False) == VERSION
        assert ended.wait(60)
        assert ask(channel, repeatable=False) == VERSION
    assert len(server.received) == 2
    assert server.connections == 2


def test_a_connection_that_is_never_quiet_is_replaced(path: str) -> None:
    """Its frames are not read for longer than a few calls to the system, before any deadline applies."""
    full = threading.Event()

    def answers_and_floods(stream: Stream) -> None:
        stream.respond(ENCODED)
        stream.sock.settimeout(0.2)
        pings = b"".join(b"\0\0\x08\x06\0\0\0\0\0" + bytes(8) for _ in range(10_000))
        with contextlib.suppress(OSError):
            while not stream.stopped.is_set():
                try:
                    stream.sock.sendall(pings)
                except TimeoutError:
                    full.set()

    with scripted(path, answers_and_floods, answers) as server:
        channel = GrpcChannel(path)
        assert ask(channel) == VERSION
        assert full.wait(60)
        assert ask(channel) == VERSION
    assert len(server.received) == 2


def test_a_response_before_the_request_is_complete(tmp_path: Path) -> None:
    path, request = str(tmp_path / "s"), pb.ImageSpec(image="x" * 1_000_000)
    with scripted_early(path, fails(("grpc-status", "8"))) as server:
        channel = GrpcChannel(path)
        for _ in range(2):
            with pytest.raises(GrpcStatusError, match="RESOURCE_EXHAUSTED"):
                channel.call(PATH, request, pb.ImageSpec, 20.0)
    assert server.connections == 2


def test_a_response_and_the_end_of_the_connection_at_once(path: str) -> None:
    def at_once(stream: Stream) -> None:
        stream.h2.send_headers(stream.number, list(HEADERS))
        stream.h2.send_data(stream.number, framed(ENCODED))
        stream.h2.send_headers(stream.number, list(OK), end_stream=True)
        stream.goaway(stream.number)
        stream.hang_up()

    with scripted(path, at_once) as server:
        channel = GrpcChannel(path)
        assert [ask(channel), ask(channel)] == [VERSION, VERSION]
    assert len(server.received) == 2


def fails(*headers: tuple[str, str]) -> Script:
    return lambda stream: stream.headers((*HEADERS, *headers), end=True)


@pytest.mark.parametrize(
    ("headers", "code", "details"),
    [
        ((("grpc-status", "5"), ("grpc-message", "no such thing")), GrpcStatus.NOT_FOUND, "no such thing"),
        ((("grpc-status", "14"),), GrpcStatus.UNAVAILABLE, ""),
        ((("grpc-status", "2"), ("grpc-message", "caf%C3%A9 100%25")), GrpcStatus.UNKNOWN, "café 100%"),
        ((("grpc-status", "2"), ("grpc-message", "50% of %zz %ff")), GrpcStatus.UNKNOWN, "50% of %zz \ufffd"),
        ((("grpc-status", "99"), ("grpc-message", "new")), GrpcStatus.UNKNOWN, "new"),
        ((("grpc-status", "many"),), GrpcStatus.UNKNOWN, ""),
    ],
)
def test_a_status_without_a_message(
    headers: tuple[tuple[str, str], ...], code: GrpcStatus, details: str, path: str
) -> None:
    with scripted(path, fails(*headers), answers) as server:
        channel = GrpcChannel(path)
        with pytest.raises(GrpcStatusError) as caught:
            ask(channel)
        assert (caught.value.code, caught.value.details) == (code, details)
        assert ask(channel) == VERSION
    assert server.connections == 1  # a status is an answer


def test_a_status_after_a_message(path: str) -> None:
    def script(stream: Stream) -> None:
        stream.headers()
        stream.data(framed(ENCODED))
        stream.headers((("grpc-status", "13"), ("grpc-message", "late")), end=True)

    with scripted(path, script), pytest.raises(GrpcStatusError, match="INTERNAL: late"):
        ask(GrpcChannel(path))


def body(*parts: bytes, trailers: tuple[tuple[str, str], ...] = OK) -> Script:
    def script(stream: Stream) -> None:
        stream.headers()
        for part in parts:
            stream.data(part)
        stream.headers(trailers, end=True)

    return script


def ends_without_trailers(stream: Stream) -> None:
    stream.headers()
    stream.data(framed(ENCODED), end=True)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (body(framed(ENCODED, compressed=True)), "INTERNAL: the response is compressed, which was not offered"),
        (body(framed(bytes(4))[:5]), "INTERNAL: the response ends before its message does"),
        (body(b"\0\0"), "INTERNAL: the response ends before its message does"),
        (body(), "INTERNAL: the response ends before its message does"),
        (body(framed(ENCODED), framed(ENCODED)), "INTERNAL: the response has more than one message"),
        (body(framed(bytes(2000))[:5]), "RESOURCE_EXHAUSTED: the response has 2000 bytes, more than 1000"),
        (body(framed(b"\xff\xff")), "INTERNAL: the response cannot be decoded"),
        (body(framed(ENCODED), trailers=(("x", "y"),)), "INTERNAL: the response has no status"),
        (ends_without_trailers, "INTERNAL: the response has no status"),
        (lambda stream: stream.headers(((":status", "503"),), end=True), "UNAVAILABLE: HTTP status 503"),
        (lambda stream: stream.headers(((":status", "404"),), end=True), "UNIMPLEMENTED: HTTP status 404"),
        (lambda stream: stream.headers(((":status", "302"),), end=True), "UNKNOWN: HTTP status 302"),
        (
            lambda stream: stream.headers(((":status", "200"), ("content-type", "text/html")), end=True),
            "UNKNOWN: unexpected content type 'text/html'",
        ),
        (resets(ErrorCodes.CANCEL), "CANCELLED: the server reset the stream: 8"),
        (resets(ErrorCodes.ENHANCE_YOUR_CALM), "RESOURCE_EXHAUSTED: the server reset the stream: 11"),
        (resets(ErrorCodes.INTERNAL_ERROR), "INTERNAL: the server reset the stream: 2"),
        (fails(("x", "y" * 70_000), *OK), "UNAVAILABLE: HTTP/2: "),
    ],
)
def test_a_response_that_is_refused(script: Script, text: str, path: str) -> None:
    with scripted(path, script, script, answers) as server:
        channel = GrpcChannel(path, max_message_bytes=1000)
        with pytest.raises(GrpcError) as caught:
            ask(channel)
        assert str(caught.value).startswith(text)
        server.scripts[:] = [answers]
        assert ask(channel) == VERSION


def test_a_response_that_trickles_does_not_extend_the_deadline(path: str) -> None:
    def trickles(stream: Stream) -> None:
        stream.headers()
        while not stream.stopped.wait(0.02):
            stream.h2.ping(b"12345678")
            stream.flush()

    with scripted(path, trickles):
        began = time.monotonic()
        with pytest.raises(GrpcTimeoutError, match=r"DEADLINE_EXCEEDED: no response within 0\.3 s"):
            ask(GrpcChannel(path), timeout=0.3)
        assert 0.3 <= time.monotonic() - began < 15


def test_the_deadline_holds_for_the_repetition_too(path: str) -> None:
    with scripted(path, hangs_up, says_nothing), pytest.raises(GrpcTimeoutError):
        ask(GrpcChannel(path), timeout=0.3)


def test_a_server_that_does_not_accept_connections(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)  # the queue is full
        with pytest.raises(GrpcTimeoutError):
            ask(GrpcChannel(path), timeout=0.3)


def speaks_http_1(stream: Stream) -> None:
    stream.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    stream.hang_up()


def sends_a_frame_beyond_the_limit(stream: Stream) -> None:
    frame_type, flags, number = b"\0", b"\0", stream.number.to_bytes(4, "big")
    stream.sock.sendall((20_000).to_bytes(3, "big") + frame_type + flags + number + bytes(20_000))


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (speaks_http_1, "(connection closed|.*reset by peer)"),
        (sends_a_frame_beyond_the_limit, "HTTP/2: Received overlong frame"),
    ],
)
def test_a_server_of_another_protocol(script: Script, text: str, path: str) -> None:
    with scripted(path, script), pytest.raises(ConnectionLostError, match=f"UNAVAILABLE: {text}"):
        ask(GrpcChannel(path))


def test_no_server(path: str) -> None:
    with pytest.raises(GrpcConnectError, match=r"UNAVAILABLE: cannot connect: .*No such file"):
        ask(GrpcChannel(path))
