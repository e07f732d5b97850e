"""Hostile HTTP clients with raw sockets, and what they cost the server."""

from __future__ import annotations

import contextlib
import itertools
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import wait_until
from tests.support.command import running

Address = tuple[str, int]
HEALTH_CHECK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CUT_OFF_SECONDS = 10.0  # more than the deadlines of servers in these tests, less than any other limit
DRIP_SECONDS = 0.05
OTHERS = tuple(f"127.0.0.{number}" for number in range(2, 42))  # addresses of other clients


def connect(address: Address, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(address, timeout=30, source_address=(source, 0))


def exchange(address: Address, request: bytes, source: str = "127.0.0.1") -> bytes:
    """Everything that the server sends until it closes the connection; empty if it refuses."""
    received = b""
    with contextlib.suppress(ConnectionError), connect(address, source) as client:
        client.sendall(request)
        while data := client.recv(65536):
            received += data
    return received


def status_of(response: bytes) -> int:
    """Status of a response; 0 if there is none."""
    return int(response.split(b" ", 2)[1]) if response.startswith(b"HTTP/1.1 ") else 0


def get(address: Address, path: str, source: str = "127.0.0.1") -> int:
    return status_of(exchange(address, HEALTH_CHECK.replace(b"/healthz", path.encode()), source))


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed the connection."""
    with contextlib.suppress(BlockingIOError):
        client.setblocking(False)
        try:
            while client.recv(65536):
                pass
        except ConnectionError:
            return True
        return True
    return False


def is_cut_off(step: Callable[[], object]) -> bool:
    """Whether the server ends a connection although the client does a little all the time."""
    deadline = time.monotonic() + CUT_OFF_SECONDS
    while time.monotonic() < deadline:
        try:
            if step() == b"":
                return True
        except OSError:
            return True
        time.sleep(DRIP_SECONDS)
    return False


def dripper(client: socket.socket) -> Callable[[], object]:
    """Sends a byte with each call; returns b"" when the server has closed the connection."""

    def step() -> object:
        client.send(b"a")
        return b"" if select.select([client], [], [], 0)[0] and not client.recv(65536) else None

    return step


class SlowClients:
    """Clients that send a request byte by byte and come back when they are disconnected."""

    def __init__(self, address: Address, count: int, sources: tuple[str, ...]) -> None:
        self._address = address
        self._sources = itertools.cycle(sources)
        self._clients = [self._connect() for _ in range(count)]

    def drip(self) -> None:
        """Send one byte from each client."""
        for number, client in enumerate(self._clients):
            if is_closed(client):
                client.close()
                self._clients[number] = self._connect()
            else:
                with contextlib.suppress(OSError):
                    client.send(b"G")

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _connect(self) -> socket.socket:
        return connect(self._address, next(self._sources))


@dataclass(frozen=True)
class Target:
    """A server as a process of its own."""

    process: subprocess.Popen[str]
    address: Address
    log: Path

    def log_bytes(self) -> int:
        return self.log.stat().st_size

    def peak_bytes(self) -> int:
        """The most memory that the process has ever used."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextmanager
def target(line: list[str], environ: Mapping[str, str], folder: Path, pattern: str) -> Iterator[Target]:
    """Run a server; its log names the address according to the pattern."""
    log = folder / "log"
    with running(["sh", "-c", f'exec "$@" 2>"{log}"', "sh", *line], environ) as process:

        def address() -> re.Match[str] | None:
            if process.poll() is not None:
                pytest.fail(f"ended early: {log.read_text()}")
            return re.search(pattern, log.read_text()) if log.exists() else None

        wait_until(address, 60, "the server listens")
        found = address()
        assert found is not None
        yield Target(process, (found[1], int(found[2])), log)
        assert process.poll() is None, "the server has ended"
