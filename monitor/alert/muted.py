"""The alerts as they are shown: with who was told, and why nothing is told about some. Pure."""

from __future__ import annotations

from monitor.alert.inhibition import inhibition
from monitor.alert.labels import labels_of
from monitor.alert.model import Alert
from monitor.alert.notify import AlertState, NotifyPolicy
from monitor.alert.silences import active_silences, matching_silence
from monitor.alert.windows import matching_window, open_windows
from monitor.facts.base import Fact


class AlertView(Fact, frozen=True, kw_only=True):
    """An alert, and why nothing is told about it: a silence's id, maintenance, the fingerprint of what explains it.

    `told` are the receivers that know that it fires.
    """

    alert: Alert
    silenced_by: str | None = None
    in_maintenance: bool = False
    explained_by: str | None = None
    told: tuple[str, ...] = ()


def alert_views(book: AlertState, policy: NotifyPolicy, now: float) -> tuple[AlertView, ...]:
    """Return all alerts as they are to be shown."""
    causes = inhibition(book.alerts, policy.linger, now).causes
    silences, windows = active_silences(policy.silences, now), open_windows(policy.windows, now)
    told: dict[str, list[str]] = {}
    for (receiver, _), each in sorted(book.told.items()):
        for own in each.firing:
            told.setdefault(own, []).append(receiver)
    shown = []
    for own, alert in book.alerts.items():
        labels = labels_of(alert.finding, policy.cluster)
        silence = matching_silence(labels, silences, now)
        shown.append(
            AlertView(
                alert=alert,
                silenced_by=None if silence is None else silence.id,
                in_maintenance=matching_window(labels, windows) is not None,
                explained_by=causes.get(own),
                told=tuple(told.get(own, ())),
            )
        )
    return tuple(shown)
