"""Whose turn it is at a receiver: a parcel that was interrupted, one that failed before, or something fresh. Pure.

While a receiver is down only few parcels are opened: what is not yet in one can still be merged. And one parcel that a
receiver does not like must not keep it from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.alert.delivery.backoff import Health
from monitor.alert.delivery.batching import Holds, Plan, Waiting, allowed_at, next_parcel
from monitor.alert.model import Notification
from monitor.alert.receivers.base import Pace

MOST_OPEN = 3  # so many that failed, and nothing else is tried until the receiver takes one


@dataclass(frozen=True)
class OpenParcel:
    """A parcel that was tried at least once and neither arrived nor was parked. Its content never changes."""

    id: str
    receiver: str
    notifications: tuple[Notification, ...]
    attempts: int
    failures: int
    tried_at: float
    next_at: float

    @property
    def interrupted(self) -> bool:
        """Return whether nobody knows how the last attempt ended: it is under way, or the process was killed."""
        return self.attempts > self.failures

    def due_at(self, now: float) -> float:
        """Return when it may be tried again. A clock that was set back makes it wait for nothing."""
        return now if self.interrupted or self.tried_at > now else self.next_at


@dataclass(frozen=True)
class Queue:
    """What there is for a receiver, when it was sent something, and how it stands with it."""

    waiting: tuple[Waiting, ...]  # nothing of a group that has an open parcel: its order is kept
    open: tuple[OpenParcel, ...]
    attempts: tuple[float, ...]
    health: Health


@dataclass(frozen=True)
class Turn:
    """Try this parcel again, or send these as a new one, or look again at that time (None: when something arrives)."""

    again: OpenParcel | None = None
    fresh: tuple[Waiting, ...] = ()
    look_at: float | None = None


def next_turn(queue: Queue, pace: Pace, holds: Holds, now: float) -> Turn:
    """Given what there is for a receiver, return what to do now."""
    if not queue.waiting and not queue.open:
        return Turn()
    if queue.health.resting(now):
        return Turn(look_at=queue.health.rest_until)
    allowed = allowed_at(pace, queue.attempts, now)
    if allowed > now:
        return Turn(look_at=allowed)
    plan = next_parcel(queue.waiting, queue.attempts, pace, holds, now) if _may_open(queue) else Plan()
    due = sorted((each for each in queue.open if each.due_at(now) <= now), key=_order)
    # After a failure something else is tried: it may have been the parcel, and not the receiver.
    if plan.together and (not due or (queue.health.failures and not due[0].interrupted)):
        return Turn(fresh=plan.together)
    if due:
        return Turn(again=due[0])
    return Turn(look_at=_soonest([plan.look_at, *(each.due_at(now) for each in queue.open)]))


def _may_open(queue: Queue) -> bool:
    """Return whether a new parcel may be tried. Those that failed before the receiver last took one do not count."""
    ok_at = queue.health.ok_at
    return sum(ok_at is None or each.tried_at > ok_at for each in queue.open) < MOST_OPEN


def _order(parcel: OpenParcel) -> tuple[bool, float]:
    return not parcel.interrupted, parcel.tried_at


def _soonest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)
