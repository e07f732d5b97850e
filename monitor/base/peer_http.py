"""HTTP between the product's own processes: daemon to agent, CLI to daemon.

One deadline covers the whole exchange: connecting, TLS, and every byte that trickles in. Client libraries limit only
the silence between two bytes, so this uses the standard library with sockets that know their deadline. It uses no
proxy and follows no redirect (credentials are for the peer alone).
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from monitor.base.deadline_socket import DeadlineSocket
from monitor.base.net import break_off
from monitor.base.peer_wire import PeerReply, ReplyError, encode_request, read_reply
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


class PeerClient:
    """Makes requests from any number of threads until it is closed.

    With `idle_seconds` it keeps up to `max_idle` connections open that long for the next request to the same peer. All
    requests must then be safe to repeat: the peer may close a connection at the moment in which it is used again.
    """

    def __init__(
        self,
        timeout: float,
        max_bytes: int,
        context: ssl.SSLContext | None = None,
        server_name: str | None = None,
        *,
        idle_seconds: float = 0.0,
        max_idle: int = 0,
    ) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._context = context
        if context is not None:
            context.sslsocket_class = _DeadlineTlsSocket
        self._server_name = server_name
        self._idle_seconds, self._max_idle = idle_seconds, max_idle
        self._idle: dict[str, tuple[float, DeadlineSocket]] = {}  # by target, the longest idle first
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False

    def request(
        self, target: str, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> PeerReply:
        """Send one request to host:port, and return its reply. Raise PeerError."""
        deadline = time.monotonic() + self._timeout
        connection = {} if self._max_idle else {"Connection": "close"}
        with _as_peer_error(self._timeout):
            request = encode_request(target, method, path, body, connection | dict(headers or {}))
            idle = self._take_idle(target)
            if idle is not None:
                with suppress(ConnectionError):  # the peer has closed it
                    return self._exchange(target, idle, deadline, method, request)
            return self._exchange(target, self._connect(target, deadline), deadline, method, request)

    def _exchange(self, target: str, sock: DeadlineSocket, deadline: float, method: str, request: bytes) -> PeerReply:
        sock.deadline = deadline
        reply = None
        try:
            sock.sendall(request)
            reply = read_reply(sock, method, self._max_bytes)
        finally:
            if reply is None or not reply.more or not self._keep_idle(target, sock):
                self._hang_up(sock)
        return reply

    def close(self) -> None:
        """Break off all exchanges and refuse new ones."""
        with self._lock:
            self._closed = True
            for sock in self._open:
                break_off(sock)
            idle = [sock for _, sock in self._idle.values()]
            self._idle.clear()
        for sock in idle:
            self._hang_up(sock)

    def _take_idle(self, target: str) -> DeadlineSocket | None:
        """A connection to a peer that is still open."""
        with self._lock:
            since, sock = self._idle.pop(target, (0.0, None))
        if sock is not None and time.monotonic() - since > self._idle_seconds:
            self._hang_up(sock)
            return None
        return sock

    def _keep_idle(self, target: str, sock: DeadlineSocket) -> bool:
        """Keep a connection if there is room, and close those that are idle for too long."""
        now, expired = time.monotonic(), []
        with self._lock:
            while self._idle and now - next(iter(self._idle.values()))[0] > self._idle_seconds:
                expired.append(self._idle.pop(next(iter(self._idle)))[1])
            kept = not self._closed and len(self._idle) < self._max_idle and target not in self._idle
            if kept:
                self._idle[target] = now, sock
        for old in expired:
            self._hang_up(old)
        return kept

    def _connect(self, target: str, deadline: float) -> DeadlineSocket:
        """Connection to a peer, secured where configured. Raise OSError, ValueError or HTTPException."""
        peer = http.client.HTTPConnection(target)  # only parses host and port
        sock = self._connect_address(peer.host, peer.port, deadline)
        try:
            return self._secure(sock, peer.host, deadline)
        except BaseException:
            self._hang_up(sock)
            raise

    def _connect_address(self, host: str, port: int, deadline: float) -> DeadlineSocket:
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

    def _secure(self, sock: DeadlineSocket, host: str, deadline: float) -> DeadlineSocket:
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


@contextmanager
def _as_peer_error(timeout: float) -> Iterator[None]:
    """Turn every way in which an exchange fails into PeerError."""
    try:
        yield
    except TimeoutError as error:
        raise PeerTimeoutError(f"no complete answer within {timeout:g} s") from error
    except ReplyError as error:
        raise PeerError(str(error)) from error
    except http.client.IncompleteRead as error:
        raise PeerError("broke off in the middle of the answer") from error
    except OSError as error:
        raise PeerError(error.strerror or str(error) or type(error).__name__) from error
    except (http.client.HTTPException, ValueError) as error:
        raise PeerError(f"what answered speaks no HTTP ({type(error).__name__})") from error
