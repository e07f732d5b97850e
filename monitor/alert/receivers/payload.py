"""Alerts as Prometheus and Alertmanager write them: labels, annotations, times. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from monitor.alert.labels import labels_of
from monitor.alert.message.locale import Locale
from monitor.alert.model import Notification, NotificationSubject, Phase

NEVER = "0001-01-01T00:00:00Z"  # what Alertmanager writes for a time that is not known


def rfc3339(at: float) -> str:
    """Given a time, return it as Alertmanager writes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def link(subject: NotificationSubject, voice: Locale) -> str:
    """Return where the page tells all about this; empty where there is no page."""
    return voice.address(fingerprint=subject.fingerprint) or ""


def label_set(subject: NotificationSubject, voice: Locale) -> dict[str, str]:
    """Return the labels of an alert. One that is empty does not exist for Prometheus."""
    given = labels_of(subject.finding, voice.cluster)
    return {name: value for name, value in given.items() if value}


def words(subject: NotificationSubject, voice: Locale, *, sample: bool) -> dict[str, str]:
    """Return the annotations of an alert: what it says in sentences. A test message says so."""
    finding = subject.finding
    said = {
        "summary": voice.note(finding.headline),
        "description": "\n".join(voice.note(note) for note in finding.evidence),
        "advice": "\n".join(voice.note(note) for note in finding.advice),
        "runbook_url": link(subject, voice),
        "sample": "true" if sample else "",
    }
    return {name: text for name, text in said.items() if text}


def v4(notification: Notification, voice: Locale, receiver: str) -> dict[str, Any]:
    """Given a notification, return the body that Alertmanager's webhook would send, version 4."""
    alerts = [_alert(subject, voice, sample=notification.sample) for subject in notification.subjects]
    common = _common([alert["labels"] for alert in alerts])
    grouped_by = ["alertname", *(part.partition("=")[0] for part in notification.group.split("|")[1:])]
    return {
        "version": "4",
        "groupKey": notification.group,
        "truncatedAlerts": 0,
        "status": "resolved" if notification.resolved else "firing",
        "receiver": receiver,
        "groupLabels": {name: common[name] for name in grouped_by if name in common},
        "commonLabels": common,
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": voice.page or "",
        "alerts": alerts,
    }


def _alert(subject: NotificationSubject, voice: Locale, *, sample: bool) -> dict[str, Any]:
    over = subject.phase is Phase.RESOLVED
    return {
        "status": "resolved" if over else "firing",
        "labels": label_set(subject, voice),
        "annotations": words(subject, voice, sample=sample),
        "startsAt": rfc3339(subject.since),
        "endsAt": rfc3339(subject.resolved_at) if over and subject.resolved_at is not None else NEVER,
        "generatorURL": link(subject, voice),
        "fingerprint": subject.fingerprint,
    }


def _common(each: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return what all of them have, with the same value."""
    if not each:
        return {}
    return {name: value for name, value in each[0].items() if all(other.get(name) == value for other in each[1:])}
