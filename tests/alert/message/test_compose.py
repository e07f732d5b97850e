# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alert.message.compose import Voice, compose
from monitor.alert.message.document import Letter, Style
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import fit
from monitor.alert.message.single import SCREEN
from monitor.alert.model import Notification, Phase, Reason, Subject, Symptoms
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from tests.alert.message.documents import DISK, NODE, NOW, PULLS, VOICES, ZOMBIE, notification, over, parcel, subject

ENGLISH = VOICES["en"]


def told(given: Notification, voice: Voice = ENGLISH, at: float = NOW) -> str:
    return fit(compose(parcel(given, at=at), voice), plain.MARKUP, 100_000)


def spans(letter: Letter, style: Style) -> list[str]:
    return [span.text for line in letter.lines for span in line.spans if span.style is style]


SAYS: list[tuple[str, Notification, str]] = [
    ("what, and how bad", notification(Reason.NEW, subject(DISK)), "🔴 CRITICAL, new - Disk nearly full: gpu03 /var/lib/docker"),
    ("where", notification(Reason.NEW, subject(DISK)), "Where: cluster prod · node gpu03 · mount /var/lib/docker"),
    ("since when", notification(Reason.NEW, subject(DISK)), "Since: 2025-10-02 03:05 CST, 7 min ago"),
    ("who", notification(Reason.NEW, subject(ZOMBIE)), "Affected: zhang · job llama-sft"),
    ("why it is told: worse", notification(Reason.WORSE, subject(DISK)), "CRITICAL, got worse"),
    ("why it is told: more", notification(Reason.MORE, *PULLS[:6]), "WARNING, 3 more - Image pull failed (6)"),
    ("why it is told: still", notification(Reason.REPEAT, subject(DISK)), "CRITICAL, still firing"),
    ("over, and how long it was", notification(Reason.RESOLVED, over(DISK)), "2025-10-02 02:46 CST to 03:11, lasted 25 min"),
    ("over since another day", notification(Reason.RESOLVED, over(DISK, 90_000.0)), "2025-10-01 02:11 CST to 2025-10-02 03:11 CST, lasted 1 d 1 h"),
    ("over before it was ever told", notification(Reason.NEW, over(DISK)), "✅ RESOLVED - Disk nearly full"),
    ("some are over", notification(Reason.RESOLVED, over(NODE), subject(DISK)), "CRITICAL, 1 resolved, 1 left - Several problems"),
    ("flapping", notification(Reason.REPEAT, subject(DISK, flapping=True)), "7 min ago; it is flapping"),
    ("a name that no catalog knows", notification(Reason.NEW, subject(msgspec.structs.replace(NODE, rule="HarborDown"))), "new - HarborDown: gpu05"),
    ("in the same place", notification(Reason.NEW, subject(DISK), subject(msgspec.structs.replace(NODE, labels={"node": "gpu03"}))), "Several problems (2): gpu03"),
    ("what we did ourselves is no alert", notification(Reason.NEW, subject(msgspec.structs.replace(NODE, rule="cleanup-report"))), "CRITICAL, notice - Cleanup report"),
    ("and leads to the page of cleanup", notification(Reason.NEW, subject(msgspec.structs.replace(NODE, rule="cleanup-report"))), "/cleanup"),
    ("symptoms", notification(Reason.NEW, subject(NODE), symptoms=(Symptoms(rule="image-pull", count=12),)), "12 x Image pull failed"),
    ("a clock that jumped back", notification(Reason.NEW, subject(DISK, since=NOW + 900)), "03:27 CST, 0 s ago"),
    ("a time that is none", notification(Reason.NEW, subject(DISK, since=float("inf"))), "Since: ?, 0 s ago"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given_one", "expect"), SAYS, ids=[row[0] for row in SAYS])
def test_says(name: str, given_one: Notification, expect: str) -> None:
    assert expect in told(given_one)


LATE = [(60.0, False), (61.0, True), (-30.0, False)]


@pytest.mark.parametrize(("seconds", "expect"), LATE)
def test_says_when_it_is_late(seconds: float, expect: bool) -> None:
    given_one = notification(Reason.NEW, subject(DISK), at=NOW - seconds)
    assert ("late" in told(given_one)) is expect
    assert ("late" in told_together(given_one, given_one)) is expect


def told_together(*given_ones: Notification) -> str:
    return fit(compose(parcel(*given_ones), ENGLISH), plain.MARKUP, 100_000)


def test_what_is_over_asks_nobody_to_do_anything() -> None:
    letter = compose(parcel(notification(Reason.RESOLVED, over(ZOMBIE))), ENGLISH)
    assert letter.resolved
    assert (letter.mentions, spans(letter, Style.MENTION), spans(letter, Style.CODE)) == ((), [], [])
    assert "Affected: zhang" in told(notification(Reason.RESOLVED, over(ZOMBIE)))


def test_commands_are_code_and_owners_are_mentioned() -> None:
    letter = compose(parcel(notification(Reason.NEW, subject(ZOMBIE))), ENGLISH)
    assert spans(letter, Style.CODE) == ["ps -o pid,stat,wchan:32,cmd -p 48213", "kill -9 48213"]
    assert (letter.mentions, spans(letter, Style.MENTION)) == (("zhang",), ["zhang"])


ADDRESSES = [
    ((subject(DISK),), "https://warden.example/alerts/214f952864dbfc60"),
    (PULLS[:2], "https://warden.example/alerts?group=ImagePull%2F%22a%26b%22"),
]


@pytest.mark.parametrize(("subjects", "expect"), ADDRESSES)
def test_leads_to_the_page(subjects: tuple[Subject, ...], expect: str) -> None:
    given_one = notification(Reason.NEW, *subjects, group='ImagePull/"a&b"')
    letter = compose(parcel(given_one), ENGLISH)
    assert [span.target for line in letter.lines for span in line.spans if span.style is Style.LINK] == [expect]
    assert "http" not in told(given_one, replace(ENGLISH, page=None))


def test_many_owners_take_one_line() -> None:
    labels = [DISK.labels | {"user": f"user{number:02}"} for number in range(30)]
    many = notification(Reason.NEW, *(subject(msgspec.structs.replace(DISK, labels=each)) for each in labels))
    letter = compose(parcel(many), ENGLISH)
    assert len(letter.mentions) == 30
    assert len(spans(letter, Style.MENTION)) == 10
    assert "user09 ... (30 in total)" in told(many)


def test_the_owner_is_not_named_twice() -> None:
    assert told(notification(Reason.NEW, subject(ZOMBIE))).count("zhang") == 1


def test_a_digest_has_a_line_each_and_calls_everybody_once() -> None:
    given_ones = [notification(Reason.NEW, each) for each in PULLS[:9]]
    given_ones += [notification(Reason.RESOLVED, over(NODE)), notification(Reason.NEW, subject(DISK))]
    letter = compose(parcel(*given_ones), ENGLISH)
    lines = ["".join(span.text for span in line.spans) for line in letter.lines]
    assert lines[0].startswith("🔴")
    assert lines[10].startswith("✅")
    assert lines[11] == "Affected: li, wang, zhang"
    assert letter.severity is Severity.CRITICAL
    assert not letter.resolved


def test_a_digest_of_what_is_over_is_good_news() -> None:
    assert compose(parcel(*[notification(Reason.RESOLVED, over(NODE))] * 2), ENGLISH).resolved


def test_nothing_to_tell_is_still_a_letter() -> None:
    assert compose(parcel(), ENGLISH).title.startswith("📋")
    assert compose(parcel(notification(Reason.NEW)), ENGLISH).title


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
    Subject,
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
    st.sampled_from(Reason),
    st.lists(SYMPTOMS, max_size=4),
    st.booleans(),
    st.floats(0, 4e9),
    st.sampled_from(["en", "zh"]),
)
def test_anything_fits_on_a_screen(
    subjects: list[Subject], reason: Reason, symptoms: list[Symptoms], sample: bool, at: float, lang: str
) -> None:
    more: dict[str, Any] = {"symptoms": tuple(symptoms), "sample": sample, "at": 0.0}
    letter = compose(parcel(notification(reason, *subjects, **more), at=at), VOICES[lang])
    assert 1 + len(letter.lines) <= SCREEN
    assert len(letter.title) <= 120
    assert all(len(span.text) < 1200 for line in letter.lines for span in line.spans)
