"""Admission of action requests: a signature for this node, an id that is accepted once, short validity, a rate limit.

The agent holds public keys only: neither it nor any other node can produce a request. Refusals are counted by reason,
so that attempts are noticed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from http import HTTPStatus

from monitor.base.clock import Clock
from monitor.base.private_files import open_private, replace_file
from monitor.base.signing import RequestSignature, RequestVerifier
from monitor.base.text import shorten
from monitor.facts.actions import ActionRequest

MAX_VALIDITY_SECONDS = 300.0
MAX_CLOCK_SKEW_SECONDS = 30.0  # between daemon and node
WINDOW_SECONDS = 60.0
MAX_PEERS = 1024  # addresses with wrong signatures that are tracked
_MAX_ID_CHARS = 100
_MAX_QUOTED_CHARS = 100
UNSIGNED = "sign the request with the private key of the daemon (gpuwarden keys)"
BEARER = (
    "action tokens are no longer accepted: update the daemon, create keys with gpuwarden keys, and set "
    "daemon.cleanup.agents.private_key_file there and agent.actions.public_key_file here"
)


class ActionRefusedError(Exception):
    """A request is refused. `reason` is a code that is counted; the text is sent to the client."""

    def __init__(self, reason: str, status: HTTPStatus, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after


class SlidingWindowLimit:
    """At most `per_minute` events in any minute. Not thread-safe."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._times: deque[float] = deque()

    def wait_seconds(self, now: float) -> float | None:
        """Seconds until another event is allowed, or None if it is allowed now."""
        while self._times and now - self._times[0] >= WINDOW_SECONDS:
            self._times.popleft()
        return None if len(self._times) < self._per_minute else WINDOW_SECONDS - (now - self._times[0])

    def record(self, now: float) -> None:
        self._times.append(now)


class UsedIds:
    """Ids of accepted requests, stored in a file, so that a request cannot be replayed after a restart either."""

    def __init__(self, path: str, now: float) -> None:
        """Load the file, if it exists, without expired ids. Raise OSError."""
        self._path = path
        self._expiry: dict[str, float] = {}
        for line in self._lines():
            expiry, _, request_id = line.partition(" ")
            if request_id and float(expiry) > now:
                self._expiry[request_id] = float(expiry)
        self._rewrite()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._expiry

    def add(self, request_id: str, expiry: float, now: float) -> None:
        """Store an id until `expiry`, on disk before this returns. Raise OSError."""
        _append(self._path, f"{expiry:.3f} {request_id}\n")
        self._expiry[request_id] = expiry
        expired = [known_id for known_id, end in self._expiry.items() if end <= now]
        if len(expired) > len(self._expiry) / 2:
            for known_id in expired:
                del self._expiry[known_id]
            self._rewrite()

    def _lines(self) -> list[str]:
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                return [line for line in file.read().split("\n") if _is_complete(line)]
        except FileNotFoundError:
            return []

    def _rewrite(self) -> None:
        lines = (f"{expiry:.3f} {request_id}\n" for request_id, expiry in self._expiry.items())
        replace_file(self._path, "".join(lines).encode("ascii"))


def _is_complete(line: str) -> bool:
    """Whether a line was written completely; the last one before a power failure may be torn."""
    expiry, _, request_id = line.partition(" ")
    return bool(request_id) and expiry.replace(".", "", 1).isdecimal()


def _append(path: str, text: str) -> None:
    file = open_private(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode("ascii"))
        os.fsync(file)
    finally:
        os.close(file)


