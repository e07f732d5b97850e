"""How long a receiver that did not take a message is left alone, and how it stands with it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.facts.base import Fact

FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 300.0
MAX_RETRY_AFTER_SECONDS = 3600.0  # a receiver that asks for more is tried nevertheless: it may have been a mistake
REPORT_AFTER_SECONDS = 600.0  # a receiver that fails for so long is itself a finding


def retry_delay(failures: int, jitter: float, after: float | None = None) -> float:
    """Given how often in a row it failed (at least once) and a random number in [0, 1), return the seconds to wait.

    They double from one second to five minutes; jitter takes away up to a half, so that many do not come back at once.
    What the receiver asked for (`after`) is waited for in any case.
    """
    doubled = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 32))
    return max(doubled * (1.0 - jitter / 2.0), min(after or 0.0, MAX_RETRY_AFTER_SECONDS))


def is_outage(failing_since: float | None, now: float) -> bool:
    """Return whether a receiver fails for so long that somebody has to be told."""
    return failing_since is not None and now - failing_since >= REPORT_AFTER_SECONDS


class ReceiverHealth(Fact, frozen=True, kw_only=True):
    """How it goes with a receiver. `failures` are those in a row, `parked` what it refused for good since it took one.

    `error` is how it failed last. Until `rest_until` the receiver is left alone.
    """

    receiver: str
    failures: int = 0
    failing_since: float | None = None
    tried_at: float | None = None
    rest_until: float | None = None
    error: str | None = None
    ok_at: float | None = None
    parked: int = 0
    parked_at: float | None = None

    def resting(self, now: float) -> bool:
        """Return whether it is left alone. A clock that was set back makes nobody wait for its old time."""
        if self.rest_until is None or self.tried_at is None:
            return False
        return self.tried_at <= now < self.rest_until


def after_success(before: ReceiverHealth, now: float) -> ReceiverHealth:
    """Return how it stands with a receiver that has just taken a parcel."""
    return ReceiverHealth(receiver=before.receiver, ok_at=now, error=before.error, parked_at=before.parked_at)


def after_failure(before: ReceiverHealth, error: str, rest: float, now: float) -> ReceiverHealth:
    """Return how it stands with a receiver that has just failed, and is left alone for `rest` seconds."""
    since = before.failing_since
    return replace(
        before,
        failures=before.failures + 1,
        failing_since=now if since is None else min(since, now),
        tried_at=now,
        rest_until=now + rest,
        error=error,
    )


def after_parking(before: ReceiverHealth, error: str, now: float) -> ReceiverHealth:
    """Return how it stands with a receiver that has just refused a parcel for good: it answers, so go on at once."""
    return ReceiverHealth(
        receiver=before.receiver,
        error=error,
        ok_at=before.ok_at,
        parked=before.parked + 1,
        parked_at=now,
    )
