"""Delays against password guessing, per user name and per client network.

An attempt is counted before it is verified, so that parallel attempts are all counted. The delay doubles with each
attempt. The maximum for a name is shorter than for a network, otherwise anyone could lock out its owner.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from dataclasses import dataclass

MAX_KEYS = 10_000
MAX_DOUBLINGS = 30
FORGET_SECONDS = 1800.0  # after the last attempt


@dataclass(frozen=True)
class LockoutPolicy:
    """Number of attempts without delay, and the longest delay in seconds."""

    free_attempts: int
    max_delay: float


NAME_POLICY = LockoutPolicy(5, 60.0)
PEER_POLICY = LockoutPolicy(20, 900.0)


@dataclass
class _Attempts:
    count: int
    last_at: float
    locked_until: float


class Lockout:
    """Counts attempts. Thread-safe."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._attempts: OrderedDict[tuple[str, str], _Attempts] = OrderedDict()  # least recent first
        self._lock = threading.Lock()

    def delay(self, name: str | None, peer: str, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 if it is allowed now."""
        with self._lock:
            return self._delay(_keys(name, peer), now)

    def begin(self, name: str | None, peer: str, now: float) -> float:
        """Count an attempt and return 0, or return the delay in seconds without counting it."""
        with self._lock:
            keys = _keys(name, peer)
            delay = self._delay(keys, now)
            if delay > 0:
                return delay
            for key, policy in keys:
                attempts = self._attempts.get(key)
                if attempts is None or now - attempts.last_at >= FORGET_SECONDS:
                    attempts = _Attempts(0, now, 0.0)
                attempts.count, attempts.last_at = attempts.count + 1, now
                excess = attempts.count - policy.free_attempts
                delay_after = min(2.0 ** min(excess, MAX_DOUBLINGS), policy.max_delay)
                attempts.locked_until = now + delay_after if excess >= 0 else 0.0
                self._attempts[key] = attempts
                self._attempts.move_to_end(key)
            while len(self._attempts) > self._max_keys:
                self._attempts.popitem(last=False)
            return 0.0

    def succeeded(self, name: str | None, peer: str) -> None:
        """Forget the attempts for a name, and uncount this one for the peer, whose other attempts may be guesses."""
        with self._lock:
            for key, policy in _keys(name, peer):
                attempts = self._attempts.get(key)
                if key[0] == "name":
                    self._attempts.pop(key, None)
                elif attempts is not None:
                    attempts.count -= 1
                    if attempts.count <= policy.free_attempts:
                        attempts.locked_until = 0.0

    def _delay(self, keys: list[tuple[tuple[str, str], LockoutPolicy]], now: float) -> float:
        known = (self._attempts[key] for key, _ in keys if key in self._attempts)
        return max([attempts.locked_until - now for attempts in known] + [0.0])


def _keys(name: str | None, peer: str) -> list[tuple[tuple[str, str], LockoutPolicy]]:
    named = [(("name", name), NAME_POLICY)] if name is not None else []
    return [*named, (("peer", _network(peer)), PEER_POLICY)]


def _network(peer: str) -> str:
    """The network that a peer is counted under: an IPv6 client usually controls a whole /64."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer[:64]
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)
