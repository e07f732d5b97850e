# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage, SpanStyle
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import fit
from monitor.alert.message.locale import Locale
from monitor.alert.message.single import MAX_LINES
from monitor.alert.model import Notification, NotificationReason, NotificationSubject, Phase, Summary, Symptoms
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from tests.alert.message.documents import DISK, LOCALES, NODE, NOW, PULLS, ZOMBIE, batch, notification, over, subject

ENGLISH = LOCALES["en"]


def told(given: Notification, locale: Locale = ENGLISH, at: float = NOW) -> str:
    return fit(compose(batch(given, at=at), locale), plain.MARKUP, 100_000)


def spans(message: AlertMessage, style: SpanStyle) -> list[str]:
    return [span.text for line in message.lines for span in line.spans if span.style is style]


SAYS: list[tuple[str, Notification, str]] = [
    ("what, and how bad", notification(NotificationReason.NEW, subject(DISK)), "🔴 CRITICAL, new - Disk nearly full: gpu03 /var/lib/docker"),
    ("where", notification(NotificationReason.NEW, subject(DISK)), "Where: cluster prod · node gpu03 · mount /var/lib/docker"),
    ("since when", notification(NotificationReason.NEW, subject(DISK)), "Since: 2025-10-02 03:05 CST, 7 min ago"),
    ("who", notification(NotificationReason.NEW, subject(ZOMBIE)), "Affected: zhang · job llama-sft"),
    ("why it is told: worse", notification(NotificationReason.WORSE, subject(DISK)), "CRITICAL, got worse"),
    ("why it is told: more", notification(NotificationReason.MORE, *PULLS[:6]), "WARNING, 3 more - Image pull failed (6)"),
    ("why it is told: still", notification(NotificationReason.REPEAT, subject(DISK)), "CRITICAL, still firing"),
    ("over, and how long it was", notification(NotificationReason.RESOLVED, over(DISK)), "2025-10-02 02:46 CST to 03:11, lasted 25 min"),
    ("over since another day", notification(NotificationReason.RESOLVED, over(DISK, 90_000.0)), "2025-10-01 02:11 CST to 2025-10-02 03:11 CST, lasted 1 d 1 h"),
    ("over before it was ever told", notification(NotificationReason.NEW, over(DISK)), "✅ RESOLVED - Disk nearly full"),
    ("who takes care of it", notification(NotificationReason.REPEAT, subject(DISK, acknowledged_by="li"), subject(NODE)), "Acknowledged by: li"),
    ("some are over", notification(NotificationReason.RESOLVED, over(NODE), subject(DISK)), "CRITICAL, 1 resolved, 1 left - Several problems"),
    ("comes and goes", notification(NotificationReason.REPEAT, subject(DISK, flapping=True)), "7 min ago; it is flapping"),
    ("a name that no catalog knows", notification(NotificationReason.NEW, subject(msgspec.structs.replace(NODE, rule="HarborDown"))), "new - HarborDown: gpu05"),
    ("in the same place", notification(NotificationReason.NEW, subject(DISK), subject(msgspec.structs.replace(NODE, labels={"node": "gpu03"}))), "Several problems (2): gpu03"),
    ("what we did ourselves is no alert", notification(NotificationReason.NEW, subject(msgspec.structs.replace(NODE, rule="cleanup-report"))), "CRITICAL, notice - Cleanup report"),
    ("and leads to the page of cleanup", notification(NotificationReason.NEW, subject(msgspec.structs.replace(NODE, rule="cleanup-report"))), "/cleanup"),
    ("symptoms", notification(NotificationReason.NEW, subject(NODE), symptoms=(Symptoms(rule="image-pull", count=12),)), "12 x Image pull failed"),
    ("a clock that jumped back", notification(NotificationReason.NEW, subject(DISK, since=NOW + 900)), "03:27 CST, 0 s ago"),
    ("a time that is none", notification(NotificationReason.NEW, subject(DISK, since=float("inf"))), "Since: ?, 0 s ago"),
]  # fmt: skip


def test_a_resolved_alert_repeats_no_cause_that_its_title_says() -> None:
    hot = msgspec.structs.replace(NODE, rule="gpu-hot", cause="gpu-hot")
    lines = told(notification(NotificationReason.RESOLVED, over(hot))).splitlines()
    assert not [line for line in lines if line.startswith("Cause:")]
    assert [
        line for line in told(notification(NotificationReason.RESOLVED, over(NODE))).splitlines() if "Cause:" in line
    ]


@pytest.mark.parametrize(("name", "given_one", "expect"), SAYS, ids=[row[0] for row in SAYS])
def test_says(name: str, given_one: Notification, expect: str) -> None:
    assert expect in told(given_one)


LATE = [(60.0, False), (61.0, True), (-30.0, False)]


@pytest.mark.parametrize(("seconds", "expect"), LATE)
def test_says_when_it_is_late(seconds: float, expect: bool) -> None:
    given_one = notification(NotificationReason.NEW, subject(DISK), at=NOW - seconds)
    assert ("late" in told(given_one)) is expect
    assert ("late" in told_together(given_one, given_one)) is expect


def told_together(*given_ones: Notification) -> str:
    return fit(compose(batch(*given_ones), ENGLISH), plain.MARKUP, 100_000)


def test_what_is_over_asks_nobody_to_do_anything() -> None:
    message = compose(batch(notification(NotificationReason.RESOLVED, over(ZOMBIE))), ENGLISH)
    assert message.resolved
    assert (message.mentions, spans(message, SpanStyle.MENTION), spans(message, SpanStyle.CODE)) == ((), [], [])
    assert "Affected: zhang" in told(notification(NotificationReason.RESOLVED, over(ZOMBIE)))


