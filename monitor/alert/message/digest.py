"""Several notifications in one message, and the summary of a day or a week. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.message.parts import (
    LATE,
    LONGEST_NAME,
    LONGEST_SENTENCE,
    SHOWN,
    SUMMARY_MARK,
    line,
    link,
    mark,
    names,
    status,
    what,
)
from monitor.alert.message.single import of_many
from monitor.alert.model import SEVERITY_RANK, Batch, Notification, Summary, worst_severity
from monitor.base.text import shorten
from monitor.facts.findings import Severity

DIGEST_MARK = "📋"
_WITH_SENTENCES = 6  # so many in one message have room for more than a line each
_NAMED = 2  # users in a line
_RULES = 4
_LEAST = 5  # order of what goes first when there is no room


def digest(parcel: Batch, voice: Locale) -> AlertMessage:
    """Given a parcel of several notifications, return a line for each, the worst first, what is over last."""
    ordered = sorted(parcel.notifications, key=lambda each: (each.resolved, SEVERITY_RANK[each.severity], each.at))
    talkative = len(ordered) <= _WITH_SENTENCES
    lines = [entry for each in ordered for entry in _entry(each, voice, talkative)]
    firing = [each for each in ordered if not each.resolved]
    users = tuple(sorted({user for each in firing for user in each.users}))
    return AlertMessage(
        id=parcel.id,
        title=f"{DIGEST_MARK} {voice.say('digest', count=len(ordered), parts=_counts(ordered, voice))}",
        lines=(*_lateness(parcel, voice), *lines, *_called(users, voice), *link(voice.address(), voice)),
        severity=worst_severity([each.severity for each in firing]),
        resolved=not firing,
        mentions=users,
        lang=voice.lang,
    )


def _counts(notifications: Sequence[Notification], voice: Locale) -> str:
    firing = [each.severity for each in notifications if not each.resolved]
    counts = {f"digest-{severity.value}": firing.count(severity) for severity in SEVERITY_RANK}
    counts["digest-resolved"] = len(notifications) - len(firing)
    return voice.say("list").join(voice.say(key, count=count) for key, count in counts.items() if count)


def _lateness(parcel: Batch, voice: Locale) -> list[TextLine]:
    seconds = parcel.at - min((each.at for each in parcel.notifications), default=parcel.at)
    return [TextLine((Span(voice.say("digest-late", seconds=seconds), SpanStyle.MUTED),), 1)] if seconds > LATE else []


def _called(users: Sequence[str], voice: Locale) -> list[TextLine]:
    """Return the line that calls everybody by name whom this concerns: once, however many lines are about them."""
    return [line(voice.say("affected"), *names(users, users, voice), order=1)] if users else []


def _entry(notification: Notification, voice: Locale, talkative: bool) -> list[TextLine]:
    """Return a notification's line, and where there is room the sentence that says what is wrong."""
    if notification.summary is not None:
        return [TextLine((Span(f"{SUMMARY_MARK} {_headline(notification.summary, voice)}"),), 1)]
    told = f"{status(notification, voice, 'short')} · {what(notification, voice)}"
    whose = "".join(f" · {shorten(user, LONGEST_NAME)}" for user in notification.users[:_NAMED])
    spans = (Span(f"{mark(notification)} {voice.clock(_began(notification))} "), Span(told + whose))
    said = notification.subjects[0].finding.headline if talkative and notification.subjects else None
    more = [TextLine((Span(shorten(voice.note(said), LONGEST_SENTENCE), SpanStyle.MUTED),), _LEAST)] if said else []
    return [TextLine(spans, 1), *more]


def _began(notification: Notification) -> float:
    return min((subject.since for subject in notification.subjects), default=notification.at)


def summary(parcel: Batch, notification: Notification, told: Summary, voice: Locale) -> AlertMessage:
    """Given the summary of a stretch of time, return it: what fired most, and what is still wrong."""
    fired, resolved = sum(told.fired.values()), sum(told.resolved.values())
    values = {"start": voice.moment(told.since), "end": voice.moment(told.until)}
    period = voice.say("summary-period", **values, fired=fired, resolved=resolved)
    return AlertMessage(
        id=parcel.id,
        title=f"{SUMMARY_MARK} {_headline(told, voice)}",
        lines=(
            TextLine((Span(period),), 0),
            *(TextLine((Span(shorten(voice.note(note), LONGEST_SENTENCE)),), 2) for note in told.notes[1:]),
            *_still_firing(parcel, notification, told, voice),
            *_by_rule(told, voice),
            *link(voice.place("report") if told.notes else voice.address(), voice),
        ),
        severity=Severity.INFO,
        lang=voice.lang,
    )


def _headline(told: Summary, voice: Locale) -> str:
    if told.notes:
        return voice.note(told.notes[0])
    return voice.say("summary", firing=told.still_firing) if told.still_firing else voice.say("summary-calm")


def _still_firing(parcel: Batch, notification: Notification, told: Summary, voice: Locale) -> list[TextLine]:
    if not notification.subjects:
        return []
    head = TextLine((Span(voice.say("summary-firing", count=told.still_firing), SpanStyle.BOLD),), 1)
    return [head, *(of_many(subject, parcel.at, voice, order=2) for subject in notification.subjects[:SHOWN])]


def _by_rule(told: Summary, voice: Locale) -> list[TextLine]:
    """Return a line for each of the rules that fired most, and one for the rest."""
    rules = sorted(told.fired.keys() | told.resolved.keys(), key=lambda rule: (-told.fired.get(rule, 0), rule))
    lines = [
        voice.say(
            "summary-rule", what=voice.rule(rule), fired=told.fired.get(rule, 0), resolved=told.resolved.get(rule, 0)
        )
        for rule in rules[:_RULES]
    ]
    rest = rules[_RULES:]
    if rest:
        fired, resolved = (sum(counts.get(rule, 0) for rule in rest) for counts in (told.fired, told.resolved))
        lines.append(voice.say("summary-others", count=len(rest), fired=fired, resolved=resolved))
    return [TextLine((Span(text),), 3) for text in lines]
