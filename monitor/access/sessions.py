"""Who is signed in. Kept in memory, by hashes: whoever reads it cannot be anybody.

An id is made when somebody signs in, never taken from a browser.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from monitor.access.principal import How, Person

MOST = 5000
CODE_GOOD_FOR = 3600.0  # seconds for which a link to sign in may be used, once
MOST_CODES = 16


@dataclass
class _Session:
    person: Person
    begun_at: float
    used_at: float


class Sessions:
    """Sessions that end after `lifetime` seconds, or `idle` seconds without a request. For use from any thread."""

    def __init__(self, lifetime: float, idle: float, most: int = MOST) -> None:
        self.lifetime = lifetime
        self._idle = idle
        self._most = most
        self._open: OrderedDict[str, _Session] = OrderedDict()  # the least lately used first
        self._lock = threading.Lock()

    def begin(self, person: Person, now: float) -> tuple[str, Person]:
        """Given who has shown who they are, return the id of a new session, and them with what it takes to act."""
        own = secrets.token_urlsafe(32)
        signed_in = replace(person, csrf=secrets.token_urlsafe(32), how=How.SESSION)
        with self._lock:
            self._open[_hashed(own)] = _Session(signed_in, now, now)
            while len(self._open) > self._most:
                self._open.popitem(last=False)
        return own, signed_in

    def find(self, own: str, now: float) -> Person | None:
        """Given an id, return who it is; None if there is no such session any more. This counts as using it."""
        key = _hashed(own)
        with self._lock:
            session = self._open.get(key)
            if session is None:
                return None
            if now - session.begun_at >= self.lifetime or now - session.used_at >= self._idle:
                del self._open[key]
                return None
            session.used_at = now
            self._open.move_to_end(key)
            return session.person

    def end(self, own: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(_hashed(own), None)


class Codes:
    """Codes that each let somebody sign in once. For use from any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, float] = OrderedDict()  # the hash of a code -> until when it is good
        self._lock = threading.Lock()

    def make(self, now: float) -> str:
        """Return a new code."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._known[_hashed(code)] = now + CODE_GOOD_FOR
            while len(self._known) > MOST_CODES:
                self._known.popitem(last=False)
        return code

    def use(self, code: str, now: float) -> bool:
        """Return whether a code is good; it is not again."""
        with self._lock:
            until = self._known.pop(_hashed(code), None)
        return until is not None and now < until


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
