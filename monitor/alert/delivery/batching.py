"""What is sent next to a receiver that takes only so many messages a minute: one, several in one, or nothing yet. Pure.

Nothing is ever dropped. With room everything goes by itself and at once. What does not fit the room that is left is
merged: the critical last, and a quarter of the room is theirs alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from monitor.alert.model import (
    SEVERITY_RANK,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    worst_severity,
)
from monitor.alert.receivers.base import RateLimit
from monitor.facts.findings import Severity

Capacity = Callable[[Sequence[Notification]], int]

# When several messages about a group become one, the first of these is why it is sent.
REASONS = (
    NotificationReason.NEW,
    NotificationReason.WORSE,
    NotificationReason.MORE,
    NotificationReason.RESOLVED,
    NotificationReason.REPEAT,
)


@dataclass(frozen=True)
class QueuedNotification:
    """A notification that waits, and its place in the order of arrival."""

    place: int
    notification: Notification

    @property
    def critical(self) -> bool:
        return self.notification.severity is Severity.CRITICAL


@dataclass(frozen=True)
class SendPlan:
    """What goes into one message now (`together`), or else when to look again; None when something new arrives."""

    together: tuple[QueuedNotification, ...] = ()
    look_at: float | None = None


@dataclass(frozen=True)
class RateBudget:
    """How many messages a receiver takes in a window, and when it was sent those that count against it now."""

    capacity: float  # infinite without a limit
    window: float
    used: tuple[float, ...]  # the oldest first
    now: float

    @property
    def left(self) -> float:
        return self.capacity - len(self.used)

    @property
    def reserve(self) -> float:
        """Return how much is kept for the critical."""
        return 0 if math.isinf(self.capacity) else self.capacity // 4

    @property
    def in_hand(self) -> float:
        """Return how much of the reserve is kept for criticals that come while others are sent one by one."""
        return 0 if math.isinf(self.capacity) else self.capacity // 8

    def frees_at(self, wanted: float) -> float:
        """Return when so much will be left."""
        missing = wanted - self.left
        return self.now if missing <= 0 else self.used[int(missing) - 1] + self.window

    def spread(self, left: float) -> float:
        """Return when to send next so that what is left lasts until the oldest message leaves the window."""
        if not self.used:
            return self.now
        return self.used[-1] + (self.used[0] + self.window - self.used[-1]) / (left + 1)


def rate_budget(pace: RateLimit, attempts: Sequence[float], now: float) -> RateBudget:
    """Given when messages were sent, return the room that is left. A gap between two limits a window as well."""
    by_gap = pace.window // pace.gap if pace.gap else math.inf
    used = tuple(sorted(min(at, now) for at in attempts if at + pace.window > now))
    return RateBudget(min(math.inf if pace.count is None else pace.count, max(1.0, by_gap)), pace.window, used, now)


def allowed_at(pace: RateLimit, attempts: Sequence[float], now: float) -> float:
    """Return when the receiver may be sent anything at all again; `now` or earlier if it may be."""
    room = rate_budget(pace, attempts, now)
    after_gap = room.used[-1] + pace.gap if room.used else now
    return max(after_gap, room.frees_at(1))


def plan_batch(
    waiting: Sequence[QueuedNotification], attempts: Sequence[float], pace: RateLimit, holds: Capacity, now: float
) -> SendPlan:
    """Given what waits and when messages were sent before, return what goes now, or when to look again.

    `holds` says how many notifications, from the first, fit into one message.
    """
    if not waiting:
        return SendPlan()
    allowed = allowed_at(pace, attempts, now)
    if allowed > now:
        return SendPlan(look_at=allowed)
    room = rate_budget(pace, attempts, now)
    ordered = sorted(waiting, key=lambda each: (SEVERITY_RANK[each.notification.severity], each.place))
    critical = [each for each in ordered if each.critical]
    return _critical(critical, room, holds) if critical else _others(ordered, room, holds)


def _critical(waiting: list[QueuedNotification], room: RateBudget, holds: Capacity) -> SendPlan:
    """Send one by one while the rest would fit into what is left then; else as many in one message as it holds."""
    batch = _batch(waiting, holds)
    rest = math.ceil((len(waiting) - 1) / len(batch))
    if room.left - 1 - room.in_hand >= rest:
        return SendPlan(together=(waiting[0],))
    return _send_or_spread(batch, waiting, room, room.left, room.in_hand)


def _others(waiting: list[QueuedNotification], room: RateBudget, holds: Capacity) -> SendPlan:
    """Send one by one while all fit; else merged, and not a slot for one or two while a storm goes on."""
    left = room.left - room.reserve
    if left < 1:
        return SendPlan(look_at=room.frees_at(room.reserve + 1))
    scarce = 0 if math.isinf(room.capacity) else (room.capacity - room.reserve) // 4
    if len(waiting) <= left and left > scarce:
        return SendPlan(together=(waiting[0],))
    return _send_or_spread(_batch(waiting, holds), waiting, room, left, scarce)


def _send_or_spread(
    batch: tuple[QueuedNotification, ...],
    waiting: list[QueuedNotification],
    room: RateBudget,
    left: float,
    scarce: float,
) -> SendPlan:
    """Send a full message now. While little is left, one that is not full waits until its turn in the window."""
    turn = room.spread(left)
    if len(batch) < len(waiting) or left > scarce or turn <= room.now:
        return SendPlan(together=batch)
    return SendPlan(look_at=turn)


def _batch(waiting: list[QueuedNotification], holds: Capacity) -> tuple[QueuedNotification, ...]:
    fitting = holds([each.notification for each in waiting])
    return tuple(waiting[: max(1, fitting)])


def merge(earlier: Notification, later: Notification) -> Notification:
    """Given two messages about one group of which neither was sent, return the one that says how it is in the end.

    What fired and is over meanwhile is still in it, as over. It is as late as the earlier one.
    """
    subjects: dict[str, NotificationSubject] = {subject.fingerprint: subject for subject in earlier.subjects}
    for subject in later.subjects:
        before = subjects.get(subject.fingerprint)
        fresh = subject.fresh or (before is not None and before.fresh)
        subjects[subject.fingerprint] = replace(subject, fresh=fresh)
    merged = replace(
        later,
        severity=worst_severity([earlier.severity, later.severity]),
        at=min(earlier.at, later.at),
        subjects=tuple(sorted(subjects.values(), key=_order)),
        users=tuple(sorted({*earlier.users, *later.users})),
    )
    return replace(merged, reason=_reason(earlier.reason, later.reason, over=merged.resolved))


def _order(subject: NotificationSubject) -> tuple[bool, bool, int, float, str]:
    over, rank = subject.phase is Phase.RESOLVED, SEVERITY_RANK[subject.finding.severity]
    return not subject.fresh, over, rank, subject.since, subject.fingerprint


def _reason(earlier: NotificationReason, later: NotificationReason, *, over: bool) -> NotificationReason:
    return NotificationReason.RESOLVED if over else min(earlier, later, key=REASONS.index)


def may_merge(earlier: Notification, later: Notification) -> bool:
    """Return whether two messages are about the state of one group: summaries and samples stand for themselves."""
    special = any(each.summary is not None or each.sample for each in (earlier, later))
    return not special and (earlier.receiver, earlier.group) == (later.receiver, later.group)
