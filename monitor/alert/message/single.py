"""One notification in full: what, where, since when, who is affected, the evidence, what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.commands import with_commands
from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.message.parts import (
    LONGEST_OF_MANY,
    LONGEST_SENTENCE,
    LONGEST_TITLE,
    SHOWN,
    affected,
    is_notice,
    late,
    line,
    link,
    mark,
    status,
    symptoms,
    what,
    where,
)
from monitor.alert.model import Batch, Notification, NotificationSubject, Phase
from monitor.base.text import shorten

MAX_LINES = 14  # lines, the title among them
_EVIDENCE = 3
_ADVICE = 2
_LONGEST_EVIDENCE = 160
_SAID_ALREADY = frozenset({"card-owner", "shm-pressure.owner"})  # in the line about whom it concerns


def one(parcel: Batch, notification: Notification, voice: Locale) -> AlertMessage:
    """Given one notification, return it as a letter of at most one screen."""
    sample = [TextLine((Span(voice.say("sample"), SpanStyle.BOLD),), 0)] if notification.sample else []
    head = [*sample, *_story(parcel, notification, voice)]
    tail = [*late(parcel, notification, voice), *link(_address(notification, voice), voice)]
    room = MAX_LINES - 1 - len(head) - len(tail)
    return AlertMessage(
        id=parcel.id,
        title=shorten(f"{mark(notification)} {_title(notification, voice)}", LONGEST_TITLE),
        lines=(*head, *_help(notification, voice, room), *tail),
        severity=notification.severity,
        resolved=notification.resolved,
        mentions=notification.users,
        lang=voice.lang,
    )


def _title(notification: Notification, voice: Locale) -> str:
    about = what(notification, voice)
    if notification.sample:
        return voice.say("title-sample", what=about)
    return voice.say("title", status=status(notification, voice), what=about)


def _story(parcel: Batch, notification: Notification, voice: Locale) -> list[TextLine]:
    """Return what happened, where, when, to whom, and what else comes of it."""
    subjects = notification.subjects
    if not subjects:
        return []
    told = _many if len(subjects) > 1 else _single
    return [
        *told(subjects, parcel.at, voice),
        *where(subjects, voice),
        _when(notification, parcel.at, voice),
        *affected(notification, voice),
        *symptoms(notification, voice, 1 if len(subjects) > 1 else 2),
    ]


def _single(subjects: Sequence[NotificationSubject], _now: float, voice: Locale) -> list[TextLine]:
    subject = subjects[0]
    said = Span(shorten(voice.note(subject.finding.headline), LONGEST_SENTENCE))
    if subject.phase is Phase.RESOLVED:
        return [line(voice.say("was"), said, order=0)]
    held = [TextLine((Span(voice.say("held"), SpanStyle.MUTED),), 1)] if subject.finding.held else []
    return [TextLine((said,), 0), *held]


def _many(subjects: Sequence[NotificationSubject], now: float, voice: Locale) -> list[TextLine]:
    """Return the first of many; how many there are is said as well."""
    shown = subjects[:SHOWN]
    rest = len(subjects) > SHOWN
    count = (
        [TextLine((Span(voice.say("of-these", count=len(subjects), shown=SHOWN), SpanStyle.MUTED),), 1)] if rest else []
    )
    return [*count, *(of_many(subject, now, voice, order=3 if number else 0) for number, subject in enumerate(shown))]


def of_many(subject: NotificationSubject, now: float, voice: Locale, order: int) -> TextLine:
    """Return the line for one of many subjects."""
    said = Span("• " + shorten(voice.note(subject.finding.headline), LONGEST_OF_MANY))
    if subject.phase is Phase.RESOLVED:
        return TextLine((said, Span(voice.say("over", seconds=_lasted(subject, now)), SpanStyle.GOOD)), order)
    return TextLine((said, Span(voice.say("for", seconds=max(0.0, now - subject.since)), SpanStyle.MUTED)), order)


def _when(notification: Notification, now: float, voice: Locale) -> TextLine:
    subjects = notification.subjects
    began = min(subject.since for subject in subjects)
    flapping = any(subject.flapping for subject in subjects)
    spans = [Span(voice.say("flapping"), SpanStyle.BAD)] if flapping else []
    if notification.resolved:
        ended = max(_ended(subject, now) for subject in subjects)
        start, end = voice.period(began, ended)
        text = voice.say("lasted", start=start, end=end, seconds=max(0.0, ended - began))
        return line(voice.say("when"), Span(text), *spans, order=1)
    key = "since-for" if len(subjects) == 1 else "first-for"
    text = voice.say(key, moment=voice.moment(began), seconds=max(0.0, now - began))
    return line(voice.say("since"), Span(text), *spans, order=1)


def _ended(subject: NotificationSubject, now: float) -> float:
    return now if subject.resolved_at is None else subject.resolved_at


def _lasted(subject: NotificationSubject, now: float) -> float:
    return max(0.0, _ended(subject, now) - subject.since)


def _help(notification: Notification, voice: Locale, room: int) -> list[TextLine]:
    """Return the evidence and what to do, for the first subject that is still wrong, in so many lines."""
    finding = next((s.finding for s in notification.subjects if s.phase is not Phase.RESOLVED), None)
    if finding is None:
        return []
    advice = [_advice(voice.note(note), voice) for note in finding.advice[: min(_ADVICE, room)]]
    count = min(_EVIDENCE, room - len(advice))
    notes = [note for note in finding.evidence if note.key not in _SAID_ALREADY][: max(0, count)]
    said = [Span(shorten(voice.note(note), _LONGEST_EVIDENCE)) for note in notes]
    evidence = [line(voice.say("evidence") if span is said[0] else "• ", span, order=4) for span in said]
    return [*evidence, *advice]


def _advice(sentence: str, voice: Locale) -> TextLine:
    return line(voice.say("advice"), *with_commands(sentence), order=1)


def _address(notification: Notification, voice: Locale) -> str | None:
    if is_notice(notification):
        return voice.place("cleanup")
    if len(notification.subjects) == 1:
        return voice.address(fingerprint=notification.subjects[0].fingerprint)
    return voice.address(group=notification.group)
