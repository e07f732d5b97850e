"""Retry delays, and the health of a receiver."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.facts.base import Fact

FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 300.0
MAX_RETRY_AFTER_SECONDS = 3600.0  # a receiver that asks for a longer pause may be mistaken


def retry_delay(failures: int, jitter: float, after: float | None = None) -> float:
    """Seconds to wait after a number of consecutive failures (at least one), with `jitter` in [0, 1).

    The delay doubles from one second to five minutes; jitter takes off up to a half, to spread retries. It is never
    shorter than the `after` that the receiver asked for.
    """
    doubled = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 32))
    return max(doubled * (1.0 - jitter / 2.0), min(after or 0.0, MAX_RETRY_AFTER_SECONDS))


class ReceiverHealth(Fact, frozen=True, kw_only=True):
    """Health of a receiver: consecutive `failures`, and batches `parked` since the last success.

    `error` is the last failure. No attempts are made until `rest_until`.
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
        """Whether attempts are suspended; a clock that was set back ends the pause."""
        if self.rest_until is None or self.tried_at is None:
            return False
        return self.tried_at <= now < self.rest_until


def after_success(before: ReceiverHealth, now: float) -> ReceiverHealth:
    """Health after a successful delivery."""
    return ReceiverHealth(receiver=before.receiver, ok_at=now, error=before.error, parked_at=before.parked_at)


def after_failure(before: ReceiverHealth, error: str, rest: float, now: float) -> ReceiverHealth:
    """Health after a failed delivery, with a pause of `rest` seconds."""
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
    """Health after a permanent refusal: the receiver answers, so there is no pause."""
    return ReceiverHealth(
        receiver=before.receiver,
        error=error,
        ok_at=before.ok_at,
        parked=before.parked + 1,
        parked_at=now,
    )
