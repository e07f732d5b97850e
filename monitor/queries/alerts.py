"""Queries about alerts, silences and deliveries, and the changes that the page, the API and the CLI can make."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Protocol

from monitor.alert.dispatcher import Dispatcher
from monitor.alert.matchers import known_matchers, matchers_of
from monitor.alert.model import Alert
from monitor.alert.mute import AlertView
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.registry import build
from monitor.alert.sample import Sample, sample_batch, samples
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, AlertStore, Delivery
from monitor.base.http import RequestError
from monitor.base.text import shorten
from monitor.base.units import parse_duration
from monitor.facts.base import SHORT_LIST, BoundedText, Fact, Identifier
from monitor.leader.elector import LeaderElector
from monitor.present.alerts import (
    LocalizedAlert,
    LocalizedAlertEvent,
    ReceiverTestResult,
    localize_alerts,
    localize_events,
)
from monitor.present.timeline import MAX_ENTRIES, TimelineEntry, alert_timeline, begin_of

SAMPLE_RULE = "disk-full"
MAX_TEXT_CHARS = 1000


class AlertService(Protocol):
    """The part of the daemon's alerting service that queries use."""

    @property
    def dispatcher(self) -> Dispatcher: ...

    @property
    def store(self) -> AlertStore: ...

    @property
    def settings(self) -> tuple[ReceiverSettings, ...]: ...

    @property
    def leading(self) -> LeaderElector: ...

    def silences(self) -> tuple[Silence, ...]: ...

    def call(self, body: bytes) -> int: ...


class SilenceRequest(Fact, frozen=True, kw_only=True):
    """A silence to create: mutes alerts that match all matchers for a duration such as `2h`."""

    matchers: Annotated[tuple[BoundedText, ...], SHORT_LIST]
    duration: Identifier
    author: str = ""
    comment: str = ""


class AcknowledgeRequest(Fact, frozen=True, kw_only=True):
    """What the person who takes care of an alert says about it."""

    comment: BoundedText = ""


