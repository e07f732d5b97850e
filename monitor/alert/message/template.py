"""User-defined message templates. A template that fails falls back to the built-in message.

Templates are Jinja2, sandboxed, with these variables:

    title, lines, text     the built-in message: its title, its lines, and all of it
    id, cluster, language  of the message
    severity, resolved     of the whole message
    late_seconds           lateness of the message
    notifications          one or several, each with: reason, severity, resolved, users, group, symptoms (rule, name,
                           count) and subjects, each with: rule, name (of the rule), severity, cause, phase, labels,
                           headline, evidence, advice, since, seconds, flapping, fresh, link

Every text is escaped for the receiver's format, so that no pod name becomes a link or a mention.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage, Span, TextLine
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import NO_OWNERS, Markup, Owners, fit
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification, NotificationSubject
from monitor.base.text import ELLIPSIS

log = logging.getLogger(__name__)

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,  # not HTML: every value is escaped for its own format
    trim_blocks=True,
    lstrip_blocks=True,
)
Escape = Callable[[str], str]


def check_template(text: str) -> None:
    """Check the syntax of a template. Raise ValueError that names the line."""
    try:
        _template(text)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def render_template(
    text: str, batch: Batch, locale: Locale, limit_bytes: int, markup: Markup = plain.MARKUP, owners: Owners = NO_OWNERS
) -> str:
    """Render a template in at most `limit_bytes`, keeping as many whole lines as fit.

    If the template fails, log why and return the built-in message.
    """
    message = compose(batch, locale)
    try:
        rendered = _fit_lines(_template(text).render(_variables(batch, message, locale, markup)), limit_bytes)
    except Exception as error:  # whatever is wrong with a template, the alert must go out
        log.warning("message template failed, using the built-in message: %s: %s", type(error).__name__, error)
        rendered = ""
    return rendered or fit(message, markup, limit_bytes, owners)


@lru_cache(maxsize=32)
def _template(text: str) -> Template:
    return _ENVIRONMENT.from_string(text)


def _fit_lines(rendered: str, limit_bytes: int) -> str:
    """Lines that fit; empty if not even the first one does."""
    text = rendered.strip("\n")
    if len(text.encode()) <= limit_bytes:
        return text
    room = limit_bytes - len(f"\n{ELLIPSIS}".encode())
    fitting: list[str] = []
    for line in text.split("\n"):
        room -= len(line.encode()) + (1 if fitting else 0)
        if room < 0:
            break
        fitting.append(line)
    return "\n".join((*fitting, ELLIPSIS)) if fitting else ""


def _variables(batch: Batch, message: AlertMessage, locale: Locale, markup: Markup) -> dict[str, Any]:
    def escape(text: str) -> str:
        return markup.line(TextLine((Span(text),)), NO_OWNERS)

    lines = [markup.line(line, NO_OWNERS) for line in message.lines]
    late = batch.at - min((notification.at for notification in batch.notifications), default=batch.at)
    return {
        "title": escape(message.title),
        "lines": lines,
        "text": "\n".join((escape(message.title), *lines)),
        "id": batch.id,
        "cluster": escape(locale.cluster or ""),
        "language": locale.lang,
        "severity": message.severity.value,
        "resolved": message.resolved,
        "late_seconds": max(0.0, late),
        "notifications": [_notification(entry, batch.at, locale, escape) for entry in batch.notifications],
    }


def _notification(notification: Notification, now: float, locale: Locale, escape: Escape) -> dict[str, Any]:
    return {
        "reason": notification.reason.value,
        "severity": notification.severity.value,
        "resolved": notification.resolved,
        "group": escape(notification.group),
        "users": [escape(user) for user in notification.users],
        "symptoms": [
            {"rule": escape(entry.rule), "name": escape(locale.rule(entry.rule)), "count": entry.count}
            for entry in notification.symptoms
        ],
        "subjects": [_subject(subject, now, locale, escape) for subject in notification.subjects],
    }


def _subject(subject: NotificationSubject, now: float, locale: Locale, escape: Escape) -> dict[str, Any]:
    finding = subject.finding
    end = now if subject.resolved_at is None else subject.resolved_at
    return {
        "rule": escape(finding.rule),
        "name": escape(locale.rule(finding.rule)),
        "severity": finding.severity.value,
        "cause": escape(finding.cause),
        "phase": subject.phase.value,
        "labels": {name: escape(value) for name, value in finding.labels.items()},
        "headline": escape(locale.text(finding.headline)),
        "evidence": [escape(locale.text(text)) for text in finding.evidence],
        "advice": [escape(locale.text(text)) for text in finding.advice],
        "since": locale.timestamp(subject.since),
        "seconds": max(0.0, end - subject.since),
        "flapping": subject.flapping,
        "fresh": subject.fresh,
        "link": locale.alert_url(fingerprint=subject.fingerprint) or "",
    }
