"""Sends the outbox: one worker per receiver, so that a slow receiver does not delay the others.

A receiver that fails is itself a finding, which the other receivers get: see `receiver_findings`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from monitor.alert.delivery.backoff import ReceiverHealth, retry_delay
from monitor.alert.delivery.outbox import Outbox
from monitor.alert.delivery.schedule import OpenBatch, next_send
from monitor.alert.delivery.stats import DeliveryCounters, DeliveryStats
from monitor.alert.model import Batch, Notification, NotificationSubject
from monitor.alert.receivers.base import DeliveryError, Receiver
from monitor.alert.store import AlertStore
from monitor.base.http import RequestError
from monitor.base.threads import Periodic
from monitor.detect.meta.receivers import ReceiverStatus, receiver_findings
from monitor.facts.findings import Finding

log = logging.getLogger(__name__)

MAX_SLEEP_SECONDS = 5.0  # before the clock is read again: it may have been set
MIN_SLEEP_SECONDS = 0.001
ERROR_PAUSE_SECONDS = 1.0
STOP_TIMEOUT_SECONDS = 3.0  # for deliveries in progress

StillFiring = Callable[[str], Sequence[NotificationSubject]]


@runtime_checkable
class Resending(Protocol):
    """A receiver that forgets firing alerts unless they are sent periodically, as Alertmanager does."""

    @property
    def resend_every(self) -> float: ...

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        """Send firing alerts again. Raise DeliveryError."""
        ...


class Sender:
    """Delivers notifications between start() and stop()."""

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
        self._workers = {
            name: ReceiverWorker(self._outbox, receiver, now, jitter) for name, receiver in self._receivers.items()
        }

    def start(self, still_firing: StillFiring = lambda _: ()) -> None:
        """Start sending; `still_firing` returns the alerts that a receiver was notified about and that still fire."""
        self._outbox.begin(self._receivers.keys(), self._now())
        for worker in self._workers.values():
            worker.start(still_firing)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop, and wait up to `timeout` seconds for deliveries in progress: otherwise they are repeated."""
        for worker in self._workers.values():
            worker.stop(0.0)
        deadline = time.monotonic() + timeout
        for worker in self._workers.values():
            worker.stop(max(0.0, deadline - time.monotonic()))

    def wake(self, receivers: Iterable[str]) -> None:
        """Announce new notifications for these receivers."""
        for name in receivers:
            if name in self._workers:
                self._workers[name].wake()

    def receiver_findings(self) -> tuple[Finding, ...]:
        """Findings about receivers that refused a batch or have been failing for long."""
        known = (health for health in self._outbox.health() if health.receiver in self._receivers)
        return receiver_findings(map(self._status, known), self._now())

    def delivery_stats(self) -> tuple[DeliveryStats, ...]:
        """Delivery statistics of each receiver."""
        counts = self._outbox.counts()
        failing_since = {health.receiver: health.failing_since for health in self._outbox.health()}
        return tuple(
            DeliveryStats(
                receiver=name,
                waiting=counts.get((name, "waiting"), 0),
                parked=counts.get((name, "parked"), 0),
                outcomes=dict(worker.counters.outcomes),
                took=worker.counters.took,
                failing_since=failing_since.get(name),
            )
            for name, worker in self._workers.items()
        )

    def _status(self, health: ReceiverHealth) -> ReceiverStatus:
        return ReceiverStatus(
            receiver=health.receiver,
            kind=self._receivers[health.receiver].kind,
            error=health.error,
            failing_since=health.failing_since,
            unsent=self._outbox.unsent(health.receiver) if health.failing_since is not None else 0,
            parked=health.parked,
            parked_at=health.parked_at,
        )


