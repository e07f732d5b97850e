"""Message about one notification: what, where, since when, who is affected, evidence and advice."""

from __future__ import annotations

from monitor.alert.message.commands import with_commands
from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.message.parts import (
    MAX_LIST_ENTRY_CHARS,
    MAX_SENTENCE_CHARS,
    MAX_SUBJECTS_SHOWN,
    MAX_TITLE_CHARS,
    acknowledged,
    affected,
    answer_links,
    is_job_result,
    is_notice,
    labelled,
    lateness,
    link,
    mark,
    merged_gpus,
    past,
    status,
    symptoms,
    topic,
    where,
)
from monitor.alert.model import EXTERNAL, Batch, Notification, NotificationSubject, Phase
from monitor.base.text import shorten
from monitor.facts.findings import Finding

MAX_LINES = 14  # one screen, including the title
_MAX_EVIDENCE = 3
_MAX_ADVICE = 2
_MAX_EVIDENCE_CHARS = 160
_REDUNDANT = frozenset({"card-owner", "shm-pressure.owner"})  # evidence that repeats the line about affected users


def single_message(batch: Batch, notification: Notification, locale: Locale) -> AlertMessage:
    """Message of at most one screen about one notification."""
    sample = [TextLine((Span(locale.say("sample"), SpanStyle.BOLD),), 0)] if notification.sample else []
    head = [*sample, *_story(batch, notification, locale)]
    tail = [*lateness(batch, notification, locale), *answer_links(batch, locale)]
    tail += link(_url(notification, locale), locale)
    room = MAX_LINES - 1 - len(head) - len(tail)
    return AlertMessage(
        id=batch.id,
        title=shorten(f"{mark(notification)} {_title(notification, locale)}", MAX_TITLE_CHARS),
        lines=(*head, *_help(notification, locale, room), *tail),
        severity=notification.severity,
        resolved=notification.resolved,
        mentions=notification.users,
        lang=locale.lang,
    )


def _title(notification: Notification, locale: Locale) -> str:
    about = topic(notification, locale)
    if notification.sample:
        return locale.say("title-sample", what=about)
    return locale.say("title", status=status(notification, locale), what=about)


def _story(batch: Batch, notification: Notification, locale: Locale) -> list[TextLine]:
    """Lines about what happened, where and when, the affected users, and the symptoms."""
    subjects = notification.subjects
    if not subjects:
        return []
    several = len(subjects) > 1
    return [
        *(_list(notification, batch.at, locale) if several else _headline(subjects[0], locale)),
        *where(subjects, locale),
        _when(notification, batch.at, locale),
        *affected(notification, locale),
        *acknowledged(notification, locale),
        *symptoms(notification, locale, 1 if several else 2),
    ]


def _headline(subject: NotificationSubject, locale: Locale) -> list[TextLine]:
    headline = Span(shorten(locale.text(subject.finding.headline), MAX_SENTENCE_CHARS))
    if subject.phase is Phase.RESOLVED:
        return resolved_cause(subject.finding, locale, order=0)
    held = [TextLine((Span(locale.say("held"), SpanStyle.MUTED),), 1)] if subject.finding.held else []
    return [TextLine((headline,), 0), *held]


def resolved_cause(finding: Finding, locale: Locale, order: int) -> list[TextLine]:
    """What was wrong. The title says it already if the rule has only one cause."""
    if finding.cause == finding.rule:
        return []
    label = "was" if finding.headline.key == EXTERNAL else "cause"
    return [labelled(locale.say(label), Span(shorten(past(finding, locale), MAX_SENTENCE_CHARS)), order=order)]


