"""Sessions and one-time login codes, in memory. Only hashes are kept: they cannot be used to sign in.

Session ids are generated at login and never taken from the client.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from monitor.access.principal import AuthMethod, Principal

MAX_SESSIONS = 5000
CODE_LIFETIME_SECONDS = 3600.0
MAX_CODES = 16


@dataclass
class _Session:
    principal: Principal
    started_at: float
    used_at: float


class Sessions:
    """Sessions that expire after `lifetime` seconds, or `idle` seconds without a request. Thread-safe."""

    def __init__(self, lifetime: float, idle: float, max_sessions: int = MAX_SESSIONS) -> None:
        self.lifetime = lifetime
        self._idle = idle
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # by hashed id, least recently used first
        self._lock = threading.Lock()

    def begin(self, principal: Principal, now: float) -> tuple[str, Principal]:
        """Start a session; return its id, and the principal with a CSRF token."""
        session_id = secrets.token_urlsafe(32)
        signed_in = replace(principal, csrf=secrets.token_urlsafe(32), method=AuthMethod.SESSION)
        with self._lock:
            self._sessions[_hashed(session_id)] = _Session(signed_in, now, now)
            while len(self._sessions) > self._max_sessions:
                self._sessions.popitem(last=False)
        return session_id, signed_in

    def find(self, session_id: str, now: float) -> Principal | None:
        """Principal of a session, whose idle time restarts; None if there is no such session."""
        key = _hashed(session_id)
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now - session.started_at >= self.lifetime or now - session.used_at >= self._idle:
                del self._sessions[key]
                return None
            session.used_at = now
            self._sessions.move_to_end(key)
            return session.principal

    def end(self, session_id: str) -> None:
        with self._lock:
            self._sessions.pop(_hashed(session_id), None)


class LoginCodes:
    """Codes that each allow one login. Thread-safe."""

    def __init__(self) -> None:
        self._expires_at: OrderedDict[str, float] = OrderedDict()  # by hashed code
        self._lock = threading.Lock()

    def make(self, now: float) -> str:
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._expires_at[_hashed(code)] = now + CODE_LIFETIME_SECONDS
            while len(self._expires_at) > MAX_CODES:
                self._expires_at.popitem(last=False)
        return code

    def use(self, code: str, now: float) -> bool:
        """Whether a code is valid; it is invalid afterwards. Compares with all codes, in constant time."""
        given = _hashed(code)
        with self._lock:
            matches = [known for known in self._expires_at if hmac.compare_digest(known, given)]
            return any(now < self._expires_at.pop(known) for known in matches)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