class AlertQueries:
    """Queries about alerts, and the changes to them."""

    def __init__(self, alerting: AlertService, now: Callable[[], float] = time.time) -> None:
        self._alerting = alerting
        self._now = now

    def alerts(self, lang: str) -> tuple[LocalizedAlert, ...]:
        """All alerts in one language."""
        return localize_alerts(self._alerting.dispatcher.snapshot(), lang)

    def merged_into(self, fingerprint: str) -> str:
        """Fingerprint of the alert that continues one from before an upgrade; any other one as it is."""
        return self._alerting.store.merged_into(fingerprint)

    def past(self, fingerprint: str, lang: str) -> LocalizedAlert | None:
        """An alert that is no longer among all alerts, as it was last recorded; None if it is not on record."""
        alert = self._last_recorded(fingerprint)
        if alert is None:
            return None
        return localize_alerts((AlertView(alert=alert, told=alert.notified),), lang)[0]

    def timeline(self, fingerprint: str) -> tuple[TimelineEntry, ...]:
        """What happened to an alert since it was first seen, oldest first; nothing for an unknown one."""
        store = self._alerting.store
        alert = self._alerting.dispatcher.state.alerts.get(fingerprint) or self._last_recorded(fingerprint)
        if alert is None:
            return ()
        since = begin_of(alert)
        events = self._events(fingerprint, since)
        mentions = store.mentions(alert, since, MAX_ENTRIES)
        return alert_timeline(alert, events, mentions, store.silences(since), self._now())

    def acknowledge(self, fingerprint: str, by: str, comment: str) -> None:
        """Record who takes care of an alert; the next message says so. Raise ValueError with a message for the user."""
        if self._alerting.leading.shared:
            raise ValueError("with daemon.lease, replicas do not share acknowledgements; silence it in Alertmanager")
        self._alerting.dispatcher.acknowledge(
            fingerprint, shorten(by, MAX_TEXT_CHARS), shorten(comment, MAX_TEXT_CHARS)
        )

    def _last_recorded(self, fingerprint: str) -> Alert | None:
        events = self._events(fingerprint, 0.0)
        return events[0].alert if events else None

    def _events(self, fingerprint: str, since: float) -> list[AlertEvent]:
        """Transitions of one alert, the latest first; another alert may contain its fingerprint in a name."""
        events = self._alerting.store.history(since, MAX_ENTRIES, fingerprint)
        return [event for event in events if event.alert.fingerprint == fingerprint]

    def history(self, since: float, limit: int, lang: str) -> tuple[LocalizedAlertEvent, ...]:
        """Alert events since a time in one language, newest first."""
        return localize_events(self._alerting.store.history(since, limit), lang)

    def events_about(
        self, labels: Mapping[str, str], since: float, limit: int, lang: str
    ) -> tuple[LocalizedAlertEvent, ...]:
        """Events of the alerts with these labels since a time in one language, newest first."""
        events = self._alerting.store.history(since, about=max(labels.values(), key=len))
        wanted = labels.items()
        chosen = islice((event for event in events if wanted <= event.alert.finding.labels.items()), limit)
        return localize_events(chosen, lang)

    def deliveries(self, limit: int) -> tuple[Delivery, ...]:
        """Deliveries, newest first."""
        return self._alerting.store.deliveries(limit, self._now())

    def silences(self) -> tuple[Silence, ...]:
        """Active silences, including those of the configured Alertmanager."""
        return self._alerting.silences()

    def silence(self, request: SilenceRequest) -> Silence:
        """Create a silence. Raise ValueError with a message for the user."""
        if self._alerting.leading.shared:
            raise ValueError("with daemon.lease, replicas do not share silences; silence it in Alertmanager")
        silence = make_silence(request, secrets.token_hex(4), self._now())
        self._alerting.store.add_silence(silence)
        return silence

    def unsilence(self, silence_id: str) -> bool:
        """Expire a silence. Return whether there was one."""
        return self._alerting.store.end_silence(silence_id, self._now())

    def test(self, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
        """Send a test message to one receiver or to all of them. Raise ValueError for an unknown name."""
        return send_samples(self._alerting.settings, receiver, rule, self._now())

    def call(self, body: bytes) -> int:
        """Handle an Alertmanager webhook call; return the number of messages it results in. Raise ValueError."""
        return self._alerting.call(body)


def make_silence(request: SilenceRequest, silence_id: str, now: float) -> Silence:
    """The silence that a request describes. Raise ValueError with a message for the user."""
    seconds = parse_duration(request.duration)
    if seconds <= 0:
        raise ValueError("a silence needs a duration, for example 2h")
    return Silence(
        id=silence_id,
        matchers=matchers_of(known_matchers(request.matchers)),
        starts_at=now,
        ends_at=now + seconds,
        author=shorten(request.author, MAX_TEXT_CHARS),
        comment=shorten(request.comment, MAX_TEXT_CHARS),
    )


def send_samples(
    settings: Sequence[ReceiverSettings], receiver: str | None, rule: str | None, now: float
) -> tuple[ReceiverTestResult, ...]:
    """Send a test message of a rule to one receiver or to all of them. Raise ValueError for an unknown name.

    It bypasses the outbox so that the result is the receiver's own response.
    """
    names = [one.name for one in settings]
    if receiver is not None and receiver not in names:
        raise ValueError(f"there is no receiver {receiver!r}; there are {', '.join(names) or 'none'}")
    sample = samples((rule or SAMPLE_RULE).replace("_", "-"))[0]
    return tuple(_send_sample(one, sample, now) for one in settings if receiver in (None, one.name))


def _send_sample(settings: ReceiverSettings, sample: Sample, now: float) -> ReceiverTestResult:
    parcel = sample_batch(settings.name, sample, now)
    try:
        ok, answer = True, build(settings).deliver(parcel)
    except RequestError as error:
        ok, answer = False, str(error)
    return ReceiverTestResult(receiver=settings.name, kind=settings.kind, ok=ok, answer=answer)
