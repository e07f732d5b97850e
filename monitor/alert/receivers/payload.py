"""Alerts in the data model of Prometheus and Alertmanager: labels, annotations, timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from monitor.alert.message.locale import Locale
from monitor.alert.message.parts import common_labels
from monitor.alert.model import Notification, NotificationSubject, Phase, labels_of
from monitor.base.http import as_json

MAX_WEBHOOK_BYTES = 2 << 20  # of the alerts in one request
NEVER = "0001-01-01T00:00:00Z"  # Go's zero time, which Alertmanager uses for an unknown time


def rfc3339(at: float) -> str:
    """Timestamp in the format of Alertmanager."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def alert_link(subject: NotificationSubject, locale: Locale) -> str:
    """URL of the alert on the page; empty without a page."""
    return locale.alert_url(fingerprint=subject.fingerprint) or ""


def label_set(subject: NotificationSubject, locale: Locale) -> dict[str, str]:
    """Labels of an alert, without empty ones: to Prometheus they do not exist."""
    labels = labels_of(subject.finding, locale.cluster)
    return {name: value for name, value in labels.items() if value}


def alert_annotations(subject: NotificationSubject, locale: Locale, *, sample: bool) -> dict[str, str]:
    """Annotations of an alert; a test message is marked as such."""
    finding = subject.finding
    texts = {
        "summary": locale.text(finding.headline),
        "description": "\n".join(locale.text(text) for text in finding.evidence),
        "advice": "\n".join(locale.text(text) for text in finding.advice),
        "runbook_url": alert_link(subject, locale),
        "sample": "true" if sample else "",
    }
    return {name: text for name, text in texts.items() if text}


def webhook_payload(notification: Notification, locale: Locale, receiver: str) -> dict[str, Any]:
    """Body of Alertmanager's webhook, version 4, with as many alerts as its limit permits."""
    all_alerts = (_alert(subject, locale, sample=notification.sample) for subject in notification.subjects)
    alerts = next(batches(all_alerts, MAX_WEBHOOK_BYTES), [])
    common = _common([alert["labels"] for alert in alerts])
    grouped_by = ["alertname", *(part.partition("=")[0] for part in notification.group.split("|")[1:])]
    return {
        "version": "4",
        "groupKey": notification.group,
        "truncatedAlerts": notification.omitted + len(notification.subjects) - len(alerts),
        "status": "resolved" if notification.resolved else "firing",
        "receiver": receiver,
        "groupLabels": {name: common[name] for name in grouped_by if name in common},
        "commonLabels": common,
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": locale.page or "",
        "alerts": alerts,
    }


def batches(
    alerts: Iterable[dict[str, Any]], max_bytes: int, most: int | None = None
) -> Iterator[list[dict[str, Any]]]:
    """Alerts in lists of at most `max_bytes` of JSON, and at most `most` each; every list has at least one."""
    batch: list[dict[str, Any]] = []
    size = 0
    for alert in alerts:
        length = len(as_json(alert))
        if batch and (size + length > max_bytes or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(alert)
        size += length
    if batch:
        yield batch


def _alert(subject: NotificationSubject, locale: Locale, *, sample: bool) -> dict[str, Any]:
    resolved = subject.phase is Phase.RESOLVED
    return {
        "status": "resolved" if resolved else "firing",
        "labels": label_set(subject, locale),
        "annotations": alert_annotations(subject, locale, sample=sample),
        "startsAt": rfc3339(subject.since),
        "endsAt": rfc3339(subject.resolved_at) if resolved and subject.resolved_at is not None else NEVER,
        "generatorURL": alert_link(subject, locale),
        "fingerprint": subject.fingerprint,
    }


def _common(sets: Sequence[dict[str, str]]) -> dict[str, str]:
    """Pairs that all sets share, in the order of the first."""
    shared = common_labels(sets)
    return {name: value for name, value in sets[0].items() if name in shared} if sets else {}
