"""One question to an agent: its snapshot over HTTP, bounded in time and size whatever the agent does.

The limit is on the whole: connecting, waiting and every byte that trickles in. Client libraries limit the silence
between two bytes only, so this stands on the standard library and a socket that knows when it has to be done. No proxy
is asked, no redirect is followed (the token is for the agent alone), and no connection is kept: a thousand open ones
would cost more than a thousand handshakes.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_BODY = 8 * 1024 * 1024  # 20,000 containers; what a liar can send costs 20 times as much memory once it is decoded
PATH = "/v1/snapshot"


@dataclass(frozen=True)
class AgentTls:
    """How agents that speak TLS are known, and how they know us. `server_name` is in the certificate of each agent.

    Without it, the certificate has to be for the address that is asked.
    """

    ca_file: str
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None

    def context(self) -> ssl.SSLContext:
        """Return what secures connections to agents. Raise ValueError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.sslsocket_class = _HurriedTlsSocket
        try:
            context.load_verify_locations(self.ca_file)
            if self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:  # also SSLError
            raise ValueError(f"daemon.agents.tls: a file cannot be used: {error}") from None
        return context


class AgentError(Exception):
    """An agent's answer could not be had, or not be believed. The text says why, in our words and never in its own."""


class HttpFetch:
    """Gets snapshots, from any number of threads, until it is closed."""

    def __init__(self, limit: float, token: str | None, tls: AgentTls | None = None) -> None:
        """Raise ValueError if a certificate cannot be used."""
        self._limit = limit
        self._context = tls.context() if tls else None
        self._server_name = tls.server_name if tls else None
        self._headers = {"Accept": "application/json", "Connection": "close"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __call__(self, target: str) -> bytes:
        """Given host:port, return the body of its snapshot. Raise AgentError."""
        deadline = time.monotonic() + self._limit
        with _in_our_words(self._limit), closing(http.client.HTTPConnection(target)) as connection:
            sock = self._dial(connection.host, connection.port, deadline)
            try:
                connection.sock = sock = self._secured(sock, connection.host, deadline)
                connection.request("GET", PATH, headers=self._headers)
                with closing(connection.getresponse()) as response:
                    return _body(response)
            finally:
                self._hang_up(sock)

    def close(self) -> None:
        """Break off whatever is being asked, and ask nothing any more. For use from other threads."""
        with self._lock:
            self._closed = True
            for sock in self._open:
                _break_off(sock)

    def _dial(self, host: str, port: int, deadline: float) -> socket.socket:
        """Given a host, return a connection to the first of its addresses that takes one. Raise OSError."""
        failure = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            sock = _HurriedSocket(family, kind, protocol)
            sock.deadline = deadline
            try:
                self._note_open(sock)
                sock.connect(address)
            except OSError as error:
                self._hang_up(sock)
                failure = error
            else:
                return sock
        raise failure

    def _secured(self, sock: socket.socket, host: str, deadline: float) -> socket.socket:
        """Given a connection, return it with TLS, if agents speak that. Raise OSError."""
        if self._context is None:
            return sock
        name = self._server_name or host
        secured = self._context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
        assert isinstance(secured, _HurriedTlsSocket)
        secured.deadline = deadline
        try:
            self._note_open(secured)
            secured.do_handshake()
        except BaseException:
            self._hang_up(secured)
            raise
        finally:
            self._hang_up(sock)  # what it held is the secured one's now
        return secured

    def _note_open(self, sock: socket.socket) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("stopping")
            self._open.add(sock)

    def _hang_up(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
        sock.close()  # not under the lock: it lets other threads run, and all of them would wait for the lock


class _HurriedSocket(socket.socket):
    """A socket all of whose doings together have to end by a deadline."""

    deadline = 0.0

    def connect(self, address: Any) -> None:
        self._hurry()
        super().connect(address)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self._hurry()
        super().sendall(data, flags)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        self._hurry()
        return super().recv_into(buffer, nbytes or 0, flags)

    def _hurry(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)


class _HurriedTlsSocket(_HurriedSocket, ssl.SSLSocket):
    """The same with TLS."""

    def do_handshake(self, block: bool = False) -> None:
        self._hurry()
        super().do_handshake(block)


def _break_off(sock: socket.socket) -> None:
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which another thread may be using
    except OSError:  # not connected yet, or not any more
        return


def _body(response: http.client.HTTPResponse) -> bytes:
    """Given an answer, return what it holds, if it is the one that was asked for and all of it. Raise AgentError."""
    if response.status != HTTPStatus.OK:
        raise AgentError(f"answered {response.status} {http.client.responses.get(response.status, '')}".rstrip())
    body = response.read(MAX_BODY + 1) if (response.length or 0) <= MAX_BODY else None
    if body is None or len(body) > MAX_BODY:
        raise AgentError(f"sent more than {MAX_BODY // 1024**2} MiB")
    if response.length:  # reading a part does not complain when the rest is missing
        raise AgentError(f"broke off after {len(body)} bytes")
    return body


@contextmanager
def _in_our_words(limit: float) -> Iterator[None]:
    """Turn every way in which asking fails into AgentError. What the agent said is not repeated: it may be anything."""
    try:
        yield
    except TimeoutError as error:
        raise AgentError(f"no whole answer within {limit:g} s") from error
    except http.client.IncompleteRead as error:
        raise AgentError("broke off in the middle of the answer") from error
    except OSError as error:
        raise AgentError(error.strerror or str(error) or type(error).__name__) from error
    except (http.client.HTTPException, ValueError) as error:
        raise AgentError(f"what answered speaks no HTTP ({type(error).__name__})") from error