class ActionAuthenticator:
    """Admits requests or raises ActionRefusedError. Thread-safe."""

    def __init__(self, verifier: RequestVerifier, per_minute: int, used_ids: UsedIds, clock: Clock = time) -> None:
        self._verifier = verifier
        self._per_minute = per_minute
        self._used_ids = used_ids
        self._clock = clock
        self._accepted = SlidingWindowLimit(per_minute)
        self._wrong: dict[str, SlidingWindowLimit] = {}  # requests without a valid signature, by peer
        self._lock = threading.Lock()
        self._refused: Counter[str] = Counter()
        self.refused_at: float | None = None

    @property
    def refused(self) -> dict[str, int]:
        with self._lock:
            return dict(self._refused)

    def count_refusal(self, reason: str) -> None:
        with self._lock:
            self._refused[reason] += 1
            self.refused_at = self._clock.time()

    def authenticate(self, method: str, path: str, authorization: str, peer: str, body: bytes) -> None:
        """Check that the daemon signed this request for this node, cheap checks first.

        A peer that sent too many requests without a valid signature has to wait, even if it now has one.
        """
        self._check_attempts(peer)
        signature = RequestSignature.parse(authorization)
        refusal = self._claim_refusal(authorization, signature)
        if refusal is None and signature is not None:
            self._check_time(int(signature.at))
            if self._verifier.verify(signature, method, path, body):
                return
            refusal = _unauthorized("signature", "the signature does not match the request and this node")
        self._record_attempt(peer)
        raise refusal or _unauthorized("signature", UNSIGNED)

    def _claim_refusal(self, authorization: str, signature: RequestSignature | None) -> ActionRefusedError | None:
        """Why a request is refused by what it claims, without a look at the signature."""
        if signature is None:
            is_token = authorization.lower().startswith("bearer")
            return _unauthorized("token", BEARER) if is_token else _unauthorized("signature", UNSIGNED)
        if signature.node != self._verifier.node:
            text = f"signed for node {shorten(signature.node, _MAX_QUOTED_CHARS)!r}; this is {self._verifier.node!r}"
            return ActionRefusedError("node", HTTPStatus.MISDIRECTED_REQUEST, text)
        if not self._verifier.knows(signature.key_id):
            key = shorten(signature.key_id, _MAX_QUOTED_CHARS)
            return _unauthorized("signature", f"signed with key {key!r}, which is not in agent.actions.public_key_file")
        return None

    def _check_time(self, signed_at: int) -> None:
        off = self._clock.time() - signed_at
        if not -MAX_CLOCK_SKEW_SECONDS <= off <= MAX_VALIDITY_SECONDS + MAX_CLOCK_SKEW_SECONDS:
            text = f"signed {abs(off):.0f} s {'ago' if off > 0 else 'in the future'}: synchronize the clocks"
            raise ActionRefusedError("expired", HTTPStatus.GONE, text)

    def _check_attempts(self, peer: str) -> None:
        with self._lock:
            attempts = self._wrong.get(peer)
            wait = attempts.wait_seconds(self._clock.monotonic()) if attempts else None
        if wait is not None:
            raise _too_many("too many requests without a valid signature from this address", wait)

    def _record_attempt(self, peer: str) -> None:
        with self._lock:
            if peer not in self._wrong:
                if len(self._wrong) >= MAX_PEERS:
                    self._wrong.pop(next(iter(self._wrong)))
                self._wrong[peer] = SlidingWindowLimit(self._per_minute)
            self._wrong[peer].record(self._clock.monotonic())

    def admit(self, request: ActionRequest) -> None:
        """Admit a valid request and store its id. Raise ActionRefusedError, or OSError if the id cannot be stored."""
        if not (request.id.isascii() and request.id.isprintable() and 0 < len(request.id) <= _MAX_ID_CHARS):
            raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, f"id: 1 to {_MAX_ID_CHARS} ASCII characters")
        check_validity(request, self._clock.time())
        with self._lock:
            if request.id in self._used_ids:
                raise ActionRefusedError("replayed", HTTPStatus.CONFLICT, f"{request.id} was already used")
            now = self._clock.monotonic()
            wait = self._accepted.wait_seconds(now)
            if wait is not None:
                raise _too_many(f"more than {self._per_minute} actions per minute", wait)
            self._used_ids.add(request.id, request.expires_at + MAX_CLOCK_SKEW_SECONDS, self._clock.time())
            self._accepted.record(now)


def check_validity(request: ActionRequest, now: float) -> None:
    """Raise ActionRefusedError if a request is not valid now, or is valid for too long."""
    if not 0 <= request.expires_at - request.issued_at <= MAX_VALIDITY_SECONDS:
        text = f"expires_at: at most {MAX_VALIDITY_SECONDS:.0f} s after issued_at"
        raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, text)
    if now > request.expires_at + MAX_CLOCK_SKEW_SECONDS:
        raise ActionRefusedError("expired", HTTPStatus.GONE, f"expired {now - request.expires_at:.0f} s ago")
    if now < request.issued_at - MAX_CLOCK_SKEW_SECONDS:
        text = f"issued {request.issued_at - now:.0f} s in the future: synchronize the clocks"
        raise ActionRefusedError("expired", HTTPStatus.GONE, text)


def _too_many(text: str, wait: float) -> ActionRefusedError:
    return ActionRefusedError("too-many", HTTPStatus.TOO_MANY_REQUESTS, text, retry_after=wait)


def _unauthorized(reason: str, text: str) -> ActionRefusedError:
    return ActionRefusedError(reason, HTTPStatus.UNAUTHORIZED, text)
