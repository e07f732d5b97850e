"""HTTP between the product's own processes: daemon to agent, CLI to daemon.

One deadline covers the whole exchange: connecting, TLS, and every byte that trickles in. Client libraries limit only
the silence between two bytes, so this uses the standard library with sockets that know their deadline. It uses no
proxy, follows no redirect (credentials are for the peer alone) and keeps no connection open: a thousand idle
connections cost more than a thousand handshakes.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from monitor.base.deadline_socket import DeadlineSocket
from monitor.base.net import break_off
from monitor.base.threads import with_deadline


class PeerError(Exception):
    """The exchange failed. The message never quotes the peer, which may have sent anything."""


class PeerTimeoutError(PeerError):
    """The exchange was not complete at its deadline."""


@dataclass(frozen=True)
class PeerTls:
    """TLS towards a peer. The certificate must be for `server_name`, or else for the address."""

    ca_file: str
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None

    def context(self) -> ssl.SSLContext:
        """TLS context for a client. Raise ValueError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(self.ca_file)
            if self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:  # also SSLError
            raise ValueError(f"daemon.agents.tls: a file cannot be used: {error}") from None
        return context


@dataclass(frozen=True)
class PeerReply:
    """A complete reply, whatever its status."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class PeerClient:
    """Makes requests from any number of threads until it is closed."""

    def __init__(
        self, timeout: float, max_bytes: int, context: ssl.SSLContext | None = None, server_name: str | None = None
    ) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._context = context
        if context is not None:
            context.sslsocket_class = _DeadlineTlsSocket
        self._server_name = server_name
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False

    def request(
        self, target: str, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> PeerReply:
        """Send one request to host:port, and return its reply. Raise PeerError."""
        deadline = time.monotonic() + self._timeout
        with _as_peer_error(self._timeout), closing(http.client.HTTPConnection(target)) as connection:
            sock = self._connect(connection.host, connection.port, deadline)
            try:
                connection.sock = sock = self._secure(sock, connection.host, deadline)
                connection.request(method, path, body, {"Connection": "close", **(headers or {})})
                with closing(connection.getresponse()) as response:
                    return PeerReply(response.status, dict(response.headers), self._read(response))
            finally:
                self._hang_up(sock)

    def close(self) -> None:
        """Break off all exchanges and refuse new ones."""
        with self._lock:
            self._closed = True
            for sock in self._open:
                break_off(sock)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        if (response.length or 0) > self._max_bytes:
            raise PeerError(_too_large(self._max_bytes))
        body = response.read(self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise PeerError(_too_large(self._max_bytes))
        if response.length:  # a partial read does not complain about the missing rest
            raise PeerError(f"broke off after {len(body)} bytes")
        return body

    def _connect(self, host: str, port: int, deadline: float) -> socket.socket:
        """Connection to the first address that accepts one. Raise OSError."""
        failure = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in _addresses(host, port, deadline):
            sock = DeadlineSocket(family, kind, protocol)
            sock.deadline = deadline
            try:
                self._register(sock)
                sock.connect(address)
            except OSError as error:
                self._hang_up(sock)
                failure = error
            else:
                return sock
        raise failure

    def _secure(self, sock: socket.socket, host: str, deadline: float) -> socket.socket:
        if self._context is None:
            return sock
        name = self._server_name or host
        secured = self._context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
        assert isinstance(secured, _DeadlineTlsSocket)
        secured.deadline = deadline
        try:
            self._register(secured)
            secured.do_handshake()
        except BaseException:
            self._hang_up(secured)
            raise
        finally:
            self._hang_up(sock)  # its descriptor now belongs to the secured socket
        return secured

    def _register(self, sock: socket.socket) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("stopping")
            self._open.add(sock)

    def _hang_up(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
        sock.close()  # outside the lock: closing lets other threads run, and all of them would wait for the lock


class _DeadlineTlsSocket(DeadlineSocket, ssl.SSLSocket):
    """The same with TLS."""

    def do_handshake(self, block: bool = False) -> None:
        self.limit()
        super().do_handshake(block)


def _addresses(host: str, port: int, deadline: float) -> list[Any]:
    """Addresses of a host. A name lookup has no time limit of its own, so it runs with the deadline of the request."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        left = max(0.0, deadline - time.monotonic())
        return with_deadline(left, lambda _: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _too_large(max_bytes: int) -> str:
    return f"sent more than {max_bytes // 1024**2} MiB"


@contextmanager
def _as_peer_error(timeout: float) -> Iterator[None]:
    """Turn every way in which an exchange fails into PeerError."""
    try:
        yield
    except TimeoutError as error:
        raise PeerTimeoutError(f"no complete answer within {timeout:g} s") from error
    except http.client.IncompleteRead as error:
        raise PeerError("broke off in the middle of the answer") from error
    except OSError as error:
        raise PeerError(error.strerror or str(error) or type(error).__name__) from error
    except (http.client.HTTPException, ValueError) as error:
        raise PeerError(f"what answered speaks no HTTP ({type(error).__name__})") from error
