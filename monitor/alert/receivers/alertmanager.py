"""An Alertmanager (or several behind one address): alerts go to its API, which groups, routes and repeats them.

Alertmanager holds an alert to be over when it hears nothing of it. So what fires is sent again and again, with an end
that lies a few repetitions ahead: if this program dies, its alerts end there within minutes and not never.

It knows an alert by all of its labels, the severity among them: one that becomes worse is another one there, and the
old one has to be ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from monitor.alert.model import Batch, Notification, NotificationSubject, Phase
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.configured import ID_HEADER, BaseReceiver, bearer, endpoint_of
from monitor.alert.receivers.payload import label_set, link, rfc3339, words
from monitor.base.http import post_json

AT_ONCE = 500  # alerts in one request


class Alertmanager(BaseReceiver):
    """`resend` wants to be called every `resend_every` seconds with all that fires and is routed here."""

    kind = "alertmanager"
    resend_every = 60.0

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        way = endpoint_of(settings)
        self._way = replace(way, url=api_url(way.url, "alerts"))
        self._headers = bearer(settings.token)
        self._firing: dict[str, dict[str, Any]] = {}  # by fingerprint: the alert as it was last sent

    def holds(self, notifications: Sequence[Notification]) -> int:
        return max(1, len(notifications))

    def deliver(self, parcel: Batch) -> str:
        # The last word on an alert counts, when several wait.
        last = {
            subject.fingerprint: (subject, each.sample) for each in parcel.notifications for subject in each.subjects
        }
        if not last:
            return "nothing to send: a digest is no alert"
        return self._send(list(last.values()), parcel.at, {ID_HEADER: parcel.id})

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        """Say of each of these that it still fires. Raise DeliveryError; the next time makes up for it."""
        self._send([(subject, False) for subject in subjects if subject.phase is Phase.FIRING], now, {})

    def _send(self, subjects: Sequence[tuple[NotificationSubject, bool]], now: float, headers: dict[str, str]) -> str:
        """Send what is to be said of these, each with whether it is a sample, and end what they were before."""
        alerts = {subject.fingerprint: self._alert(subject, now, sample=sample) for subject, sample in subjects}
        ended = [
            _ended(self._firing[own], now)
            for own, alert in alerts.items()
            if own in self._firing and self._firing[own]["labels"] != alert["labels"]
        ]
        answer = self._post([*ended, *alerts.values()], headers)
        for subject, _ in subjects:
            if subject.phase is Phase.FIRING:
                self._firing[subject.fingerprint] = alerts[subject.fingerprint]
            else:
                self._firing.pop(subject.fingerprint, None)
        return answer

    def _post(self, alerts: Sequence[dict[str, Any]], headers: dict[str, str]) -> str:
        parts = [alerts[start : start + AT_ONCE] for start in range(0, len(alerts), AT_ONCE)]
        return " ".join(str(post_json(self._way, part, headers | self._headers).status) for part in parts)

    def _alert(self, subject: NotificationSubject, now: float, *, sample: bool) -> dict[str, Any]:
        ends = now + 5 * self.resend_every
        if subject.phase is Phase.RESOLVED:
            ends = max(subject.resolved_at or now, subject.since)
        alert: dict[str, Any] = {
            "labels": label_set(subject, self.voice),
            "annotations": words(subject, self.voice, sample=sample),
            "startsAt": rfc3339(min(subject.since, ends)),
            "endsAt": rfc3339(ends),
        }
        where = link(subject, self.voice)
        return alert | {"generatorURL": where} if where else alert


def _ended(alert: dict[str, Any], now: float) -> dict[str, Any]:
    """Given an alert as it was sent, return it as one that is over."""
    ends = rfc3339(now)
    return alert | {"startsAt": min(alert["startsAt"], ends), "endsAt": ends}


def api_url(base: str, what: str) -> str:
    """Given the address of an Alertmanager, return that of a part of its API."""
    return f"{base.rstrip('/').removesuffix('/api/v2/alerts').removesuffix('/api/v2')}/api/v2/{what}"
