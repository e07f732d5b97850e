"""An Alertmanager (or several behind one address): alerts go to its API, which groups, routes and repeats them.

Alertmanager holds an alert to be over when it hears nothing of it. So what fires is sent again and again, with an end
that lies a few repetitions ahead: if this program dies, its alerts end there within minutes and not never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from monitor.alert.http_out import post_json
from monitor.alert.model import Notification, Parcel, Phase, Subject
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.configured import ID_HEADER, Configured, bearer, way_of
from monitor.alert.receivers.payload import label_set, link, rfc3339, words

AT_ONCE = 500  # alerts in one request


class Alertmanager(Configured):
    """`resend` wants to be called every `resend_every` seconds with all that fires and is routed here."""

    kind = "alertmanager"
    resend_every = 60.0

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        way = way_of(settings)
        self._way = replace(way, url=api_url(way.url, "alerts"))
        self._headers = bearer(settings.token)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return max(1, len(notifications))

    def deliver(self, parcel: Parcel) -> str:
        # The last word on an alert counts, when several wait.
        alerts = {
            subject.fingerprint: self._alert(subject, parcel.at, sample=each.sample)
            for each in parcel.notifications
            for subject in each.subjects
        }
        if not alerts:
            return "nothing to send: a digest is no alert"
        return self._post(list(alerts.values()), {ID_HEADER: parcel.id})

    def resend(self, subjects: Sequence[Subject], now: float) -> None:
        """Say of each of these that it still fires. Raise DeliveryError; the next time makes up for it."""
        firing = [subject for subject in subjects if subject.phase is Phase.FIRING]
        self._post([self._alert(subject, now, sample=False) for subject in firing], {})

    def _post(self, alerts: Sequence[dict[str, Any]], headers: dict[str, str]) -> str:
        parts = [alerts[start : start + AT_ONCE] for start in range(0, len(alerts), AT_ONCE)]
        return " ".join(str(post_json(self._way, part, headers | self._headers).status) for part in parts)

    def _alert(self, subject: Subject, now: float, *, sample: bool) -> dict[str, Any]:
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


def api_url(base: str, what: str) -> str:
    """Given the address of an Alertmanager, return that of a part of its API."""
    return f"{base.rstrip('/').removesuffix('/api/v2/alerts').removesuffix('/api/v2')}/api/v2/{what}"
