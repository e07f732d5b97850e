"""Alertmanager's API, which groups, routes and repeats alerts itself.

Alertmanager resolves an alert that is not sent again. Firing alerts are therefore resent periodically, with an end a
few intervals ahead: if this program dies, its alerts resolve there within minutes.

Alertmanager identifies an alert by all labels. An alert is therefore sent under the labels with which it was announced,
by whichever replica; labels that appear or change later are annotations. Only a worse severity makes a new alert there,
and the previous one is ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from monitor.alert.alertmanager.active import (
    MAX_ACTIVE_BYTES,
    ActiveAlert,
    ActiveAlerts,
    active_query,
    continued,
    read_active,
)
from monitor.alert.announced import announced_labels, changed_labels
from monitor.alert.model import Batch, NotificationSubject, Phase
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.common import ID_HEADER, BaseReceiver, bearer
from monitor.alert.receivers.payload import MAX_WEBHOOK_BYTES, alert_annotations, alert_link, batches, rfc3339
from monitor.base.http import RequestError, get, post_json

log = logging.getLogger(__name__)
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
        unknown = [subject for subject, sample in latest.values() if not sample and self._is_unknown(subject)]
        return self._send(list(latest.values()), self._active(unknown), batch.at, {ID_HEADER: batch.id})

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        """Send the firing ones again. Raise DeliveryError; the next call makes up for it."""
        firing = [subject for subject in subjects if subject.phase is Phase.FIRING]
        self._send([(subject, False) for subject in firing], self._active(firing), now, {})

    def _is_unknown(self, subject: NotificationSubject) -> bool:
        return subject.fingerprint not in self._firing

    def _active(self, subjects: Iterable[NotificationSubject]) -> ActiveAlerts:
        """What is active there of the rules of these subjects; nothing if Alertmanager does not say."""
        rules = {subject.finding.rule for subject in subjects}
        if not rules:
            return ActiveAlerts()
        url = f"{self.endpoint.url}?{active_query(rules, self.locale.cluster)}"
        try:
            return read_active(get(replace(self.endpoint, url=url), self._headers, MAX_ACTIVE_BYTES).body, rules)
        except RequestError as error:
            log.info("cannot read the active alerts of Alertmanager: %s", error)
        except (ValueError, RecursionError) as error:  # includes msgspec errors
            log.info("%s did not return a list of alerts: %s", self.endpoint.host, error)
        return ActiveAlerts()

    def _send(
        self,
        subjects: Sequence[tuple[NotificationSubject, bool]],
        active: ActiveAlerts,
        now: float,
        headers: dict[str, str],
    ) -> str:
        """Send subjects, each with whether it is a sample, and end their previous versions with other labels."""
        alerts, ended = {}, []
        for subject, sample in subjects:
            known = self._known(subject, active)
            labels = self._labels(subject)
            labels = continued(labels, known[0]["labels"]) if known else labels
            alerts[subject.fingerprint] = self._alert(subject, labels, now, sample=sample)
            ended += [_ended(other, now) for other in known if other["labels"] != labels]
        answer = self._post([*ended, *alerts.values()], headers)
        for subject, _ in subjects:
            if subject.phase is Phase.FIRING:
                self._firing[subject.fingerprint] = alerts[subject.fingerprint]
            else:
                self._firing.pop(subject.fingerprint, None)
        return answer

    def _labels(self, subject: NotificationSubject) -> dict[str, str]:
        """Labels under which an alert was announced, without empty ones: to Prometheus they do not exist."""
        labels = announced_labels(subject, self.locale.cluster)
        return {name: value for name, value in labels.items() if value}

    def _known(self, subject: NotificationSubject, active: ActiveAlerts) -> list[dict[str, Any]]:
        """Alerts of the subject that were sent before; the first one is continued, the others end."""
        known = [_as_sent(alert) for alert in active.of(subject.finding.rule, self._labels(subject))]
        sent = self._firing.get(subject.fingerprint)
        if sent is not None and sent["labels"] not in [alert["labels"] for alert in known]:
            known.append(sent)
        return known

    def _post(self, alerts: Sequence[dict[str, Any]], headers: dict[str, str]) -> str:
        parts = batches(alerts, MAX_WEBHOOK_BYTES, MAX_ALERTS_PER_REQUEST)
        return " ".join(str(post_json(self.endpoint, part, headers | self._headers).status) for part in parts)

    def _alert(
        self, subject: NotificationSubject, labels: dict[str, str], now: float, *, sample: bool
    ) -> dict[str, Any]:
        ends = now + KEEP_FACTOR * self.resend_every
        if subject.phase is Phase.RESOLVED:
            ends = max(subject.resolved_at or now, subject.since)
        changed = changed_labels(subject, labels)
        alert: dict[str, Any] = {
            "labels": labels,
            "annotations": alert_annotations(subject, self.locale, sample=sample) | changed,
            "startsAt": rfc3339(min(subject.since, ends)),
            "endsAt": rfc3339(ends),
        }
        url = alert_link(subject, self.locale)
        return alert | {"generatorURL": url} if url else alert


def _as_sent(alert: ActiveAlert) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(alert).items() if value}


def _ended(alert: dict[str, Any], now: float) -> dict[str, Any]:
    """A sent alert with its end at `now`."""
    ends = rfc3339(now)
    return alert | {"startsAt": min(alert["startsAt"], ends), "endsAt": ends}


def api_url(base: str, resource: str) -> str:
    """URL of an API resource of the Alertmanager at `base`."""
    return f"{base.rstrip('/').removesuffix('/api/v2/alerts').removesuffix('/api/v2')}/api/v2/{resource}"
