"""Alertmanager's API, which groups, routes and repeats alerts itself.

Alertmanager resolves an alert that is not sent again. Firing alerts are therefore resent periodically, with an end a
few intervals ahead: if this program dies, its alerts resolve there within minutes.

Alertmanager identifies an alert by all labels, including the severity: one that gets worse is a new alert there, and
the previous one has to be ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from monitor.alert.model import Batch, NotificationSubject, Phase
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.common import ID_HEADER, BaseReceiver, bearer
from monitor.alert.receivers.payload import (
    MAX_WEBHOOK_BYTES,
    alert_annotations,
    alert_link,
    batches,
    label_set,
    rfc3339,
)
from monitor.base.http import post_json

MAX_ALERTS_PER_REQUEST = 500
KEEP_FACTOR = 5  # intervals until an alert ends that is not resent


class Alertmanager(BaseReceiver):
    """An Alertmanager, or several behind one URL. Call `resend` with all firing alerts every `resend_every` seconds."""

    kind = "alertmanager"
    resend_every = 60.0

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self.endpoint = replace(self.endpoint, url=api_url(settings.url, "alerts"))
        self._headers = bearer(settings.token)
        self._firing: dict[str, dict[str, Any]] = {}  # last sent, by fingerprint

    def deliver(self, batch: Batch) -> str:
        # The last state of an alert counts if several notifications contain it.
        latest = {
            subject.fingerprint: (subject, notification.sample)
            for notification in batch.notifications
            for subject in notification.subjects
        }
        if not latest:
            return "nothing to send: a digest has no alerts"
        return self._send(list(latest.values()), batch.at, {ID_HEADER: batch.id})

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        """Send the firing ones again. Raise DeliveryError; the next call makes up for it."""
        self._send([(subject, False) for subject in subjects if subject.phase is Phase.FIRING], now, {})

    def _send(self, subjects: Sequence[tuple[NotificationSubject, bool]], now: float, headers: dict[str, str]) -> str:
        """Send subjects, each with whether it is a sample, and end their previous versions with other labels."""
        alerts = {subject.fingerprint: self._alert(subject, now, sample=sample) for subject, sample in subjects}
        ended = [
            _ended(self._firing[fingerprint], now)
            for fingerprint, alert in alerts.items()
            if fingerprint in self._firing and self._firing[fingerprint]["labels"] != alert["labels"]
        ]
        answer = self._post([*ended, *alerts.values()], headers)
        for subject, _ in subjects:
            if subject.phase is Phase.FIRING:
                self._firing[subject.fingerprint] = alerts[subject.fingerprint]
            else:
                self._firing.pop(subject.fingerprint, None)
        return answer

    def _post(self, alerts: Sequence[dict[str, Any]], headers: dict[str, str]) -> str:
        parts = batches(alerts, MAX_WEBHOOK_BYTES, MAX_ALERTS_PER_REQUEST)
        return " ".join(str(post_json(self.endpoint, part, headers | self._headers).status) for part in parts)

    def _alert(self, subject: NotificationSubject, now: float, *, sample: bool) -> dict[str, Any]:
        ends = now + KEEP_FACTOR * self.resend_every
        if subject.phase is Phase.RESOLVED:
            ends = max(subject.resolved_at or now, subject.since)
        alert: dict[str, Any] = {
            "labels": label_set(subject, self.locale),
            "annotations": alert_annotations(subject, self.locale, sample=sample),
            "startsAt": rfc3339(min(subject.since, ends)),
            "endsAt": rfc3339(ends),
        }
        url = alert_link(subject, self.locale)
        return alert | {"generatorURL": url} if url else alert


def _ended(alert: dict[str, Any], now: float) -> dict[str, Any]:
    """A sent alert with its end at `now`."""
    ends = rfc3339(now)
    return alert | {"startsAt": min(alert["startsAt"], ends), "endsAt": ends}


def api_url(base: str, resource: str) -> str:
    """URL of an API resource of the Alertmanager at `base`."""
    return f"{base.rstrip('/').removesuffix('/api/v2/alerts').removesuffix('/api/v2')}/api/v2/{resource}"
