"""The outbox of alerts, for notifications that do not come from findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.alert.model import Notification
from monitor.alert.receivers.base import users_reached_alone
from monitor.cleanup.notices import NoticeRouting
from monitor.daemon.alerting import AlertingService


class AlertOutbox:
    """Outbox of alerts, for the notices of cleanup and the usage report."""

    def __init__(self, alerting: AlertingService) -> None:
        self._alerting = alerting

    def routing(self) -> NoticeRouting:
        policy = self._alerting.policy()
        settings = self._alerting.settings
        receivers = tuple(receiver.name for receiver in settings)
        private = {receiver.name: users_reached_alone(receiver) for receiver in settings}
        return NoticeRouting(policy.routes, receivers, policy.cluster, private)

    def note(self, name: str) -> bytes | None:
        """Metadata that was stored together with notifications."""
        return self._alerting.store.note(name)

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        self._alerting.dispatcher.send(notifications, notes)
