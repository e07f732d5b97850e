"""What messages owners want, and when."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.alert.model import Notification, NotificationReason, NotificationSubject, Phase
from monitor.alert.owner_preferences import OwnerBook, OwnerCategory, OwnerPreferences, mentioning, to_owners
from monitor.alert.windows import QuietHours
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

NIGHT = 1_709_337_600.0  # 2024-03-02 00:00 UTC
MORNING = NIGHT + 8 * 3600
NOON, EVENING = NIGHT + 12 * 3600, NIGHT + 18 * 3600
QUIET = QuietHours("22:00", "08:00")


def notification(
    rule: str = "job-finished",
    cause: str = "done",
    user: str = "zhang",
    severity: Severity = Severity.INFO,
    **more: Any,
) -> Notification:
    finding = Finding(
        rule=rule,
        severity=severity,
        cause=cause,
        labels={"user": user, "job": "bert"},
        headline=Text("job-finished.done"),
    )
    subject = NotificationSubject(fingerprint=f"f-{rule}", finding=finding, phase=Phase.FIRING, since=0.0)
    fields: dict[str, Any] = {
        "id": f"id-{rule}", "receiver": "chat", "group": f"g-{rule}", "reason": NotificationReason.NEW,
        "severity": severity, "at": 0.0, "subjects": (subject,), "users": (user,),
    }  # fmt: skip
    return Notification(**(fields | more))


def book(**preferences: Any) -> OwnerBook:
    return OwnerBook(by_user={"zhang": OwnerPreferences(**preferences)})


FAILED = notification("job-failed", "crash-error", severity=Severity.WARNING)
DATA = notification("cleanup-notice", "datasets", severity=Severity.WARNING)
REPORT = notification("cleanup-report", "datasets")
TIMES = [
    ("no preferences", notification(), {}, NIGHT, None),
    ("outside of quiet hours", notification(), {"quiet": QUIET}, NOON, None),
    ("in quiet hours", notification(), {"quiet": QUIET}, NIGHT, MORNING),
    ("a failure in quiet hours", FAILED, {"quiet": QUIET}, NIGHT, MORNING),
    ("a finished job, with a digest", notification(), {"digest": "18:00"}, NOON, EVENING),
    ("after the digest of today", notification(), {"digest": "11:00"}, NOON, NOON + 23 * 3600),
    ("a failure is urgent", FAILED, {"digest": "18:00"}, NOON, None),
    ("a notice about data", DATA, {"digest": "18:00"}, NOON, EVENING),
    ("a report is for administrators", REPORT, {"digest": "18:00", "quiet": QUIET}, NIGHT, None),
    ("an alert from elsewhere", notification("job-runner-down", "external"), {"digest": "18:00"}, NOON, None),
    ("another owner", notification(user="li"), {"digest": "18:00"}, NOON, None),
]


@pytest.mark.parametrize(
    ("given", "preferences", "now", "not_before"), [case[1:] for case in TIMES], ids=[case[0] for case in TIMES]
)
def test_a_notice_is_sent_when_its_owner_wants_it(
    given: Notification, preferences: dict[str, Any], now: float, not_before: float | None
) -> None:
    (found,) = to_owners((given,), book(**preferences), now)
    assert found.not_before == not_before
    assert found.due_at == (not_before or given.at)


def test_what_waits_for_the_digest_is_one_group_of_its_owner() -> None:
    found = to_owners((notification(), DATA), book(digest="18:00"), NOON)
    assert {each.group for each in found} == {"owner/zhang"}
    assert len({each.id for each in found}) == 2


OPT_OUT = [
    (notification(), OwnerCategory.RESULTS), (FAILED, OwnerCategory.RESULTS), (DATA, OwnerCategory.DATASETS),
    (notification("cleanup-notice", "gpus"), OwnerCategory.IDLE),
]  # fmt: skip


@pytest.mark.parametrize(("given", "category"), OPT_OUT)
def test_an_owner_may_opt_out_of_a_category(given: Notification, category: OwnerCategory) -> None:
    others = frozenset(OwnerCategory) - {category}
    assert to_owners((given,), book(opt_out=frozenset({category})), NOON) == ()
    assert to_owners((given,), book(opt_out=others), NOON) == (given,)


def test_the_defaults_count_for_owners_without_preferences() -> None:
    found = OwnerBook(others=OwnerPreferences(opt_out=frozenset({OwnerCategory.RESULTS})))
    assert to_owners((notification(),), found, NOON) == ()


def test_an_owner_with_a_webhook_gets_one_message_there_instead_of_in_the_groups() -> None:
    given = (notification(id="1"), notification(id="2", receiver="mail"))
    found = to_owners(given, OwnerBook(personal=frozenset({"zhang"})), NOON)
    assert [each.receiver for each in found] == ["owner/zhang"]
    again = to_owners(given[1:], OwnerBook(personal=frozenset({"zhang"})), NOON)
    assert again[0].id == found[0].id


ALERT = notification("gpu-idle", "idle", users=("li", "zhang"), severity=Severity.WARNING)
MENTIONS = [
    ("wants all", ALERT, {}, NOON, ("li", "zhang")),
    ("does not want this", ALERT, {"opt_out": frozenset({OwnerCategory.IDLE})}, NOON, ("li",)),
    ("does not want something else", ALERT, {"opt_out": frozenset({OwnerCategory.RESULTS})}, NOON, ("li", "zhang")),
    ("sleeps", ALERT, {"quiet": QUIET}, NIGHT, ("li",)),
    ("is awake", ALERT, {"quiet": QUIET}, NOON, ("li", "zhang")),
    ("sleeps, but it is critical", notification("gpu-fault", "xid", severity=Severity.CRITICAL), {"quiet": QUIET},
     NIGHT, ("zhang",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "preferences", "now", "users"), [case[1:] for case in MENTIONS], ids=[case[0] for case in MENTIONS]
)
def test_an_alert_mentions_who_wants_that(
    given: Notification, preferences: dict[str, Any], now: float, users: tuple[str, ...]
) -> None:
    assert mentioning(given, book(**preferences), now).users == users
