"""How long a receiver that did not take a message is left alone, and how it stands with it. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.facts.base import Fact

FIRST = 1.0
LONGEST = 300.0
LONGEST_ASKED = 3600.0  # a receiver that asks for more is tried nevertheless: it may have been a mistake


def delay(failures: int, jitter: float, after: float | None = None) -> float:
    """Given how often in a row it failed (at least once) and a random number in [0, 1), return the seconds to wait.

    They double from one second to five minutes; jitter takes away up to a half, so that many do not come back at once.
    What the receiver asked for (`after`) is waited for in any case.
    """
    doubled = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 32))
    return max(doubled * (1.0 - jitter / 2.0), min(after or 0.0, LONGEST_ASKED))


class Health(Fact, frozen=True, kw_only=True):
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


def after_success(before: Health, now: float) -> Health:
    """Return how it stands with a receiver that has just taken a parcel."""
    return Health(receiver=before.receiver, ok_at=now, error=before.error, parked_at=before.parked_at)


def after_failure(before: Health, error: str, rest: float, now: float) -> Health:
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


def after_parking(before: Health, error: str, now: float) -> Health:
    """Return how it stands with a receiver that has just refused a parcel for good: it answers, so go on at once."""
    return Health(
        receiver=before.receiver,
        error=error,
        ok_at=before.ok_at,
        parked=before.parked + 1,
        parked_at=now,
    )
