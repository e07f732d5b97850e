"""The scheduled report: when it is sent, and its text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.delivery.batching import may_merge
from monitor.alert.message.compose import compose
from monitor.alert.message.formats import plain, wecom
from monitor.alert.message.formats.base import fit
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import MailSettings
from monitor.report.buckets import DAY, By
from monitor.report.mail import LAST_SENT_KEY, ReportScheduler, report_notifications, team_notifications
from monitor.report.model import Report
from monitor.report.schedule import ReportSchedule
from monitor.report.team import TeamReport
from tests.alert.receivers.batches import receiver
from tests.report.reports import PRICED, REPORT, digest, report
from tests.support.receivers.smtp_server import SmtpServer

WEEKLY = ReportSchedule("0 9 * * mon", "Asia/Shanghai", ("wecom", "mail"), "user", 7.0 * DAY)
MAX_BYTES = 4096  # of a message of WeCom
GOLDEN = Path(__file__).parent / "golden"


def at(day: int, hour: int, minute: int = 0) -> float:
    """A time in November 2025, UTC; the 17th is a Monday, and Shanghai is eight hours ahead."""
    return datetime(2025, 11, day, hour, minute, tzinfo=UTC).timestamp()


class Outbox:
    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}
        self.sent: list[Notification] = []

    def note(self, name: str) -> bytes | None:
        return self.notes.get(name)

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        self.sent += notifications
        self.notes.update(notes)


class Reports:
    def __init__(self) -> None:
        self.requests: list[tuple[float, By]] = []
        self.teams: list[tuple[str, float, str]] = []

    def team(self, team: str, seconds: float, timezone: str) -> TeamReport:
        self.teams.append((team, seconds, timezone))
        return digest()

    def report(self, seconds: float, by: By) -> Report:
        self.requests.append((seconds, by))
        return REPORT


def check(outbox: Outbox, reports: Reports, now: float, schedule: ReportSchedule = WEEKLY) -> None:
    ReportScheduler(schedule, reports, outbox, lambda: now).check()


CHECKS: list[tuple[str, list[float], int]] = [
    ("the first check only stores the time", [at(17, 1, 30)], 0),
    ("when it is time", [at(16, 12), at(17, 0, 59), at(17, 1, 0)], 1),
    ("once", [at(16, 12), at(17, 1, 0), at(17, 1, 1), at(18, 12)], 1),
    ("each week", [at(16, 12), at(17, 1, 0), at(24, 1, 0)], 2),
    ("made up once after a pause of weeks", [at(1, 12), at(28, 20), at(28, 21)], 1),
    ("a clock that was wrong for a while", [at(28, 0), at(16, 12), at(17, 1)], 1),
]


@pytest.mark.parametrize(("name", "checks", "expect"), CHECKS, ids=[row[0] for row in CHECKS])
def test_when_it_is_sent(name: str, checks: list[float], expect: int) -> None:
    outbox, reports = Outbox(), Reports()
    for now in checks:
        check(outbox, reports, now)
    assert [notification.receiver for notification in outbox.sent] == ["wecom", "mail"] * expect
    assert reports.requests == [(7.0 * DAY, "user")] * expect
    assert LAST_SENT_KEY in outbox.notes


TEAMS: list[tuple[str, tuple[str, ...], list[str]]] = [
    ("besides the report", ("wecom", "mail"), ["wecom", "mail", "nlp-group", "cv-mail", "nlp-group"]),
    ("only to teams", (), ["nlp-group", "cv-mail", "nlp-group"]),
]


@pytest.mark.parametrize(("name", "receivers", "expect"), TEAMS, ids=[row[0] for row in TEAMS])
def test_teams_get_their_digest_at_the_same_time(name: str, receivers: tuple[str, ...], expect: list[str]) -> None:
    teams = (("nlp*", ("nlp-group", "cv-mail")), ("cv", ("nlp-group",)))
    schedule = replace(WEEKLY, receivers=receivers, teams=teams)
    outbox, reports = Outbox(), Reports()
    for now in (at(16, 12), at(17, 1), at(17, 2)):
        check(outbox, reports, now, schedule)
    assert [notification.receiver for notification in outbox.sent] == expect
    assert reports.teams == [("nlp*", 7.0 * DAY, "Asia/Shanghai"), ("cv", 7.0 * DAY, "Asia/Shanghai")]
    assert len(reports.requests) == bool(receivers)
    assert not may_merge(outbox.sent[-1], outbox.sent[-3])


def test_two_messages_are_never_taken_for_one() -> None:
    first = report_notifications(REPORT, ("wecom", "mail"))
    both = (*first, *team_notifications(digest(), ("wecom",)))
    assert len({notification.id for notification in both}) == 3
    assert report_notifications(REPORT, ("wecom", "mail")) == first


def test_a_row_without_gpus_is_not_named() -> None:
    (notification,) = report_notifications(report("node"), ("wecom",))
    assert notification.summary is not None
    named = [text.values["name"] for text in notification.summary.notes if text.key == "report.told.row"]
    assert named == ["gpu01", "gpu02", "gpu03"]  # not nas-01, which has no GPUs


Made = Callable[[str], Notification]
MESSAGES: list[tuple[str, Made]] = [
    ("message", lambda receiver: report_notifications(REPORT, (receiver,), "Asia/Shanghai")[0]),
    ("message.cost", lambda receiver: report_notifications(PRICED, (receiver,), "Asia/Shanghai")[0]),
    ("message.team", lambda receiver: team_notifications(digest(), (receiver,))[0]),
]


@pytest.mark.parametrize(("form", "markup"), [("txt", plain.MARKUP), ("wecom.txt", wecom.MARKUP)])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("name", "made"), MESSAGES, ids=[row[0] for row in MESSAGES])
def test_golden(name: str, made: Made, lang: str, form: str, markup: Any) -> None:
    notification = made("wecom")
    parcel = Batch(id="p", receiver="wecom", notifications=(notification,), at=notification.at)
    voice = Locale(lang, page="https://gpuwarden.lab", timezone="Asia/Shanghai")
    text = fit(compose(parcel, voice), markup, MAX_BYTES, {})
    assert len(text.encode()) <= MAX_BYTES
    check_golden(f"{name}.{lang}.{form}", text + "\n")


def check_golden(name: str, written: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):  # review the diff before committing
        golden.write_text(written, encoding="utf-8")
    assert written == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("name", "made"), MESSAGES, ids=[row[0] for row in MESSAGES])
def test_a_mail_has_charts_and_other_messages_have_their_text(name: str, made: Made, lang: str) -> None:
    notification = made("mail")
    batch = Batch(id="p", receiver="mail", notifications=(notification,), at=notification.at)
    with SmtpServer() as server:
        mail = MailSettings(host="127.0.0.1", port=server.port, to=("ops@example.com",), sender="w@lab", tls="none")
        settings = {"page": "https://gpuwarden.lab", "language": lang, "timezone": "Asia/Shanghai"}
        receiver("mail", mail=mail, **settings).deliver(batch)
    message = server.taken[0].message
    plain_part, html_part = message.get_body(("plain",)), message.get_body(("html",))
    assert plain_part is not None
    assert html_part is not None
    assert "<table" not in plain_part.get_content()
    check_golden(f"{name.replace('message', 'mail')}.{lang}.html", html_part.get_content().replace("\r\n", "\n"))