def test_commands_are_code_and_owners_are_mentioned() -> None:
    message = compose(batch(notification(NotificationReason.NEW, subject(ZOMBIE))), ENGLISH)
    assert spans(message, SpanStyle.CODE) == [
        "gpuwarden cleanup release gpu11 3",
        "ps -o pid,stat,wchan:32,cmd -p 48213",
    ]
    assert (message.mentions, spans(message, SpanStyle.MENTION)) == (("zhang",), ["zhang"])


ADDRESSES = [
    ((subject(DISK),), "https://warden.example/alerts/214f952864dbfc60"),
    (PULLS[:2], "https://warden.example/alerts?group=ImagePull%2F%22a%26b%22"),
]


@pytest.mark.parametrize(("subjects", "expect"), ADDRESSES)
def test_leads_to_the_page(subjects: tuple[NotificationSubject, ...], expect: str) -> None:
    given_one = notification(NotificationReason.NEW, *subjects, group='ImagePull/"a&b"')
    message = compose(batch(given_one), ENGLISH)
    assert [span.target for line in message.lines for span in line.spans if span.style is SpanStyle.LINK] == [expect]
    assert "http" not in told(given_one, replace(ENGLISH, page=None))


def test_many_owners_take_one_line() -> None:
    labels = [DISK.labels | {"user": f"user{number:02}"} for number in range(30)]
    many = notification(
        NotificationReason.NEW, *(subject(msgspec.structs.replace(DISK, labels=each)) for each in labels)
    )
    message = compose(batch(many), ENGLISH)
    assert len(message.mentions) == 30
    assert len(spans(message, SpanStyle.MENTION)) == 10
    assert "user09 ... (30 in total)" in told(many)


def test_the_owner_is_not_named_twice() -> None:
    assert told(notification(NotificationReason.NEW, subject(ZOMBIE))).count("zhang") == 1


def test_a_digest_has_a_line_each_and_calls_everybody_once() -> None:
    given_ones = [notification(NotificationReason.NEW, each) for each in PULLS[:9]]
    given_ones += [
        notification(NotificationReason.RESOLVED, over(NODE)),
        notification(NotificationReason.NEW, subject(DISK)),
    ]
    message = compose(batch(*given_ones), ENGLISH)
    lines = ["".join(span.text for span in line.spans) for line in message.lines]
    assert lines[0].startswith("🔴")
    assert lines[10].startswith("✅")
    assert lines[11] == "Affected: li, wang, zhang"
    assert message.severity is Severity.CRITICAL
    assert not message.resolved


def test_a_digest_names_a_summary_by_its_title() -> None:
    """A daily report that was sent together with an alert."""
    daily = Summary(since=NOW - 86400, until=NOW, notes=(Text(key="external", values={"text": "GPUs: 80% used"}),))
    report = notification(NotificationReason.NEW, severity=Severity.INFO, summary=daily)
    lines = told_together(notification(NotificationReason.NEW, subject(DISK)), report).split("\n")
    assert "📊 GPUs: 80% used" in lines


def test_a_digest_of_what_is_over_is_good_news() -> None:
    assert compose(batch(*[notification(NotificationReason.RESOLVED, over(NODE))] * 2), ENGLISH).resolved


def test_nothing_to_tell_is_still_a_letter() -> None:
    assert compose(batch(), ENGLISH).title.startswith("📋")
    assert compose(batch(notification(NotificationReason.NEW)), ENGLISH).title


TEXT = st.text(max_size=300)
NOTES = st.builds(lambda key, text: Text(key=key, values={"text": text}), st.sampled_from(["external", "x"]), TEXT)
FINDINGS = st.builds(
    Finding,
    rule=st.sampled_from(["disk-full", "image-pull"]) | TEXT,
    severity=st.sampled_from(Severity),
    cause=TEXT,
    labels=st.dictionaries(
        st.sampled_from(["node", "gpu", "pod", "namespace", "user", "job"]) | TEXT, TEXT, max_size=5
    ),
    headline=NOTES,
    evidence=st.lists(NOTES, max_size=9).map(tuple),
    advice=st.lists(NOTES, max_size=9).map(tuple),
    since=st.none() | st.floats(0, 4e9),
    held=st.booleans(),
)
SUBJECTS = st.builds(
    NotificationSubject,
    fingerprint=TEXT,
    finding=FINDINGS,
    phase=st.sampled_from([Phase.FIRING, Phase.RESOLVED]),
    since=st.floats(allow_nan=False, allow_infinity=False),
    resolved_at=st.none() | st.floats(0, 4e9),
    flapping=st.booleans(),
)
SYMPTOMS = st.builds(Symptoms, rule=TEXT, count=st.integers(0), examples=st.just(({"pod": "p"},) * 5))


@given(
    st.lists(SUBJECTS, max_size=9),
    st.sampled_from(NotificationReason),
    st.lists(SYMPTOMS, max_size=4),
    st.booleans(),
    st.floats(0, 4e9),
    st.sampled_from(["en", "zh"]),
)
def test_anything_fits_on_a_screen(
    subjects: list[NotificationSubject],
    reason: NotificationReason,
    symptoms: list[Symptoms],
    sample: bool,
    at: float,
    lang: str,
) -> None:
    more: dict[str, Any] = {"symptoms": tuple(symptoms), "sample": sample, "at": 0.0}
    message = compose(batch(notification(reason, *subjects, **more), at=at), LOCALES[lang])
    assert 1 + len(message.lines) <= MAX_LINES
    assert len(message.title) <= 120
    assert all(len(span.text) < 1200 for line in message.lines for span in line.spans)
