"""Who may have the agent act: the token, an id that is used once, a short time in which it is good, and not too often.

Whatever is refused is counted by its reason, so that somebody who tries is noticed.
"""

from __future__ import annotations

import hmac
import os
import threading
import time
from collections import Counter, deque
from http import HTTPStatus

from monitor.base.clock import Clock
from monitor.facts.actions import ActionRequest

MAX_VALIDITY_SECONDS = 300.0  # seconds for which a request may be good
MAX_CLOCK_SKEW_SECONDS = 30.0  # seconds by which the clocks of daemon and node may differ
WINDOW_SECONDS = 60.0
MAX_PEERS = 1024  # remembered of those who were refused
_MAX_ID_CHARS = 100


class ActionRefusedError(Exception):
    """A request is refused. `reason` is a word that is counted; the text may be shown to whoever asked."""

    def __init__(self, reason: str, status: HTTPStatus, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after


class SlidingWindowLimit:
    """So many in a minute. Used under a lock."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._times: deque[float] = deque()

    def wait(self, now: float) -> float | None:
        """Return in how many seconds there is room for another one, or None if there is now."""
        while self._times and now - self._times[0] >= WINDOW_SECONDS:
            self._times.popleft()
        return None if len(self._times) < self._most else WINDOW_SECONDS - (now - self._times[0])

    def spend(self, now: float) -> None:
        self._times.append(now)


class UsedIds:
    """The ids that were used, in a file: a request is not good a second time after a restart either."""

    def __init__(self, path: str, now: float) -> None:
        """Read the file, if there is one, and forget what has expired. Raise OSError."""
        self._path = path
        self._until: dict[str, float] = {}
        for line in self._lines():
            until, _, ident = line.partition(" ")
            if ident and float(until) > now:
                self._until[ident] = float(until)
        self._rewrite()

    def __contains__(self, ident: str) -> bool:
        return ident in self._until

    def add(self, ident: str, until: float, now: float) -> None:
        """Remember an id until a time, on the disk before this returns. Raise OSError."""
        _append(self._path, f"{until:.3f} {ident}\n")
        self._until[ident] = until
        expired = [one for one, end in self._until.items() if end <= now]
        if len(expired) > len(self._until) / 2:
            for one in expired:
                del self._until[one]
            self._rewrite()

    def _lines(self) -> list[str]:
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                return [line for line in file.read().split("\n") if _is_whole(line)]
        except FileNotFoundError:
            return []

    def _rewrite(self) -> None:
        temporary = f"{self._path}.new"
        with open(temporary, "w", encoding="ascii") as file:
            file.writelines(f"{until:.3f} {ident}\n" for ident, until in self._until.items())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)


def _is_whole(line: str) -> bool:
    """Return whether a line was written to its end; the last one before a power cut may not be."""
    until, _, ident = line.partition(" ")
    return bool(ident) and until.replace(".", "", 1).isdecimal()


def _append(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, text.encode("ascii"))
        os.fsync(file)
    finally:
        os.close(file)


class ActionAuthenticator:
    """Lets requests in, or raises RefusedError. Used from any thread."""

    def __init__(self, token: str, per_minute: int, used: UsedIds, clock: Clock = time) -> None:
        self._token = token.encode()
        self._per_minute = per_minute
        self._used = used
        self._clock = clock
        self._accepted = SlidingWindowLimit(per_minute)
        self._wrong: dict[str, SlidingWindowLimit] = {}
        self._lock = threading.Lock()
        self._refused: Counter[str] = Counter()
        self.refused_at: float | None = None

    @property
    def refused(self) -> dict[str, int]:
        with self._lock:
            return dict(self._refused)

    def count(self, reason: str) -> None:
        """Count a refusal."""
        with self._lock:
            self._refused[reason] += 1
            self.refused_at = self._clock.time()

    def identify(self, authorization: str, peer: str) -> None:
        """Let whoever has the token pass. An address that often had a wrong one has to wait, whatever it has now."""
        with self._lock:
            now = self._clock.monotonic()
            wrong = self._wrong.get(peer)
            wait = wrong.wait(now) if wrong else None
            if wait is not None:
                raise _too_many("too many wrong tokens from this address", wait)
            if self._is_token(authorization):
                return
            if wrong is None:
                if len(self._wrong) >= MAX_PEERS:
                    self._wrong.pop(next(iter(self._wrong)))
                wrong = self._wrong[peer] = SlidingWindowLimit(self._per_minute)
            wrong.spend(now)
        raise ActionRefusedError("token", HTTPStatus.UNAUTHORIZED, "send the action token as Authorization: Bearer")

    def admit(self, request: ActionRequest) -> None:
        """Let a request in that is good now and was not seen before, and remember it. Raise OSError too."""
        if not (request.id.isascii() and request.id.isprintable() and 0 < len(request.id) <= _MAX_ID_CHARS):
            raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, f"id: 1 to {_MAX_ID_CHARS} ASCII characters")
        check_validity(request, self._clock.time())
        with self._lock:
            if request.id in self._used:
                raise ActionRefusedError("replayed", HTTPStatus.CONFLICT, f"{request.id} was used before")
            now = self._clock.monotonic()
            wait = self._accepted.wait(now)
            if wait is not None:
                raise _too_many(f"more than {self._per_minute} actions a minute", wait)
            self._used.add(request.id, request.expires_at + MAX_CLOCK_SKEW_SECONDS, self._clock.time())
            self._accepted.spend(now)

    def _is_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        as_sent = given.strip().encode("latin-1", "replace")  # the server decodes headers as Latin-1
        return hmac.compare_digest(as_sent, self._token) and scheme.lower() == "bearer"


def check_validity(request: ActionRequest, now: float) -> None:
    """Raise RefusedError if a request is not good at this time, or would be for too long."""
    if not 0 <= request.expires_at - request.issued_at <= MAX_VALIDITY_SECONDS:
        raise ActionRefusedError(
            "malformed", HTTPStatus.BAD_REQUEST, f"expires_at: at most {MAX_VALIDITY_SECONDS:.0f} s after issued_at"
        )
    if now > request.expires_at + MAX_CLOCK_SKEW_SECONDS:
        raise ActionRefusedError("expired", HTTPStatus.GONE, f"it expired {now - request.expires_at:.0f} s ago")
    if now < request.issued_at - MAX_CLOCK_SKEW_SECONDS:
        late = request.issued_at - now
        raise ActionRefusedError("expired", HTTPStatus.GONE, f"issued {late:.0f} s in the future: set the clocks")


def _too_many(text: str, wait: float) -> ActionRefusedError:
    return ActionRefusedError("too-many", HTTPStatus.TOO_MANY_REQUESTS, text, retry_after=wait)
