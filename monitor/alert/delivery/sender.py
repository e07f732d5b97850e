"""Sends what is in the outbox: one thread for each receiver, so that a slow one holds up nobody else.

A receiver that cannot be reached is itself something to be told about, by another one: see `troubles`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from monitor.alert.delivery.backoff import ReceiverHealth, is_outage, retry_delay
from monitor.alert.delivery.outbox import Outbox
from monitor.alert.delivery.schedule import OpenBatch, next_send
from monitor.alert.delivery.stats import DeliveryCounters, DeliveryStats
from monitor.alert.model import Batch, Notification, NotificationSubject
from monitor.alert.receivers.base import DeliveryError, Receiver
from monitor.alert.store import AlertStore
from monitor.base.http import RequestError
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

log = logging.getLogger(__name__)

RULE = "receiver-failing"
MAX_SLEEP_SECONDS = 5.0  # the longest that nobody looks at the clock: it may have been set
MIN_SLEEP_SECONDS = 0.001
ERROR_PAUSE_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 3.0  # for how long what is under way is waited for at the end
REPORT_PARKED_SECONDS = 900.0  # a parked parcel is reported for so long, and until the receiver takes another

StillFiring = Callable[[str], Sequence[NotificationSubject]]


@runtime_checkable
class Resending(Protocol):
    """A receiver that forgets what fires unless it is told again and again, as Alertmanager does."""

    @property
    def resend_every(self) -> float: ...

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        """Tell again what fires. Raise DeliveryError."""
        ...


class Sender:
    """Sends between start() and stop()."""

    def __init__(
        self,
        store: AlertStore,
        receivers: Iterable[Receiver],
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = store.outbox
        self._now = now
        self._receivers = {receiver.name: receiver for receiver in receivers}
        self._mailers = {
            name: ReceiverWorker(self._outbox, each, now, jitter) for name, each in self._receivers.items()
        }

    def start(self, still_firing: StillFiring = lambda _: ()) -> None:
        """Begin. Given a receiver, `still_firing` returns what it was told of and still fires."""
        self._outbox.begin(self._receivers.keys(), self._now())
        for mailer in self._mailers.values():
            mailer.start(still_firing)

    def stop(self) -> None:
        """End. What is under way is waited for, but not for long: it would be sent again, with the same id."""
        for mailer in self._mailers.values():
            mailer.stop()
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        for mailer in self._mailers.values():
            mailer.join(max(0.0, deadline - time.monotonic()))

    def wake(self, receivers: Iterable[str]) -> None:
        """Say that there is something new for these."""
        for name in receivers:
            if name in self._mailers:
                self._mailers[name].wake()

    def troubles(self) -> tuple[Finding, ...]:
        """Return a finding for each receiver that refused something for good or fails for long."""
        now = self._now()
        found = [self._trouble(health, now) for health in self._outbox.health() if health.receiver in self._receivers]
        return tuple(finding for finding in found if finding is not None)

    def delivery_stats(self) -> tuple[DeliveryStats, ...]:
        """Return what becomes of messages, for each receiver."""
        counts, health = self._outbox.counts(), {each.receiver: each for each in self._outbox.health()}
        return tuple(
            DeliveryStats(
                receiver=name,
                waiting=counts.get((name, "waiting"), 0),
                parked=counts.get((name, "parked"), 0),
                outcomes=dict(mailer.tally.outcomes),
                took=mailer.tally.took,
                failing_since=health[name].failing_since if name in health else None,
            )
            for name, mailer in self._mailers.items()
        )

    def _trouble(self, health: ReceiverHealth, now: float) -> Finding | None:
        since = health.parked_at
        if since is not None and (health.parked > 0 or now - since < REPORT_PARKED_SECONDS):
            return self._finding(health, "parked", Severity.CRITICAL, since, max(1, health.parked), now)
        since = health.failing_since
        if since is not None and is_outage(since, now):
            unsent = self._outbox.unsent(health.receiver)
            return self._finding(health, "retrying", Severity.WARNING, since, unsent, now)
        return None

    def _finding(
        self, health: ReceiverHealth, cause: str, severity: Severity, since: float, count: int, now: float
    ) -> Finding:
        name = health.receiver
        values: dict[str, str | int | float] = {
            "receiver": name,
            "kind": self._receivers[name].kind,
            "error": health.error or "",
            "count": count,
            "seconds": max(0.0, now - since),
        }
        return Finding(
            rule=RULE,
            severity=severity,
            cause=cause,
            labels={"service": f"receiver/{name}"},
            headline=Text(key=f"{RULE}.{cause}", values=values),
            advice=(Text(key=f"{RULE}.advice", values=values),),
            since=since,
        )


class ReceiverWorker:
    """Sends to one receiver, one parcel after the other."""

    def __init__(
        self, outbox: Outbox, receiver: Receiver, now: Callable[[], float], jitter: Callable[[], float]
    ) -> None:
        self._outbox = outbox
        self._receiver = receiver
        self._now = now
        self._jitter = jitter
        self._still_firing: StillFiring = lambda _: ()
        self._remind_at = 0.0  # of the monotonic clock
        self.tally = DeliveryCounters()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"post {receiver.name}", daemon=True)

    def start(self, still_firing: StillFiring) -> None:
        self._still_firing = still_firing
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._news.set()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def wake(self) -> None:
        self._news.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            try:
                rest = self._step()
            except Exception:  # whatever is wrong with the file or a message, the next attempt may succeed
                if self._stopping.is_set():  # the file was closed before a slow receiver had answered
                    return
                log.exception("sending to receiver %s", self._receiver.name)
                rest = ERROR_PAUSE_SECONDS
            self._news.wait(rest)

    def _step(self) -> float | None:
        """Do what is due, and return for how many seconds nothing will be; None until there is news."""
        reminder = self._remind()
        now, name = self._now(), self._receiver.name
        queue = self._outbox.queue(name, self._receiver.pace.window, now)
        turn = next_send(queue, self._receiver.pace, self._holds, now)
        if turn.again is not None:
            self._outbox.retry(turn.again, now)
            self._deliver(turn.again, queue.health)
            return 0.0
        if turn.fresh:
            parcel = self._outbox.claim(name, [each.place for each in turn.fresh], now)
            self._deliver(parcel, queue.health)
            return 0.0
        later = None if turn.look_at is None else max(MIN_SLEEP_SECONDS, min(turn.look_at - now, MAX_SLEEP_SECONDS))
        return min((each for each in (later, reminder) if each is not None), default=None)

    def _deliver(self, parcel: OpenBatch, health: ReceiverHealth) -> None:
        """Send a parcel, and note what became of it."""
        sending = Batch(
            id=parcel.id, receiver=parcel.receiver, notifications=parcel.notifications, at=self._now()
        )  # fmt: skip
        try:
            answer = self._receiver.deliver(sending)
        except RequestError as error:
            self._note_failure(parcel, health, error)
        except Exception as error:  # a mistake in a receiver must not stop it; its text may hold an address with a key
            odd = DeliveryError(f"unexpected {type(error).__name__}", retryable=True)
            self._note_failure(parcel, health, odd)
        else:
            if health.failures:
                log.info("receiver %s takes messages again", parcel.receiver)
            self.tally.sent(parcel.notifications, self._now())
            self._outbox.sent(parcel, answer, self._now())

    def _note_failure(self, parcel: OpenBatch, health: ReceiverHealth, error: RequestError) -> None:
        if not error.retryable:
            log.error("receiver %s refused a message for good, it is parked: %s", parcel.receiver, error)
            self.tally.parked()
            self._outbox.parked(parcel, str(error), self._now())
            return
        self.tally.failed()
        wait = retry_delay(parcel.failures + 1, self._jitter(), error.after)
        rest = retry_delay(health.failures + 1, self._jitter(), error.after)
        level = logging.DEBUG if health.failures else logging.WARNING
        log.log(level, "receiver %s did not take a message, it is tried again: %s", parcel.receiver, error)
        self._outbox.failed(parcel, str(error), wait, rest, self._now())

    def _holds(self, notifications: Sequence[Notification]) -> int:
        try:
            return self._receiver.holds(notifications)
        except Exception as error:  # then each goes by itself
            log.error("receiver %s cannot say how much it holds: %s", self._receiver.name, type(error).__name__)
            return 1

    def _remind(self) -> float | None:
        """Tell again what fires if that is due, and return for how long it is not; None if nobody has to be reminded.

        Here, between two parcels: what is over is told as such after this, and never before.
        """
        receiver = self._receiver
        if not isinstance(receiver, Resending):
            return None
        left = self._remind_at - time.monotonic()
        if left > 0:
            return left
        self._remind_at = time.monotonic() + receiver.resend_every
        firing = self._still_firing(receiver.name)
        if firing:
            try:
                receiver.resend(firing, self._now())
            except Exception as error:  # the next time is soon
                text = str(error) if isinstance(error, RequestError) else f"unexpected {type(error).__name__}"
                log.warning("receiver %s could not be told what still fires: %s", receiver.name, text)
        return receiver.resend_every
