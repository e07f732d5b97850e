"""The scheduled report: when it is sent, and its text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.message.compose import compose
from monitor.alert.message.formats import plain, wecom
from monitor.alert.message.formats.base import fit
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import MailSettings
from monitor.report.buckets import DAY, By
from monitor.report.mail import LAST_SENT_KEY, ReportScheduler, report_notifications
from monitor.report.model import Report
from monitor.report.schedule import ReportSchedule
from tests.alert.receivers.batches import receiver
from tests.report.reports import PRICED, REPORT, report
from tests.support.receivers.smtp_server import SmtpServer

WEEKLY = ReportSchedule("0 9 * * mon", "Asia/Shanghai", ("wecom", "mail"), "user", 7.0 * DAY)
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

    def report(self, seconds: float, by: By) -> Report:
        self.requests.append((seconds, by))
        return REPORT


def check(outbox: Outbox, reports: Reports, now: float) -> None:
    ReportScheduler(WEEKLY, reports, outbox, lambda: now).check()


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


def test_two_messages_are_never_taken_for_one() -> None:
    first = report_notifications(REPORT, ("wecom", "mail"))
    assert len({notification.id for notification in first}) == 2
    assert report_notifications(REPORT, ("wecom", "mail")) == first


def test_a_row_without_gpus_is_not_named() -> None:
    (notification,) = report_notifications(report("node"), ("wecom",))
    assert notification.summary is not None
    named = [text.values["name"] for text in notification.summary.notes if text.key == "report.told.row"]
    assert named == ["gpu01", "gpu02", "gpu03"]  # not nas-01, which has no GPUs


@pytest.mark.parametrize(("form", "markup"), [("txt", plain.MARKUP), ("wecom.txt", wecom.MARKUP)])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("name", "made"), [("message", REPORT), ("message.cost", PRICED)])
def test_golden(name: str, made: Report, lang: str, form: str, markup: Any) -> None:
    (notification,) = report_notifications(made, ("wecom",))
    parcel = Batch(id="p", receiver="wecom", notifications=(notification,), at=notification.at)
    voice = Locale(lang, page="https://gpuwarden.lab", timezone="Asia/Shanghai")
    check_golden(f"{name}.{lang}.{form}", fit(compose(parcel, voice), markup, 4096, {}) + "\n")


def check_golden(name: str, written: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):  # review the diff before committing
        golden.write_text(written, encoding="utf-8")
    assert written == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("name", "made"), [("mail", REPORT), ("mail.cost", PRICED)])
def test_a_mail_has_charts_and_other_messages_have_their_text(name: str, made: Report, lang: str) -> None:
    (notification,) = report_notifications(made, ("mail",), "Asia/Shanghai")
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
    check_golden(f"{name}.{lang}.html", html_part.get_content().replace("\r\n", "\n"))