class ReceiverWorker:
    """Sends to one receiver, one batch after the other."""

    def __init__(
        self, outbox: Outbox, receiver: Receiver, now: Callable[[], float], jitter: Callable[[], float]
    ) -> None:
        self._outbox = outbox
        self._receiver = receiver
        self._now = now
        self._jitter = jitter
        self._still_firing: StillFiring = lambda _: ()
        self._resend_at = 0.0  # monotonic
        self.counters = DeliveryCounters()
        self._loop = Periodic(f"sender-{receiver.name}", self._work, threading.TIMEOUT_MAX)  # sleeps until wake()

    def start(self, still_firing: StillFiring) -> None:
        self._still_firing = still_firing
        self._loop.start()

    def stop(self, timeout: float) -> None:
        self._loop.stop(timeout)

    def wake(self) -> None:
        self._loop.wake()

    def _work(self) -> float | None:
        try:
            return self._step()
        except Exception:  # the next attempt may succeed, whatever is wrong with the database or a message
            if not self._loop.stopping:  # else the database was closed before a slow receiver answered
                log.exception("cannot send to receiver %s", self._receiver.name)
            return ERROR_PAUSE_SECONDS

    def _step(self) -> float | None:
        """Do what is due. Return the seconds until the next step; None: until wake()."""
        until_resend = self._resend()
        now, name = self._now(), self._receiver.name
        queue = self._outbox.queue(name, self._receiver.pace.window, now)
        following = next_send(queue, self._receiver.pace, self._capacity, now)
        if following.retry is not None:
            self._outbox.retry(following.retry, now)
            self._deliver(following.retry, queue.health)
            return 0.0
        if following.new:
            batch = self._outbox.claim(name, [entry.sequence for entry in following.new], now)
            self._deliver(batch, queue.health)
            return 0.0
        until_check = None
        if following.check_at is not None:
            until_check = max(MIN_SLEEP_SECONDS, min(following.check_at - now, MAX_SLEEP_SECONDS))
        return min((seconds for seconds in (until_check, until_resend) if seconds is not None), default=None)

    def _deliver(self, batch: OpenBatch, health: ReceiverHealth) -> None:
        """Send a batch and record the outcome."""
        attempt = Batch(id=batch.id, receiver=batch.receiver, notifications=batch.notifications, at=self._now())
        try:
            answer = self._receiver.deliver(attempt)
        except RequestError as error:
            self._record_failure(batch, health, error)
        except Exception as error:  # a bug in a receiver; its text may contain a URL with a key
            unexpected = DeliveryError(f"unexpected {type(error).__name__}", retryable=True)
            self._record_failure(batch, health, unexpected)
        else:
            if health.failures:
                log.info("receiver %s accepts messages again", batch.receiver)
            self.counters.sent(batch.notifications, self._now())
            self._outbox.sent(batch, answer, self._now())

    def _record_failure(self, batch: OpenBatch, health: ReceiverHealth, error: RequestError) -> None:
        if not error.retryable:
            log.error("receiver %s refused a message permanently, it is parked: %s", batch.receiver, error)
            self.counters.parked()
            self._outbox.parked(batch, str(error), self._now())
            return
        self.counters.failed()
        wait = retry_delay(batch.failures + 1, self._jitter(), error.after)
        rest = retry_delay(health.failures + 1, self._jitter(), error.after)
        level = logging.DEBUG if health.failures else logging.WARNING
        log.log(level, "receiver %s did not accept a message, will retry: %s", batch.receiver, error)
        self._outbox.failed(batch, str(error), wait, rest, self._now())

    def _capacity(self, notifications: Sequence[Notification]) -> int:
        try:
            return self._receiver.capacity(notifications)
        except Exception as error:  # then each is sent on its own
            log.error("receiver %s cannot compute its capacity: %s", self._receiver.name, type(error).__name__)
            return 1

    def _resend(self) -> float | None:
        """Send firing alerts again if due. Return the seconds until the next time; None if the receiver needs none.

        Runs between two batches, so that a resolved alert is never resent after its resolution was sent.
        """
        receiver = self._receiver
        if not isinstance(receiver, Resending):
            return None
        left = self._resend_at - time.monotonic()
        if left > 0:
            return left
        self._resend_at = time.monotonic() + receiver.resend_every
        firing = self._still_firing(receiver.name)
        if firing:
            try:
                receiver.resend(firing, self._now())
            except Exception as error:  # the next time is soon
                text = str(error) if isinstance(error, RequestError) else f"unexpected {type(error).__name__}"
                log.warning("cannot resend firing alerts to receiver %s: %s", receiver.name, text)
        return receiver.resend_every
