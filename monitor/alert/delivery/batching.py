"""Batching under a rate limit: what to send next to a receiver, one notification, several merged, or nothing yet.

Nothing is dropped. While the budget lasts, every notification is sent at once and on its own. What exceeds it is merged
into digests, critical notifications last; a quarter of the budget is reserved for them.
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

Capacity = Callable[[Sequence[Notification]], int]  # how many notifications, from the first, fit into one message

MAX_MERGED_ANSWERS = 9  # links of one message
# Precedence of reasons when notifications about a group are merged.
REASONS = [NotificationReason(name) for name in ("new", "worse", "more-subjects", "resolved", "repeat")]


@dataclass(frozen=True)
class QueuedNotification:
    """A waiting notification and its sequence number."""

    sequence: int
    notification: Notification

    @property
    def critical(self) -> bool:
        return self.notification.severity is Severity.CRITICAL


@dataclass(frozen=True)
class SendPlan:
    """Notifications to send in one message now, or else when to check again (None: on the next arrival)."""

    batch: tuple[QueuedNotification, ...] = ()
    check_at: float | None = None


@dataclass(frozen=True)
class RateBudget:
    """Messages that a receiver accepts per window, and the times of those that count against it now."""

    capacity: float  # infinite without a limit
    window: float
    used: tuple[float, ...]  # oldest first
    now: float

    @property
    def left(self) -> float:
        return self.capacity - len(self.used)

    @property
    def reserve(self) -> float:
        """Part of the budget for critical notifications only."""
        return 0 if math.isinf(self.capacity) else self.capacity // 4

    @property
    def spare(self) -> float:
        """Part of the reserve for critical notifications that arrive while others are sent one by one."""
        return 0 if math.isinf(self.capacity) else self.capacity // 8

    def frees_at(self, wanted: float) -> float:
        """When `wanted` messages will be left."""
        missing = wanted - self.left
        return self.now if missing <= 0 else self.used[int(missing) - 1] + self.window

    def spread(self, left: float) -> float:
        """When to send next so that `left` messages last until the oldest one leaves the window."""
        if not self.used:
            return self.now
        return self.used[-1] + (self.used[0] + self.window - self.used[-1]) / (left + 1)


def rate_budget(limit: RateLimit, attempts: Sequence[float], now: float) -> RateBudget:
    """Budget after attempts at these times. A minimum gap limits the window as well."""
    by_gap = limit.window // limit.gap if limit.gap else math.inf
    used = tuple(sorted(min(at, now) for at in attempts if at + limit.window > now))
    capacity = min(math.inf if limit.count is None else limit.count, max(1.0, by_gap))
    return RateBudget(capacity, limit.window, used, now)


def allowed_at(limit: RateLimit, attempts: Sequence[float], now: float) -> float:
    """When the rate limit allows the next message; `now` or earlier if it does already."""
    budget = rate_budget(limit, attempts, now)
    after_gap = budget.used[-1] + limit.gap if budget.used else now
    return max(after_gap, budget.frees_at(1))


def plan_batch(
    queued: Sequence[QueuedNotification], attempts: Sequence[float], limit: RateLimit, capacity: Capacity, now: float
) -> SendPlan:
    """Plan the next message, given the waiting notifications and the times of previous attempts."""
    if not queued:
        return SendPlan()
    allowed = allowed_at(limit, attempts, now)
    if allowed > now:
        return SendPlan(check_at=allowed)
    budget = rate_budget(limit, attempts, now)
    ordered = sorted(queued, key=lambda entry: (SEVERITY_RANK[entry.notification.severity], entry.sequence))
    critical = [entry for entry in ordered if entry.critical]
    return _plan_critical(critical, budget, capacity) if critical else _plan_others(ordered, budget, capacity)


def _plan_critical(queued: list[QueuedNotification], budget: RateBudget, capacity: Capacity) -> SendPlan:
    """Send one by one as long as the rest fits into the remaining budget, else as many as fit into one message."""
    batch = _fill(queued, capacity)
    rest = math.ceil((len(queued) - 1) / len(batch))
    if budget.left - 1 - budget.spare >= rest:
        return SendPlan(batch=(queued[0],))
    return _send_or_spread(SendPlan(batch), len(batch) < len(queued), budget, budget.left, budget.spare)


def _plan_others(queued: list[QueuedNotification], budget: RateBudget, capacity: Capacity) -> SendPlan:
    """Send one by one as long as all fit, else merged; during a storm, not a message for just one or two."""
    left = budget.left - budget.reserve
    if left < 1:
        return SendPlan(check_at=budget.frees_at(budget.reserve + 1))
    scarce = 0 if math.isinf(budget.capacity) else (budget.capacity - budget.reserve) // 4
    if len(queued) <= left and left > scarce:
        return SendPlan(batch=(queued[0],))
    batch = _fill(queued, capacity)
    return _send_or_spread(SendPlan(batch), len(batch) < len(queued), budget, left, scarce)


def _send_or_spread(plan: SendPlan, full: bool, budget: RateBudget, left: float, scarce: float) -> SendPlan:
    """Send a full message now. One that is not full waits for its slot in the window while the budget is scarce."""
    slot = budget.spread(left)
    return plan if full or left > scarce or slot <= budget.now else SendPlan(check_at=slot)


def _fill(queued: list[QueuedNotification], capacity: Capacity) -> tuple[QueuedNotification, ...]:
    fitting = capacity([entry.notification for entry in queued])
    return tuple(queued[: max(1, fitting)])


def merge(earlier: Notification, later: Notification) -> Notification:
    """Merge two unsent notifications about a group into one that reports its latest state.

    Alerts that fired and resolved in between are included as resolved. The lateness counts from the earlier one.
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
        omitted=max(earlier.omitted, later.omitted),
        answers=(*earlier.answers, *later.answers)[:MAX_MERGED_ANSWERS],
        page=later.page if earlier.page == later.page else None,
        not_before=_earlier(earlier.not_before, later.not_before),
    )
    if merged.resolved:
        return replace(merged, reason=NotificationReason.RESOLVED)
    return replace(merged, reason=min(earlier.reason, later.reason, key=REASONS.index))


def _earlier(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else min(first, second)


def _order(subject: NotificationSubject) -> tuple[bool, bool, int, float, str]:
    resolved, rank = subject.phase is Phase.RESOLVED, SEVERITY_RANK[subject.finding.severity]
    return not subject.fresh, resolved, rank, subject.since, subject.fingerprint


def may_merge(earlier: Notification, later: Notification) -> bool:
    """Whether two notifications report the state of the same group; digests and test messages stay separate."""
    special = any(entry.summary is not None or entry.sample for entry in (earlier, later))
    return not special and (earlier.receiver, earlier.group) == (later.receiver, later.group)
