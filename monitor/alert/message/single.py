"""One notification in full: what, where, since when, who is affected, the evidence, what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.commands import with_commands
from monitor.alert.message.document import Letter, Line, Span, Style
from monitor.alert.message.locale import Voice
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
from monitor.alert.model import Notification, Parcel, Phase, Subject
from monitor.base.text import shorten

SCREEN = 14  # lines, the title among them
_EVIDENCE = 3
_ADVICE = 2
_LONGEST_EVIDENCE = 160
_SAID_ALREADY = frozenset({"card-owner", "shm-pressure.owner"})  # in the line about whom it concerns


def one(parcel: Parcel, notification: Notification, voice: Voice) -> Letter:
    """Given one notification, return it as a letter of at most one screen."""
    sample = [Line((Span(voice.say("sample"), Style.BOLD),), 0)] if notification.sample else []
    head = [*sample, *_story(parcel, notification, voice)]
    tail = [*late(parcel, notification, voice), *link(_address(notification, voice), voice)]
    room = SCREEN - 1 - len(head) - len(tail)
    return Letter(
        id=parcel.id,
        title=shorten(f"{mark(notification)} {_title(notification, voice)}", LONGEST_TITLE),
        lines=(*head, *_help(notification, voice, room), *tail),
        severity=notification.severity,
        resolved=notification.resolved,
        mentions=notification.users,
        lang=voice.lang,
    )


def _title(notification: Notification, voice: Voice) -> str:
    about = what(notification, voice)
    if notification.sample:
        return voice.say("title-sample", what=about)
    return voice.say("title", status=status(notification, voice), what=about)


def _story(parcel: Parcel, notification: Notification, voice: Voice) -> list[Line]:
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


def _single(subjects: Sequence[Subject], _now: float, voice: Voice) -> list[Line]:
    subject = subjects[0]
    said = Span(shorten(voice.note(subject.finding.headline), LONGEST_SENTENCE))
    if subject.phase is Phase.RESOLVED:
        return [line(voice.say("was"), said, order=0)]
    held = [Line((Span(voice.say("held"), Style.MUTED),), 1)] if subject.finding.held else []
    return [Line((said,), 0), *held]


def _many(subjects: Sequence[Subject], now: float, voice: Voice) -> list[Line]:
    """Return the first of many; how many there are is said as well."""
    shown = subjects[:SHOWN]
    rest = len(subjects) > SHOWN
    count = [Line((Span(voice.say("of-these", count=len(subjects), shown=SHOWN), Style.MUTED),), 1)] if rest else []
    return [*count, *(of_many(subject, now, voice, order=3 if number else 0) for number, subject in enumerate(shown))]


def of_many(subject: Subject, now: float, voice: Voice, order: int) -> Line:
    """Return the line for one of many subjects."""
    said = Span("• " + shorten(voice.note(subject.finding.headline), LONGEST_OF_MANY))
    if subject.phase is Phase.RESOLVED:
        return Line((said, Span(voice.say("over", seconds=_lasted(subject, now)), Style.GOOD)), order)
    return Line((said, Span(voice.say("for", seconds=max(0.0, now - subject.since)), Style.MUTED)), order)


def _when(notification: Notification, now: float, voice: Voice) -> Line:
    subjects = notification.subjects
    began = min(subject.since for subject in subjects)
    flapping = any(subject.flapping for subject in subjects)
    spans = [Span(voice.say("flapping"), Style.BAD)] if flapping else []
    if notification.resolved:
        ended = max(_ended(subject, now) for subject in subjects)
        start, end = voice.period(began, ended)
        text = voice.say("lasted", start=start, end=end, seconds=max(0.0, ended - began))
        return line(voice.say("when"), Span(text), *spans, order=1)
    key = "since-for" if len(subjects) == 1 else "first-for"
    text = voice.say(key, moment=voice.moment(began), seconds=max(0.0, now - began))
    return line(voice.say("since"), Span(text), *spans, order=1)


def _ended(subject: Subject, now: float) -> float:
    return now if subject.resolved_at is None else subject.resolved_at


def _lasted(subject: Subject, now: float) -> float:
    return max(0.0, _ended(subject, now) - subject.since)


def _help(notification: Notification, voice: Voice, room: int) -> list[Line]:
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


def _advice(sentence: str, voice: Voice) -> Line:
    return line(voice.say("advice"), *with_commands(sentence), order=1)


def _address(notification: Notification, voice: Voice) -> str | None:
    if is_notice(notification):
        return voice.place("cleanup")
    if len(notification.subjects) == 1:
        return voice.address(fingerprint=notification.subjects[0].fingerprint)
    return voice.address(group=notification.group)
