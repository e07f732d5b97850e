"""Record of the product's behaviour, for comparison with the outages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.alert.model import Alert, Notification, Phase
from tests.scorecard.model import Episode


@dataclass
class Record:
    """Alerts that fired and messages that were sent."""

    episodes: list[Episode] = field(default_factory=list)
    messages: int = 0
    looks: int = 0
    firing: dict[str, Episode] = field(default_factory=dict)

    def note(self, alerts: Mapping[str, Alert], now: float) -> None:
        """Record firing alerts and their causes."""
        for own, alert in alerts.items():
            open_one = self.firing.get(own)
            if alert.phase is Phase.FIRING:
                self._note_firing(own, alert, open_one, now)
            elif open_one is not None and alert.phase is Phase.RESOLVED:
                open_one.resolved_at = alert.resolved_at
                del self.firing[own]

    def _note_firing(self, own: str, alert: Alert, open_one: Episode | None, now: float) -> None:
        finding = alert.finding
        if open_one is None:
            open_one = Episode(own, finding.rule, dict(finding.labels), alert.fired_at or now, [finding.cause])
            self.firing[own] = open_one
            self.episodes.append(open_one)
        if open_one.causes[-1] != finding.cause:
            open_one.causes.append(finding.cause)

    def tell(self, notification: Notification, now: float) -> None:
        """Record the alerts of a message."""
        self.messages += 1
        for subject in notification.subjects:
            episode = self.firing.get(subject.fingerprint)
            if episode is not None and subject.phase is Phase.FIRING and episode.told_at is None:
                episode.told_at = now
