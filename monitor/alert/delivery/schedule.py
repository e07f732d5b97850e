"""Scheduling for one receiver: an interrupted batch, a failed one, or a new one.

While a receiver is down only a few batches are opened, because notifications outside a batch can still be merged. One
batch that a receiver keeps refusing must not block the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.alert.delivery.backoff import ReceiverHealth
from monitor.alert.delivery.batching import Capacity, QueuedNotification, SendPlan, allowed_at, plan_batch
from monitor.alert.model import Notification
from monitor.alert.receivers.base import RateLimit

MAX_OPEN_BATCHES = 3  # failed ones, before new ones wait for a success


@dataclass(frozen=True)
class OpenBatch:
    """A batch that was tried at least once and is neither sent nor parked. Its content never changes."""

    id: str
    receiver: str
    notifications: tuple[Notification, ...]
    attempts: int
    failures: int
    tried_at: float
    next_at: float

    @property
    def interrupted(self) -> bool:
        """Whether the outcome of the last attempt is unknown: in progress, or the process was killed."""
        return self.attempts > self.failures

    def due_at(self, now: float) -> float:
        """When to retry; immediately if the clock was set back."""
        return now if self.interrupted or self.tried_at > now else self.next_at


@dataclass(frozen=True)
class ReceiverQueue:
    """Waiting notifications, open batches, times of recent attempts, and health of a receiver.

    `later_at` is when the next notification is due of those that are not to be sent yet.
    """

    waiting: tuple[QueuedNotification, ...]  # without groups that have an open batch: groups are sent in order
    open: tuple[OpenBatch, ...]
    attempts: tuple[float, ...]
    health: ReceiverHealth
    later_at: float | None = None


@dataclass(frozen=True)
class NextSend:
    """Batch to retry, or notifications to send as a new batch, or when to check again (None: on the next arrival)."""

    retry: OpenBatch | None = None
    new: tuple[QueuedNotification, ...] = ()
    check_at: float | None = None


def next_send(queue: ReceiverQueue, limit: RateLimit, capacity: Capacity, now: float) -> NextSend:
    """What to send to a receiver next."""
    if not queue.waiting and not queue.open:
        return NextSend(check_at=queue.later_at)
    if queue.health.resting(now):
        return NextSend(check_at=queue.health.rest_until)
    allowed = allowed_at(limit, queue.attempts, now)
    if allowed > now:
        return NextSend(check_at=allowed)
    plan = plan_batch(queue.waiting, queue.attempts, limit, capacity, now) if _may_open(queue) else SendPlan()
    due = sorted((batch for batch in queue.open if batch.due_at(now) <= now), key=_order)
    # After a failure a new batch goes first: the previous one may be at fault rather than the receiver.
    if plan.batch and (not due or (queue.health.failures and not due[0].interrupted)):
        return NextSend(new=plan.batch)
    if due:
        return NextSend(retry=due[0])
    return NextSend(check_at=_earliest([plan.check_at, queue.later_at, *(batch.due_at(now) for batch in queue.open)]))


def _may_open(queue: ReceiverQueue) -> bool:
    """Whether a new batch may be opened. Batches that failed before the last success do not count."""
    ok_at = queue.health.ok_at
    return sum(ok_at is None or batch.tried_at > ok_at for batch in queue.open) < MAX_OPEN_BATCHES


def _order(batch: OpenBatch) -> tuple[bool, float]:
    return not batch.interrupted, batch.tried_at


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)
