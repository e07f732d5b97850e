"""Messages by a template of the user's own, in place of the built-in ones. A template that fails costs no alert.

It is a Jinja2 template in a sandbox, over these variables:

    title, lines, text     the built-in message: its title, its lines, and all of it
    id, cluster, language  of the message
    severity, resolved     of all that is told
    late_seconds           how late the message is
    notifications          one or several, each with: reason, severity, resolved, users, group, symptoms (rule, name,
                           count) and subjects, each with: rule, name (the rule in words), severity, cause, phase,
                           labels, headline, evidence, advice, since, seconds, flapping, fresh, link

Every text in them is escaped for where it is read, so that no pod's name becomes a link or a mention.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from monitor.alert.message.compose import Locale, compose
from monitor.alert.message.document import AlertMessage, Span, TextLine
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import ELLIPSIS, NO_OWNERS, Markup, Owners, fit
from monitor.alert.model import Batch, Notification, NotificationSubject

log = logging.getLogger(__name__)

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,  # it is not HTML: every value is escaped for its own format
    trim_blocks=True,
    lstrip_blocks=True,
)
Escape = Callable[[str], str]


def check_template(text: str) -> None:
    """Given a template, return if it can be read. Raise ValueError that names the line."""
    try:
        _template(text)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def render_template(
    text: str, parcel: Batch, voice: Locale, limit: int, markup: Markup = plain.MARKUP, owners: Owners = NO_OWNERS
) -> str:
    """Given a template, return the message in at most `limit` bytes: whole lines, as many as fit.

    When the template fails, a line in the log says why, and the built-in message is returned.
    """
    letter = compose(parcel, voice)
    try:
        message = _fit_lines(_template(text).render(_variables(parcel, letter, voice, markup)), limit)
    except Exception as error:  # whatever a template does wrong, the alert has to go out
        log.warning("a message template failed, the built-in message is sent: %s: %s", type(error).__name__, error)
        message = ""
    return message or fit(letter, markup, limit, owners)


@lru_cache(maxsize=32)
def _template(text: str) -> Template:
    return _ENVIRONMENT.from_string(text)


def _fit_lines(message: str, limit: int) -> str:
    """Return the lines that fit; nothing if not even the first does."""
    text = message.strip("\n")
    if len(text.encode()) <= limit:
        return text
    room = limit - len(f"\n{ELLIPSIS}".encode())
    kept: list[str] = []
    for line in text.split("\n"):
        room -= len(line.encode()) + (1 if kept else 0)
        if room < 0:
            break
        kept.append(line)
    return "\n".join((*kept, ELLIPSIS)) if kept else ""


def _variables(parcel: Batch, letter: AlertMessage, voice: Locale, markup: Markup) -> dict[str, Any]:
    def escape(text: str) -> str:
        return markup.line(TextLine((Span(text),)), NO_OWNERS)

    lines = [markup.line(line, NO_OWNERS) for line in letter.lines]
    late = parcel.at - min((each.at for each in parcel.notifications), default=parcel.at)
    return {
        "title": escape(letter.title),
        "lines": lines,
        "text": "\n".join((escape(letter.title), *lines)),
        "id": parcel.id,
        "cluster": escape(voice.cluster or ""),
        "language": voice.lang,
        "severity": letter.severity.value,
        "resolved": letter.resolved,
        "late_seconds": max(0.0, late),
        "notifications": [_notification(each, parcel.at, voice, escape) for each in parcel.notifications],
    }


def _notification(told: Notification, now: float, voice: Locale, escape: Escape) -> dict[str, Any]:
    return {
        "reason": told.reason.value,
        "severity": told.severity.value,
        "resolved": told.resolved,
        "group": escape(told.group),
        "users": [escape(user) for user in told.users],
        "symptoms": [
            {"rule": escape(each.rule), "name": escape(voice.rule(each.rule)), "count": each.count}
            for each in told.symptoms
        ],
        "subjects": [_subject(subject, now, voice, escape) for subject in told.subjects],
    }


def _subject(subject: NotificationSubject, now: float, voice: Locale, escape: Escape) -> dict[str, Any]:
    finding = subject.finding
    until = now if subject.resolved_at is None else subject.resolved_at
    return {
        "rule": escape(finding.rule),
        "name": escape(voice.rule(finding.rule)),
        "severity": finding.severity.value,
        "cause": escape(finding.cause),
        "phase": subject.phase.value,
        "labels": _escaped(finding.labels, escape),
        "headline": escape(voice.note(finding.headline)),
        "evidence": [escape(voice.note(note)) for note in finding.evidence],
        "advice": [escape(voice.note(note)) for note in finding.advice],
        "since": voice.moment(subject.since),
        "seconds": max(0.0, until - subject.since),
        "flapping": subject.flapping,
        "fresh": subject.fresh,
        "link": voice.address(fingerprint=subject.fingerprint) or "",
    }


def _escaped(labels: Mapping[str, str], escape: Escape) -> dict[str, str]:
    return {name: escape(value) for name, value in labels.items()}
