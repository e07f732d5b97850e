"""Clients without credentials as a process: `python -m tests.siege.attackers AGENT DAEMON`, both as host:port.

It prints a line when all idle connections were opened once and, at the end of its input, how often each attack was
made.
"""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from tests.security.flood import Address, is_closed

IDLE = 1100
DRIPPING = 64
BODIES = 16
MIB = 1 << 20
PATH_CHARS = 10_000
FLOOD_SECONDS = 0.005  # between two requests of a client
ROUND_SECONDS = 1.0  # between two bytes of a dripping client
BODY_SECONDS = 0.5
CONNECT_SECONDS = 5.0
# Half of the connections come from one address, from which health is also checked, the others from forty addresses.
SOURCES = tuple(source for n in range(2, 42) for source in ("127.0.0.1", f"127.0.1.{n}"))
HEAD = b"GET /v1/snapshot HTTP/1.1\r\nX-A: "
ACTION = b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n"
PADDED_LENGTH = b"000000000000125829121"

Attack = Callable[[Callable[[str], None]], None]


def connect(address: Address, source: str) -> socket.socket:
    return socket.create_connection(address, CONNECT_SECONDS, source_address=(source, 0))


class Crowd:
    """Connections that are opened again whenever the server closes them; they send `start` and then drip."""

    def __init__(self, name: str, address: Address, size: int, start: bytes = b"", drip: bytes = b"") -> None:
        self._name = name
        self._address = address
        self._start = start
        self._drip = drip
        self._sources = itertools.cycle(SOURCES)
        self._clients: list[socket.socket | None] = [None] * size
        self.complete = threading.Event()

    def __call__(self, count: Callable[[str], None]) -> None:
        """Open what is closed, and send a byte on what is open."""
        for number, client in enumerate(self._clients):
            if client is None or is_closed(client):
                self._reopen(number, count)
            elif self._drip:
                with suppress(OSError):
                    client.send(self._drip)
        self.complete.set()
        time.sleep(ROUND_SECONDS)

    def _reopen(self, number: int, count: Callable[[str], None]) -> None:
        if (old := self._clients[number]) is not None:
            old.close()
        self._clients[number] = None
        with suppress(OSError):
            client = connect(self._address, next(self._sources))
            self._clients[number] = client
            count(self._name)
            if self._start:
                client.send(self._start)


def padded_length(address: Address) -> Attack:
    """Bodies whose announced length passes a check of its first digits."""
    sources = itertools.cycle(SOURCES)

    def attack(count: Callable[[str], None]) -> None:
        count("padded Content-Length to the agent")
        with suppress(OSError), connect(address, next(sources)) as client:
            client.sendall(ACTION % PADDED_LENGTH)
            client.sendall(b" " * 16 * MIB)
        time.sleep(BODY_SECONDS)

    return attack


def large_bodies(address: Address) -> Attack:
    """Bodies of the largest accepted size, from many clients at once, that never end."""

    def attack(count: Callable[[str], None]) -> None:
        with ExitStack() as stack:
            for source in SOURCES[: 2 * BODIES : 2]:
                with suppress(OSError):
                    client = stack.enter_context(connect(address, source))
                    client.sendall(ACTION % str(4 * MIB).encode())
                    client.setblocking(False)
                    client.send(b" " * (4 * MIB - 1))
                    count("large bodies to the agent")
            time.sleep(BODY_SECONDS)

    return attack


def refused_requests(name: str, address: Address, targets: Iterator[tuple[str, str]]) -> Attack:
    """Requests with long paths over one connection."""
    connection = http.client.HTTPConnection(*address, timeout=CONNECT_SECONDS)

    def attack(count: Callable[[str], None]) -> None:
        try:
            connection.request(*next(targets))
            connection.getresponse().read()
            count(name)
        except (OSError, http.client.HTTPException):
            connection.close()
        time.sleep(FLOOD_SECONDS)

    return attack


def malformed(address: Address) -> Attack:
    """What is not HTTP."""

    def attack(count: Callable[[str], None]) -> None:
        count("malformed requests to the daemon")
        with suppress(OSError), connect(address, SOURCES[1]) as client:
            client.sendall(b"\x00\r\n\r\n")
            client.recv(4096)
        time.sleep(4 * FLOOD_SECONDS)

    return attack


def crowds(agent: Address, daemon: Address) -> list[Crowd]:
    return [
        Crowd("idle connections to the agent", agent, IDLE),
        Crowd("idle connections to the daemon", daemon, IDLE),
        Crowd("dripped heads to the agent", agent, DRIPPING, HEAD, b"a"),
        Crowd("dripped heads to the daemon", daemon, DRIPPING, HEAD, b"a"),
        Crowd("dripped bodies to the agent", agent, DRIPPING, ACTION % b"100000", b" "),
    ]


def floods(agent: Address, daemon: Address) -> list[Attack]:
    long = "a" * PATH_CHARS
    of_agent = itertools.cycle([("GET", f"/v1/actions/{long}"), ("POST", f"/v1/actions/{long}"), ("PUT", f"/{long}")])
    of_daemon = itertools.cycle([("GET", f"/{long}"), ("POST", f"/v1/silences?{long}"), ("DELETE", f"/v1/{long}")])
    return [
        padded_length(agent),
        large_bodies(agent),
        refused_requests("refused requests to the agent", agent, of_agent),
        refused_requests("refused requests to the daemon", daemon, of_daemon),
        malformed(daemon),
    ]


def main(agent: Address, daemon: Address) -> None:
    tally: Counter[str] = Counter()

    def count(name: str) -> None:
        tally[name] += 1  # each name is counted by one thread

    def repeat(attack: Attack) -> None:
        while True:
            attack(count)

    waiting = crowds(agent, daemon)
    for attack in (*waiting, *floods(agent, daemon)):
        threading.Thread(target=repeat, args=(attack,), daemon=True).start()
    for crowd in waiting:
        crowd.complete.wait()
    print("complete", flush=True)
    sys.stdin.read()
    print(json.dumps(tally), flush=True)


def parse_address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main(parse_address(sys.argv[1]), parse_address(sys.argv[2]))