def _list(notification: Notification, now: float, locale: Locale) -> list[TextLine]:
    """First few of several subjects, with their total number. Those of one pod share a line."""
    lines, subjects = [], notification.subjects
    count = len(subjects) + notification.omitted
    entries = merged_gpus(subjects)
    if len(entries) + notification.omitted > MAX_SUBJECTS_SHOWN:
        text = locale.say("of-these", count=count, shown=sum(number for _, number in entries[:MAX_SUBJECTS_SHOWN]))
        lines.append(TextLine((Span(text, SpanStyle.MUTED),), 1))
    shown = enumerate(subject for subject, _ in entries[:MAX_SUBJECTS_SHOWN])
    return [*lines, *(list_entry(subject, now, locale, order=3 if number else 0) for number, subject in shown)]


def list_entry(subject: NotificationSubject, now: float, locale: Locale, order: int) -> TextLine:
    """Line about one of several subjects."""
    if subject.phase is Phase.RESOLVED:
        headline = Span("• " + shorten(past(subject.finding, locale, named=True), MAX_LIST_ENTRY_CHARS))
        seconds = max(0.0, _end(subject, now) - subject.since)
        return TextLine((headline, Span(locale.say("over", seconds=seconds), SpanStyle.GOOD)), order)
    named = f"{subject.finding.labels['job']}: " if is_job_result(subject) else ""
    headline = Span("• " + shorten(named + locale.text(subject.finding.headline), MAX_LIST_ENTRY_CHARS))
    if subject.resolved_at is not None:
        lasted = locale.say("took", seconds=max(0.0, subject.resolved_at - subject.since))
        return TextLine((headline, Span(lasted, SpanStyle.MUTED)), order)
    seconds = max(0.0, now - subject.since)
    return TextLine((headline, Span(locale.say("for", seconds=seconds), SpanStyle.MUTED)), order)


def _when(notification: Notification, now: float, locale: Locale) -> TextLine:
    subjects = notification.subjects
    start = min(subject.since for subject in subjects)
    flapping = any(subject.flapping for subject in subjects)
    spans = [Span(locale.say("flapping"), SpanStyle.BAD)] if flapping else []
    if all(subject.resolved_at is not None for subject in subjects) or notification.resolved:
        end = max(_end(subject, now) for subject in subjects)
        first, last = locale.period(start, end)
        text = locale.say("lasted", start=first, end=last, seconds=max(0.0, end - start))
        return labelled(locale.say("when"), Span(text), *spans, order=1)
    key = "since-for" if len(subjects) == 1 else "first-for"
    text = locale.say(key, moment=locale.timestamp(start), seconds=max(0.0, now - start))
    return labelled(locale.say("since"), Span(text), *spans, order=1)


def _end(subject: NotificationSubject, now: float) -> float:
    return now if subject.resolved_at is None else subject.resolved_at


def _help(notification: Notification, locale: Locale, room: int) -> list[TextLine]:
    """Evidence and advice for the first firing subject, in at most `room` lines."""
    finding = next((s.finding for s in notification.subjects if s.phase is not Phase.RESOLVED), None)
    if finding is None:
        return []
    advice = [_advice(locale.text(text), locale) for text in finding.advice[: min(_MAX_ADVICE, room)]]
    count = min(_MAX_EVIDENCE, room - len(advice))
    texts = [text for text in finding.evidence if text.key not in _REDUNDANT][: max(0, count)]
    spans = [Span(shorten(locale.text(text), _MAX_EVIDENCE_CHARS)) for text in texts]
    evidence = [
        labelled("• " if number else locale.say("evidence"), span, order=4) for number, span in enumerate(spans)
    ]
    return [*evidence, *advice]


def _advice(sentence: str, locale: Locale) -> TextLine:
    return labelled(locale.say("advice"), *with_commands(sentence), order=1)


def _url(notification: Notification, locale: Locale) -> str | None:
    if notification.page is not None:
        return locale.page_url(notification.page)
    if is_notice(notification):
        return locale.page_url("cleanup")
    if len(notification.subjects) == 1:
        return locale.alert_url(fingerprint=notification.subjects[0].fingerprint)
    return locale.alert_url(group=notification.group)
