"""Messages about several notifications, and about a digest."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.message.parts import (
    LATE_SECONDS,
    MAX_NAME_CHARS,
    MAX_SENTENCE_CHARS,
    MAX_SUBJECTS_SHOWN,
    SUMMARY_MARK,
    answer_links,
    labelled,
    link,
    mark,
    status,
    topic,
    user_names,
)
from monitor.alert.message.single import list_entry, resolved_cause
from monitor.alert.model import SEVERITY_RANK, Batch, Notification, Summary, worst_severity
from monitor.base.text import shorten
from monitor.facts.findings import Severity

DIGEST_MARK = "📋"
_MAX_WITH_HEADLINES = 6  # notifications up to which each has more than one line
_MAX_USERS_PER_LINE = 2
_MAX_RULES = 4


def digest_message(batch: Batch, locale: Locale) -> AlertMessage:
    """Message with a line per notification, by severity, resolved ones last."""
    ordered = sorted(batch.notifications, key=lambda entry: (entry.resolved, SEVERITY_RANK[entry.severity], entry.at))
    headlines = len(ordered) <= _MAX_WITH_HEADLINES
    lines = [line for notification in ordered for line in _entry(notification, locale, headlines)]
    firing = [notification for notification in ordered if not notification.resolved]
    users = tuple(sorted({user for notification in firing for user in notification.users}))
    tail = (*answer_links(batch, locale), *link(locale.alert_url(), locale))
    return AlertMessage(
        id=batch.id,
        title=f"{DIGEST_MARK} {locale.say('digest', count=len(ordered), parts=_counts(ordered, locale))}",
        lines=(*_lateness(batch, locale), *lines, *_affected(users, locale), *tail),
        severity=worst_severity([notification.severity for notification in firing]),
        resolved=not firing,
        mentions=users,
        lang=locale.lang,
    )


def _counts(notifications: Sequence[Notification], locale: Locale) -> str:
    firing = [notification.severity for notification in notifications if not notification.resolved]
    counts = {f"digest-{severity.value}": firing.count(severity) for severity in SEVERITY_RANK}
    counts["digest-resolved"] = len(notifications) - len(firing)
    return locale.say("list").join(locale.say(key, count=count) for key, count in counts.items() if count)


def _lateness(batch: Batch, locale: Locale) -> list[TextLine]:
    seconds = batch.at - min((notification.due_at for notification in batch.notifications), default=batch.at)
    if seconds <= LATE_SECONDS:
        return []
    return [TextLine((Span(locale.say("digest-late", seconds=seconds), SpanStyle.MUTED),), 1)]


def _affected(users: Sequence[str], locale: Locale) -> list[TextLine]:
    """Line that mentions each affected user once, however many lines are about them."""
    return [labelled(locale.say("affected"), *user_names(users, users, locale), order=1)] if users else []


def _entry(notification: Notification, locale: Locale, headlines: bool) -> list[TextLine]:
    """Line about a notification, followed by its headline if there is room."""
    if notification.summary is not None:
        return [TextLine((Span(f"{SUMMARY_MARK} {_title(notification.summary, locale)}"),), 1)]
    start = min((subject.since for subject in notification.subjects), default=notification.at)
    about = f"{status(notification, locale, 'short')} · {topic(notification, locale)}"
    users = "".join(f" · {shorten(user, MAX_NAME_CHARS)}" for user in notification.users[:_MAX_USERS_PER_LINE])
    line = TextLine((Span(f"{mark(notification)} {locale.time_of_day(start)} "), Span(about + users)), 1)
    if not (headlines and notification.subjects):
        return [line]
    first = notification.subjects[0].finding
    if notification.resolved:
        return [line, *resolved_cause(first, locale, order=5)]
    headline = shorten(locale.text(first.headline), MAX_SENTENCE_CHARS)
    return [line, TextLine((Span(headline, SpanStyle.MUTED),), order=5)]


def summary_message(batch: Batch, notification: Notification, summary: Summary, locale: Locale) -> AlertMessage:
    """Message of a digest: the rules that fired most, and what still fires."""
    fired, resolved = sum(summary.fired.values()), sum(summary.resolved.values())
    start, end = locale.timestamp(summary.since), locale.timestamp(summary.until)
    period = locale.say("summary-period", start=start, end=end, fired=fired, resolved=resolved)
    return AlertMessage(
        id=batch.id,
        title=f"{SUMMARY_MARK} {_title(summary, locale)}",
        lines=(
            TextLine((Span(period),), 0),
            *(TextLine((Span(shorten(locale.text(note), MAX_SENTENCE_CHARS)),), 2) for note in summary.notes[1:]),
            *_still_firing(batch, notification, summary, locale),
            *_by_rule(summary, locale),
            *link(locale.page_url("report") if summary.notes else locale.alert_url(), locale),
        ),
        severity=Severity.INFO,
        lang=locale.lang,
        charts=summary.charts,
    )


def _title(summary: Summary, locale: Locale) -> str:
    if summary.notes:
        return locale.text(summary.notes[0])
    return locale.say("summary", firing=summary.still_firing) if summary.still_firing else locale.say("summary-calm")


def _still_firing(batch: Batch, notification: Notification, summary: Summary, locale: Locale) -> list[TextLine]:
    if not notification.subjects:
        return []
    head = TextLine((Span(locale.say("summary-firing", count=summary.still_firing), SpanStyle.BOLD),), 1)
    shown = notification.subjects[:MAX_SUBJECTS_SHOWN]
    return [head, *(list_entry(subject, batch.at, locale, order=2) for subject in shown)]


def _by_rule(summary: Summary, locale: Locale) -> list[TextLine]:
    """Line for each of the rules that fired most, and one for the others."""
    rules = sorted(summary.fired.keys() | summary.resolved.keys(), key=lambda rule: (-summary.fired.get(rule, 0), rule))
    lines = [
        locale.say(
            "summary-rule",
            what=locale.rule(rule),
            fired=summary.fired.get(rule, 0),
            resolved=summary.resolved.get(rule, 0),
        )
        for rule in rules[:_MAX_RULES]
    ]
    rest = rules[_MAX_RULES:]
    if rest:
        fired, resolved = (sum(counts.get(rule, 0) for rule in rest) for counts in (summary.fired, summary.resolved))
        lines.append(locale.say("summary-others", count=len(rest), fired=fired, resolved=resolved))
    return [TextLine((Span(text),), 3) for text in lines]
