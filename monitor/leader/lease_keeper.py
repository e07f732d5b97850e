"""Acquires and renews a Lease. A replica reports that it holds the Lease only while this is certain."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from monitor.base.threads import Periodic
from monitor.leader.lease import (
    Lease,
    LeaseClaim,
    LeaseStep,
    ObservedLease,
    decide_step,
    held_body,
    observe,
    released_body,
)
from monitor.leader.lease_api import LeaseConflictError, LeaseError

log = logging.getLogger(__name__)
NEVER = float("-inf")
RETRY_RATIO = 1 / 3  # of the renewal interval: pause after a failed request


def boot_clock() -> float:
    """Seconds of a clock that cannot be set and continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseStore(Protocol):
    """Storage of one Lease. Methods raise LeaseError; writes raise LeaseConflictError if the version has changed."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    def get(self) -> Lease | None: ...

    def create(self, body: Mapping[str, Any]) -> Lease: ...

    def replace(self, body: Mapping[str, Any]) -> Lease: ...


class LeaseKeeper:
    """Maintains the claim to one Lease between start() and stop(). Thread-safe."""

    def __init__(
        self,
        store: LeaseStore,
        claim: LeaseClaim,
        clock: Callable[[], float] = boot_clock,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._claim = claim
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()  # one request at a time: each builds on the result of the last one
        self._observed: ObservedLease | None = None
        self._lease: Lease | None = None  # as last read; may be outdated
        self._current = False  # whether no write has failed since the last read
        self._held_until = NEVER
        self._term = 0
        self._logged_held = False
        self._logged_error: str | None = None
        self.error: str | None = None
        self._loop = Periodic("lease", self._run_once, claim.renew_seconds)

    @property
    def identity(self) -> str:
        """Identity of this replica."""
        return self._claim.identity

    @property
    def lease_name(self) -> str:
        """The Lease as namespace/name."""
        return f"{self._store.namespace}/{self._store.name}"

    @property
    def holder(self) -> str | None:
        """Holder as last read; None if the Lease is free or its state is unknown."""
        return self._lease.holder if self._lease is not None else None

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the Lease as last read."""
        return self._lease.annotations if self._lease is not None else {}

    def holds(self) -> bool:
        """Whether this replica certainly holds the Lease now."""
        return self._clock() < self._held_until

    def term(self) -> int | None:
        """Number of the current term as holder; None while this replica does not hold the Lease."""
        term = self._term
        return term if self.holds() else None

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Stop and release the Lease, so that another replica can take over at once."""
        self._loop.stop(self._claim.renew_seconds)
        with self._lock:
            lease, self._held_until = self._lease, NEVER
            if lease is None or lease.holder != self.identity:
                return
            try:
                self._note(self._store.replace(released_body(lease)))
            except LeaseError as error:
                log.warning("cannot release the lease %s, so it has to expire: %s", self.lease_name, error)

    def step(self) -> float:
        """Take the next step about the Lease, and return the seconds until the one after it."""
        with self._lock:
            wait = self._try_step()
        self._log_transition()
        return wait

    def write(self, name: str, change: Callable[[str | None], str]) -> int:
        """Change an annotation while holding the Lease, and return the term. Raise LeaseError.

        After any failure the Lease counts as lost, because its content is unknown.
        """
        with self._lock:
            try:
                if self.holds() and not self._current:  # the reply to an earlier write was lost
                    self._read()
                lease = self._lease
                if lease is None or not self.holds():
                    raise LeaseError("this replica does not hold the lease")
                self._put(lease, {**lease.annotations, name: change(lease.annotations.get(name))})
            except LeaseError as error:
                self._held_until, self.error = NEVER, str(error)
                raise
            return self._term

    def _try_step(self) -> float:
        try:
            return self._step()
        except LeaseConflictError:
            self._held_until = NEVER  # read at once who holds it
            return 0.0
        except LeaseError as error:
            self.error = str(error)
            return self._claim.renew_seconds * RETRY_RATIO

    def _step(self) -> float:
        if not self._current or self.holder != self.identity:
            self._read()
        observed = self._observed or ObservedLease(None, self._clock())
        decision = decide_step(observed, self._claim, self._clock())
        if decision.step is LeaseStep.WAIT:
            self.error = None
            return decision.wait
        self._put(observed.lease, observed.lease.annotations if observed.lease is not None else {})
        return self._claim.renew_seconds

    def _read(self) -> None:
        self._note(self._store.get())
        if self.holder != self.identity:
            self._held_until = NEVER

    def _put(self, lease: Lease | None, annotations: Mapping[str, str]) -> None:
        """Acquire or renew the Lease. It counts as held from before the request was sent."""
        began = self._clock()
        body = held_body(lease, self._store.name, self._claim, self._now(), annotations)
        self._current = False
        self._note(self._store.create(body) if lease is None else self._store.replace(body))
        if not self.holds():
            self._term += 1
        self._held_until = began + self._claim.hold_seconds
        self.error = None

    def _note(self, lease: Lease | None) -> None:
        # The clock is read after the reply: the lease is unchanged since then at the latest.
        self._observed = observe(self._observed, lease, self._clock())
        self._lease, self._current = lease, True

    def _log_transition(self) -> None:
        holds = self.holds()
        if holds == self._logged_held:
            return
        self._logged_held = holds
        if holds:
            log.info("this replica holds the lease %s and acts, as %s", self.lease_name, self.identity)
        else:
            why = self.error or f"held by {self.holder or 'no replica'}"
            log.warning("this replica has lost the lease %s and stops acting: %s", self.lease_name, why)

    def _run_once(self) -> float:
        wait = self.step()
        if self.error is not None and self.error != self._logged_error:
            log.warning("lease %s: %s", self.lease_name, self.error)
        self._logged_error = self.error
        return wait
