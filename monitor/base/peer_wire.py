"""Requests and replies of HTTP/1.1 as bytes.

Parsing an ordinary reply with `http.client` takes several times as long as the rest of an exchange. An ordinary reply
has one Content-Length; `http.client` reads every other one, and decides whether it is HTTP.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

RECEIVE_BYTES = 16 * 1024
_ORDINARY_STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d)(?: [^\r\n]*)?", re.ASCII)
_BODILESS = (204, 304)
_UNUSUAL = re.compile(rb"[^\t\x20-\x7e]")  # in a header; what is a line break to some is none to others
_ILLEGAL_IN_PATH = re.compile(r"[^\x21-\x7e]")
_ILLEGAL_IN_HEADER = re.compile(r"[\r\n\x00]")


class ReplyError(Exception):
    """A reply is incomplete or too large. The message never quotes the peer."""


@dataclass(frozen=True)
class PeerReply:
    """A complete reply, whatever its status. `more` says whether the connection can carry another exchange."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    more: bool = False


def encode_request(host: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    """A request. Raise ValueError if a part of it cannot be sent."""
    if _ILLEGAL_IN_PATH.search(path):
        raise ValueError("a path with a character that must be quoted")
    fields = {"Host": host, "Accept-Encoding": "identity", **headers}
    if body is not None or method == "POST":
        fields["Content-Length"] = str(len(body or b""))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if any(_ILLEGAL_IN_HEADER.search(line) for line in lines):
        raise ValueError("a header with a line break")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + (body or b"")


def read_reply(sock: socket.socket, method: str, max_bytes: int) -> PeerReply:
    """The reply to a request. Raise ReplyError, OSError, ValueError or HTTPException."""
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        chunk = _receive(sock) if len(received) < RECEIVE_BYTES else b""
        if not chunk:
            return _read_other(sock, received, method, max_bytes)
        received += chunk
    head = _ordinary_head(received[:end], method)
    if head is None:
        return _read_other(sock, received, method, max_bytes)
    status, headers, length = head
    start = received[end + 4 :]
    more = len(start) <= length and not any(name.lower() == "connection" for name in headers)
    return PeerReply(status, headers, _read_body(sock, start, length, max_bytes), more)


def _ordinary_head(head: bytes, method: str) -> tuple[int, dict[str, str], int] | None:
    """Status, headers and length of the body of an ordinary reply; None of any other."""
    first, *lines = head.split(b"\r\n")
    status = _ORDINARY_STATUS.fullmatch(first)
    if status is None or int(status[1]) in _BODILESS or method == "HEAD" or any(map(_UNUSUAL.search, lines)):
        return None
    pairs = [line.decode("latin-1").partition(":") for line in lines]
    headers = {name: value.strip(" \t") for name, _, value in pairs}
    lengths = [value.strip(" \t") for name, _, value in pairs if name.lower() == "content-length"]
    plain = all(
        colon and name and name.isascii() and name.isprintable() and " " not in name for name, colon, _ in pairs
    )
    if not plain or any(name.lower() == "transfer-encoding" for name in headers):
        return None
    if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) <= 18):
        return None
    return int(status[1]), headers, int(lengths[0])


def _read_body(sock: socket.socket, start: bytes, length: int, max_bytes: int) -> bytes:
    if length > max_bytes:
        raise ReplyError(_too_large(max_bytes))
    chunks, missing = [start[:length]], length - len(start)
    while missing > 0:
        chunk = _receive(sock, min(missing, RECEIVE_BYTES))
        if not chunk:
            raise ReplyError(f"broke off after {length - missing} bytes")
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)


def _read_other(sock: socket.socket, received: bytes, method: str, max_bytes: int) -> PeerReply:
    """Reply as `http.client` understands it, after a part was received."""
    replayed: Any = _ReplayedSocket(sock, received)
    with closing(http.client.HTTPResponse(replayed, method=method)) as response:
        response.begin()
        if (response.length or 0) > max_bytes:
            raise ReplyError(_too_large(max_bytes))
        body = response.read(max_bytes + 1)
        if len(body) > max_bytes:
            raise ReplyError(_too_large(max_bytes))
        if response.length:  # a partial read does not complain about the missing rest
            raise ReplyError(f"broke off after {len(body)} bytes")
        return PeerReply(response.status, dict(response.headers), body)


class _ReplayedSocket(io.RawIOBase):
    """A socket for `http.client`, with what was already received in front."""

    def __init__(self, sock: socket.socket, received: bytes) -> None:
        self._sock = sock
        self._received = received

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._received:
            return self._sock.recv_into(buffer)
        start, self._received = self._received[: len(buffer)], self._received[len(buffer) :]
        buffer[: len(start)] = start
        return len(start)


def _receive(sock: socket.socket, max_bytes: int = RECEIVE_BYTES) -> bytes:
    buffer = bytearray(max_bytes)
    return bytes(buffer[: sock.recv_into(buffer)])


def _too_large(max_bytes: int) -> str:
    return f"sent more than {max_bytes // 1024**2} MiB"
