"""What is stored of alerts and notifications."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.alert.bounds import MAX_NOTIFICATION_BYTES, MAX_USERS, stored_notification
from monitor.alert.model import NotificationSubject, Phase
from monitor.facts.findings import Scope
from tests.alert.receivers.batches import finding, notification, subject

LARGE = replace(finding(), raw="x" * (MAX_NOTIFICATION_BYTES // 3))


def phases(*subjects: NotificationSubject) -> tuple[list[Phase], int]:
    """Phases of the subjects that are stored, and how many are left out."""
    stored = stored_notification(notification(*subjects))
    return [each.phase for each in stored.subjects], stored.omitted


def test_subjects_that_do_not_fit_are_counted() -> None:
    assert phases(*[subject(LARGE)] * 5) == ([Phase.FIRING] * 2, 3)
    assert phases(*[subject()] * 5) == ([Phase.FIRING] * 5, 0)
    stored = stored_notification(notification(*[subject(LARGE)] * 5, omitted=4))
    assert stored.omitted == 7, "those left out before count"


def test_the_first_subject_always_fits() -> None:
    huge = replace(finding(), raw="x" * MAX_NOTIFICATION_BYTES)
    assert phases(subject(huge), subject()) == ([Phase.FIRING], 1)


def test_a_group_that_still_fires_is_not_stored_as_resolved() -> None:
    resolved = [subject(LARGE, Phase.RESOLVED)] * 4
    assert phases(*resolved, subject(), subject()) == ([Phase.RESOLVED] * 2 + [Phase.FIRING], 3)
    assert phases(*resolved) == ([Phase.RESOLVED] * 2, 2)


def test_what_a_finding_explains_is_not_stored() -> None:
    cause = replace(finding(), explains=(Scope(labels={"node": "n1"}),))
    (stored,) = stored_notification(notification(subject(cause))).subjects
    assert stored.finding == finding()


def test_users_are_limited() -> None:
    many = tuple(f"u{number}" for number in range(MAX_USERS + 1))
    assert stored_notification(notification(subject(), users=many)).users == many[:MAX_USERS]
