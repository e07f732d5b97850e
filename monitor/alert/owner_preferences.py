"""What messages owners want, and when: opt-out by category, quiet hours, one digest a day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec.structs import replace

from monitor.alert.model import JOB_RESULTS, Notification, notification_id
from monitor.alert.windows import QuietHours, time_of_day
from monitor.base.cron import next_run
from monitor.facts.findings import Finding, Severity

PERSONAL_PREFIX = "owner/"  # of the names of receivers that are webhooks of single owners
CLEANUP_NOTICE = "cleanup-notice"
_IDLE_RULES = frozenset({"gpu-idle", "gpu-underused"})


class OwnerCategory(StrEnum):
    """What a message to an owner is about."""

    RESULTS = "results"
    IDLE = "idle"
    DATASETS = "datasets"
    ALERTS = "alerts"


@dataclass(frozen=True)
class OwnerPreferences:
    """What an owner wants. `digest` is the time of day at which they get what is not urgent, in one message."""

    quiet: QuietHours | None = None
    digest: str | None = None
    opt_out: frozenset[OwnerCategory] = frozenset()
    timezone: str = "UTC"

    def next_digest(self, now: float) -> float | None:
        return None if self.digest is None else _next(self.digest, self.timezone, now)

    def quiet_until(self, now: float) -> float | None:
        """End of the quiet hours; None outside of them."""
        if self.quiet is None or not self.quiet.contains(now):
            return None
        return _next(self.quiet.end, self.quiet.timezone, now)


@dataclass(frozen=True)
class OwnerBook:
    """Preferences by user, those of all others, and the users with a receiver of their own."""

    by_user: Mapping[str, OwnerPreferences] = field(default_factory=dict)
    others: OwnerPreferences = field(default_factory=OwnerPreferences)
    personal: frozenset[str] = frozenset()

    def of(self, user: str) -> OwnerPreferences:
        return self.by_user.get(user, self.others)


def category_of(finding: Finding) -> OwnerCategory:
    """Category of a message about a finding."""
    if finding.rule in JOB_RESULTS:
        return OwnerCategory.RESULTS
    if finding.rule == CLEANUP_NOTICE:
        return OwnerCategory.DATASETS if finding.cause == "datasets" else OwnerCategory.IDLE
    return OwnerCategory.IDLE if finding.rule in _IDLE_RULES else OwnerCategory.ALERTS


def to_owners(notifications: Iterable[Notification], book: OwnerBook, now: float) -> tuple[Notification, ...]:
    """Notifications as their owners want them. Those that are for no single owner stay as they are."""
    wanted: dict[str, Notification] = {}
    for notification in notifications:
        if (user := _owner_of(notification)) is None:
            wanted[notification.id] = notification
        elif (changed := _to_owner(notification, user, book, now)) is not None:
            wanted.setdefault(changed.id, changed)
    return tuple(wanted.values())


def mentioning(notification: Notification, book: OwnerBook, now: float) -> Notification:
    """A notification about alerts without the owners who do not want to be mentioned: ever, or during these hours."""
    categories = {category_of(subject.finding) for subject in notification.subjects}
    critical = notification.severity is Severity.CRITICAL

    def wants(user: str) -> bool:
        preferences = book.of(user)
        return not categories <= preferences.opt_out and (critical or preferences.quiet_until(now) is None)

    users = tuple(user for user in notification.users if wants(user))
    return notification if users == notification.users else replace(notification, users=users)


def _owner_of(notification: Notification) -> str | None:
    """The owner that a notice or the result of a job is for."""
    rules = [subject.finding.rule for subject in notification.subjects]
    personal = bool(rules) and all(rule == CLEANUP_NOTICE or rule in JOB_RESULTS for rule in rules)
    users = {subject.finding.labels.get("user") for subject in notification.subjects}
    return users.pop() if personal and len(users) == 1 else None


def _to_owner(notification: Notification, user: str, book: OwnerBook, now: float) -> Notification | None:
    preferences = book.of(user)
    category = category_of(notification.subjects[0].finding)
    if category in preferences.opt_out:
        return None
    if user in book.personal:
        receiver = f"{PERSONAL_PREFIX}{user}"
        changed_id = notification_id("personal", user, notification.group, notification.subjects[0].fingerprint)
        notification = replace(notification, receiver=receiver, id=changed_id)
    urgent = category is OwnerCategory.RESULTS and notification.severity is not Severity.INFO
    if not urgent and (at := preferences.next_digest(now)) is not None:
        # Waiting notifications of one group are merged: the outbox sends one message a day.
        return replace(notification, group=f"{PERSONAL_PREFIX}{user}", not_before=at)
    return replace(notification, not_before=preferences.quiet_until(now))


def _next(clock: str, timezone: str, now: float) -> float | None:
    at = time_of_day(clock)
    return next_run(f"{at.minute} {at.hour} * * *", timezone, now)
