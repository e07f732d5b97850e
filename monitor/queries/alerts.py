"""Questions about alerts, and the few changes: the command line and the page ask for the same things."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from monitor.alert.dispatcher import Dispatcher
from monitor.alert.matchers import known_matchers, matchers_of
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.registry import build
from monitor.alert.sample import sample_batch
from monitor.alert.silences import Silence
from monitor.alert.store import AlertStore, Delivery
from monitor.base.http import RequestError
from monitor.base.units import parse_duration
from monitor.detect.meta.monitor import OWN_RULES
from monitor.detect.rules import RULES
from monitor.facts.base import Fact
from monitor.leader.elector import Leading
from monitor.present.alerts import SaidAlert, SaidEvent, Tried, say_alerts, say_events

SAMPLE_RULE = "disk-full"
# Of each rule a cause that a test message can be made of.
CAUSES = {rule.rule: (rule.causes or ("namespace",))[0] for rule in RULES} | dict(
    zip(OWN_RULES, ("api-server", "parked"), strict=True)
)
LONGEST_TEXT = 1000


class AlertService(Protocol):
    """The daemon's alerting service, as far as queries use it."""

    @property
    def dispatcher(self) -> Dispatcher: ...

    @property
    def store(self) -> AlertStore: ...

    @property
    def settings(self) -> tuple[ReceiverSettings, ...]: ...

    @property
    def leading(self) -> Leading: ...

    def silences(self) -> tuple[Silence, ...]: ...

    def call(self, body: bytes) -> int: ...


class NewSilence(Fact, frozen=True, kw_only=True):
    """What is asked for: for so long (`2h`) nothing is told about alerts that meet all matchers."""

    matchers: tuple[str, ...]
    duration: str
    author: str = ""
    comment: str = ""


class AlertQuestions:
    """What can be asked of alerts, and changed about them."""

    def __init__(self, alerting: AlertService, now: Callable[[], float] = time.time) -> None:
        self._alerting = alerting
        self._now = now

    def alerts(self, lang: str) -> tuple[SaidAlert, ...]:
        """Return all alerts, in words."""
        return say_alerts(self._alerting.dispatcher.snapshot(), lang)

    def history(self, since: float, limit: int, lang: str) -> tuple[SaidEvent, ...]:
        """Return what happened to alerts since a time, the latest first, in words."""
        return say_events(self._alerting.store.history(since, limit), lang)

    def deliveries(self, limit: int) -> tuple[Delivery, ...]:
        """Return what became of messages, the latest first."""
        return self._alerting.store.deliveries(limit, self._now())

    def silences(self) -> tuple[Silence, ...]:
        """Return the silences in force, ours and those of the Alertmanager that is configured."""
        return self._alerting.silences()

    def silence(self, wanted: NewSilence) -> Silence:
        """Add a silence, and return it. Raise ValueError in plain words."""
        if self._alerting.leading.shared:
            raise ValueError("with daemon.lease other replicas would not know of it; silence it in Alertmanager")
        silence = make_silence(wanted, secrets.token_hex(4), self._now())
        self._alerting.store.add_silence(silence)
        return silence

    def unsilence(self, own: str) -> bool:
        """End a silence. Return whether there was one."""
        return self._alerting.store.end_silence(own, self._now())

    def test(self, receiver: str | None, rule: str | None) -> tuple[Tried, ...]:
        """Send a test message to a receiver, or to each, and return their own answers. Raise ValueError."""
        return send_samples(self._alerting.settings, receiver, rule, self._now())

    def call(self, body: bytes) -> int:
        """Take in what an Alertmanager tells, and return how many messages that makes. Raise ValueError."""
        return self._alerting.call(body)


def make_silence(wanted: NewSilence, own: str, now: float) -> Silence:
    """Given what is asked for and an id, return the silence. Raise ValueError in plain words."""
    seconds = parse_duration(wanted.duration)
    if seconds <= 0:
        raise ValueError("a silence needs a duration, for example 2h")
    return Silence(
        id=own,
        matchers=matchers_of(known_matchers(wanted.matchers)),
        starts_at=now,
        ends_at=now + seconds,
        author=wanted.author[:LONGEST_TEXT],
        comment=wanted.comment[:LONGEST_TEXT],
    )


def send_samples(
    settings: Sequence[ReceiverSettings], receiver: str | None, rule: str | None, now: float
) -> tuple[Tried, ...]:
    """Given receivers, send a test message of this rule to one or each. Raise ValueError if one is not known.

    It goes out directly and not through the outbox: whoever tests wants the answer, not a promise.
    """
    known = [each.name for each in settings]
    if receiver is not None and receiver not in known:
        raise ValueError(f"there is no receiver {receiver!r}; there are {', '.join(known) or 'none'}")
    rule = (rule or SAMPLE_RULE).replace("_", "-")
    if rule not in CAUSES:
        raise ValueError(f"there is no rule {rule!r}; one is {SAMPLE_RULE}")
    return tuple(_try(each, rule, now) for each in settings if receiver in (None, each.name))


def _try(settings: ReceiverSettings, rule: str, now: float) -> Tried:
    parcel = sample_batch(settings.name, rule, CAUSES[rule], now)
    try:
        ok, answer = True, build(settings).deliver(parcel)
    except RequestError as error:
        ok, answer = False, str(error)
    return Tried(receiver=settings.name, kind=settings.kind, ok=ok, answer=answer)
