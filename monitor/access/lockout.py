"""How long somebody who guesses has to wait, by the name that is guessed at and by where the guesses come from.

A try counts before it is known whether it is right: many at once are not one. Waiting doubles with each. A name is
kept waiting for less long than a guesser: or anybody could keep its owner out.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from dataclasses import dataclass

MOST = 10_000
FORGET = 1800.0  # seconds after the last try


@dataclass(frozen=True)
class Patience:
    """How many tries are free, and how many seconds the longest wait is."""

    free: int
    longest: float


NAME = Patience(5, 60.0)
PEER = Patience(20, 900.0)


@dataclass
class _Tries:
    count: int
    last_at: float
    until: float


class Lockout:
    """Counts tries. For use from any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._tries: OrderedDict[tuple[str, str], _Tries] = OrderedDict()  # the least lately tried first
        self._lock = threading.Lock()

    def wait(self, name: str | None, peer: str, now: float) -> float:
        """Return how many seconds it takes until there may be another try; 0 if there may be one now."""
        with self._lock:
            found = [self._tries.get(key) for key, _ in _keys(name, peer)]
            return max([each.until - now for each in found if each is not None] + [0.0])

    def begin(self, name: str | None, peer: str, now: float) -> float:
        """Begin a try, and return 0; or return how many seconds to wait, and none is begun."""
        with self._lock:
            keys = _keys(name, peer)
            found = [self._tries.get(key) for key, _ in keys]
            wait = max([each.until - now for each in found if each is not None] + [0.0])
            if wait > 0:
                return wait
            for (key, patience), tries in zip(keys, found, strict=True):
                known = tries if tries is not None and now - tries.last_at < FORGET else _Tries(0, now, 0.0)
                known.count, known.last_at = known.count + 1, now
                over = known.count - patience.free
                known.until = now + min(2.0 ** min(over, 30), patience.longest) if over >= 0 else 0.0
                self._tries[key] = known
                self._tries.move_to_end(key)
            while len(self._tries) > self._most:
                self._tries.popitem(last=False)
            return 0.0

    def was_right(self, name: str | None, peer: str) -> None:
        """Forget the tries at a name, and take this one back from its peer: others may still be guesses."""
        with self._lock:
            for key, patience in _keys(name, peer):
                tries = self._tries.get(key)
                if key[0] == "name":
                    self._tries.pop(key, None)
                elif tries is not None:
                    tries.count -= 1
                    tries.until = 0.0 if tries.count <= patience.free else tries.until


def _keys(name: str | None, peer: str) -> list[tuple[tuple[str, str], Patience]]:
    named = [(("name", name), NAME)] if name is not None else []
    return [*named, (("peer", _network(peer)), PEER)]


def _network(peer: str) -> str:
    """Return whom a peer counts as: whoever has one address of IPv6 has all of its /64."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer[:64]
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)
