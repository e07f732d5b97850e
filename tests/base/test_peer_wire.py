"""Requests and replies as bytes: an ordinary reply is read as `http.client` reads it, any other by `http.client`."""

from __future__ import annotations

import http.client
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.base.peer_wire import ReplyError, encode_request, read_reply

MAX_BYTES = 1024**2
HEAD = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n"
PIECES = (
    b"HTTP/1.1 ", b"HTTP/1.0 ", b"200", b"204", b"299 OK", b"404 Not", b"700", b"100", b"\r\n", b"\n", b"\r\n\r\n",
    b"Content-Length: 5", b"content-length:3", b"Content-Length: -1", b"Content-Length: 5, 5", b"Content-Length:",
    b"Transfer-Encoding: chunked", b"Connection: close", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b" folded", b": ",
    b"X\xff: \xe9", b"A: b\nTransfer-Encoding: chunked", b"A: b\n\n", b"A: b\rC: d", b"A : b", b"\x00", b"\x85",
)  # fmt: skip


class Canned(io.BytesIO):
    """A socket from which these bytes arrive, a few at a time."""

    def __init__(self, data: bytes, at_once: int = 1 << 20) -> None:
        super().__init__(data)
        self._at_once = at_once

    def recv_into(self, buffer: Any) -> int:
        return self.readinto(memoryview(buffer)[: self._at_once])

    def makefile(self, _mode: str) -> io.BytesIO:
        return self


def _read(data: bytes, at_once: int = 1 << 20) -> tuple[int, bytes] | str:
    sock: Any = Canned(data, at_once)
    try:
        reply = read_reply(sock, "GET", MAX_BYTES)
    except (ReplyError, http.client.HTTPException, ValueError, ConnectionError):
        return "refused"
    return reply.status, reply.body


def _as_http_client(data: bytes) -> tuple[int, bytes] | str:
    sock: Any = Canned(data)
    response = http.client.HTTPResponse(sock, method="GET")
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.HTTPException, ValueError, ConnectionError):
        return "refused"


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 40))
def test_both_read_the_same(pieces: list[bytes], at_once: int) -> None:
    data, lines = b"".join(pieces), b"\r\n".join(pieces)
    for each in (data, HEAD + data, HEAD + b"\r\n" + data, HEAD + lines + b"\r\n\r\nhello", lines + b"\r\n" + HEAD):
        assert _read(each, at_once) == _as_http_client(each)


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (HEAD + b"\r\nhello", True),
        (HEAD + b"\r\nhello and more", False),
        (HEAD + b"Connection: close\r\n\r\nhello", False),
        (HEAD + b"connection: keep-alive, close\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", False),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", False),
    ],
)
def test_whether_the_connection_carries_more(data: bytes, more: bool) -> None:
    sock: Any = Canned(data)
    reply = read_reply(sock, "GET", MAX_BYTES)
    assert (reply.status, reply.body, reply.more) == (200, b"hello", more)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEAD + b"\r\nhel", "broke off after 3 bytes"),
        (HEAD.replace(b" 5", b" 1048577") + b"\r\n", "sent more than 1 MiB"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BYTES + 1), "sent more than 1 MiB"),
    ],
)
def test_a_reply_that_is_incomplete_or_too_large(data: bytes, words: str) -> None:
    sock: Any = Canned(data)
    with pytest.raises(ReplyError, match=words):
        read_reply(sock, "GET", MAX_BYTES)


def test_a_request() -> None:
    assert encode_request("a:1", "GET", "/x?y=%20", None, {"Accept": "a"}) == (
        b"GET /x?y=%20 HTTP/1.1\r\nHost: a:1\r\nAccept-Encoding: identity\r\nAccept: a\r\n\r\n"
    )
    assert encode_request("a:1", "POST", "/", b"{}", {}).endswith(b"\r\nContent-Length: 2\r\n\r\n{}")
    assert encode_request("a:1", "POST", "/", None, {}).endswith(b"\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/a b", {}), ("/a\r\nX: 1", {}), ("/\xe9", {}), ("/\x7f", {}), ("/", {"A": "b\r\nX: 1"}), ("/", {"A\n": "b"}),
     ("/", {"A": "\u4e2d"})],
)  # fmt: skip
def test_a_request_that_would_be_another_is_not_sent(path: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"a path|a header|latin-1"):
        encode_request("a:1", "GET", path, None, headers)
