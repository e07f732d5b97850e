"""Whose turn it is at a receiver: a parcel that was interrupted, one that failed before, or something fresh. Pure.

While a receiver is down only few parcels are opened: what is not yet in one can still be merged. And one parcel that a
receiver does not like must not keep it from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.alert.delivery.backoff import ReceiverHealth
from monitor.alert.delivery.batching import Capacity, QueuedNotification, SendPlan, allowed_at, plan_batch
from monitor.alert.model import Notification
from monitor.alert.receivers.base import RateLimit

MAX_OPEN_BATCHES = 3  # so many that failed, and nothing else is tried until the receiver takes one


@dataclass(frozen=True)
class OpenBatch:
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
class ReceiverQueue:
    """What there is for a receiver, when it was sent something, and how it stands with it."""

    waiting: tuple[QueuedNotification, ...]  # nothing of a group that has an open parcel: its order is kept
    open: tuple[OpenBatch, ...]
    attempts: tuple[float, ...]
    health: ReceiverHealth


@dataclass(frozen=True)
class NextSend:
    """Try this parcel again, or send these as a new one, or look again at that time (None: when something arrives)."""

    again: OpenBatch | None = None
    fresh: tuple[QueuedNotification, ...] = ()
    look_at: float | None = None


def next_send(queue: ReceiverQueue, pace: RateLimit, holds: Capacity, now: float) -> NextSend:
    """Given what there is for a receiver, return what to do now."""
    if not queue.waiting and not queue.open:
        return NextSend()
    if queue.health.resting(now):
        return NextSend(look_at=queue.health.rest_until)
    allowed = allowed_at(pace, queue.attempts, now)
    if allowed > now:
        return NextSend(look_at=allowed)
    plan = plan_batch(queue.waiting, queue.attempts, pace, holds, now) if _may_open(queue) else SendPlan()
    due = sorted((each for each in queue.open if each.due_at(now) <= now), key=_order)
    # After a failure something else is tried: it may have been the parcel, and not the receiver.
    if plan.together and (not due or (queue.health.failures and not due[0].interrupted)):
        return NextSend(fresh=plan.together)
    if due:
        return NextSend(again=due[0])
    return NextSend(look_at=_soonest([plan.look_at, *(each.due_at(now) for each in queue.open)]))


def _may_open(queue: ReceiverQueue) -> bool:
    """Return whether a new parcel may be tried. Those that failed before the receiver last took one do not count."""
    ok_at = queue.health.ok_at
    return sum(ok_at is None or each.tried_at > ok_at for each in queue.open) < MAX_OPEN_BATCHES


def _order(parcel: OpenBatch) -> tuple[bool, float]:
    return not parcel.interrupted, parcel.tried_at


def _soonest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)
