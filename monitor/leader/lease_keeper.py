"""Gets a Lease and keeps it: one replica of several holds it at a time, and says so only while that is certain."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from monitor.leader.lease import Claim, Lease, Seen, Step, decide, given_back, held, look
from monitor.leader.lease_api import LeaseError, TakenError

log = logging.getLogger(__name__)
NEVER = float("-inf")
HASTE = 1 / 3  # of the time between two looks: after a failure it is tried again sooner


def boot_clock() -> float:
    """Return seconds of a clock that nobody sets, and that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leases(Protocol):
    """Where the Lease is kept. All raise LeaseError; what writes raises TakenError if it is not that version."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    def get(self) -> Lease | None: ...

    def create(self, body: Mapping[str, Any]) -> Lease: ...

    def replace(self, body: Mapping[str, Any]) -> Lease: ...


class LeaseKeeper:
    """Looks after one Lease between start() and stop(). For use from any thread."""

    def __init__(
        self,
        leases: Leases,
        claim: Claim,
        clock: Callable[[], float] = boot_clock,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._leases = leases
        self._claim = claim
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()  # one request at a time: each begins with what the last one left
        self._seen: Seen | None = None
        self._known: Lease | None = None  # as last seen, also while it is not known whether it still is so
        self._fresh = False  # whether nothing was written since, as far as we know
        self._until = NEVER
        self._term = 0
        self._led = False  # whether it was told that we hold it
        self.trouble: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    @property
    def identity(self) -> str:
        """Who we are."""
        return self._claim.identity

    @property
    def place(self) -> str:
        """Which Lease it is: namespace/name."""
        return f"{self._leases.namespace}/{self._leases.name}"

    @property
    def holder(self) -> str | None:
        """Who holds it, as last seen; None if nobody, or if that is not known."""
        return self._known.holder if self._known is not None else None

    @property
    def annotations(self) -> Mapping[str, str]:
        """What is written on it, as last seen."""
        return self._known.annotations if self._known is not None else {}

    def holds(self) -> bool:
        """Return whether it is ours at this moment, for certain."""
        return self._clock() < self._until

    def term(self) -> int | None:
        """Return the number of our present time as its holder; None while we do not hold it."""
        term = self._term
        return term if self.holds() else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End, and give the lease back, so that another replica need not wait."""
        self._stopping.set()
        self._thread.join(self._claim.look_every)
        with self._lock:
            lease, self._until = self._known, NEVER
            if lease is None or lease.holder != self.identity:
                return
            try:
                self._saw(self._leases.replace(given_back(lease)))
            except LeaseError as error:
                log.warning("the lease %s was not given back, it runs out: %s", self.place, error)

    def step(self) -> float:
        """Do what is due about the lease, and return for how many seconds nothing will be."""
        with self._lock:
            wait = self._tried()
        self._tell()
        return wait

    def write(self, name: str, change: Callable[[str | None], str]) -> int:
        """Write an annotation, given what it was, if the lease is ours; return our term. Raise LeaseError.

        After any failure the lease counts as lost: nobody knows what is written there now.
        """
        with self._lock:
            try:
                if self.holds() and not self._fresh:  # an answer was lost
                    self._look()
                lease = self._known
                if lease is None or not self.holds():
                    raise LeaseError("the lease is not ours")
                self._put(lease, {**lease.annotations, name: change(lease.annotations.get(name))})
            except LeaseError as error:
                self._until, self.trouble = NEVER, str(error)
                raise
            return self._term

    def _tried(self) -> float:
        try:
            return self._step()
        except TakenError:
            self._until = NEVER  # look who it is
            return 0.0
        except LeaseError as error:
            self.trouble = str(error)
            return self._claim.look_every * HASTE

    def _step(self) -> float:
        if not self._fresh or self.holder != self.identity:
            self._look()
        seen = self._seen or Seen(None, self._clock())
        decision = decide(seen, self._claim, self._clock())
        if decision.step is Step.WAIT:
            self.trouble = None
            return decision.wait
        self._put(seen.lease, seen.lease.annotations if seen.lease is not None else {})
        return self._claim.look_every

    def _look(self) -> None:
        self._saw(self._leases.get())
        if self.holder != self.identity:
            self._until = NEVER

    def _put(self, lease: Lease | None, annotations: Mapping[str, str]) -> None:
        """Make it ours, again or for the first time. It is so from before it was asked for."""
        began = self._clock()
        body = held(lease, self._leases.name, self._claim, self._now(), annotations)
        self._fresh = False
        written = self._leases.create(body) if lease is None else self._leases.replace(body)
        self._saw(written)
        if not self.holds():
            self._term += 1
        self._until = began + self._claim.holds_for
        self.trouble = None

    def _saw(self, found: Lease | None) -> None:
        # By the clock after the answer: what it says may be no older than that.
        self._seen = look(self._seen, found, self._clock())
        self._known, self._fresh = found, True

    def _tell(self) -> None:
        """Log what has changed."""
        holds = self.holds()
        if holds != self._led:
            self._led = holds
            if holds:
                log.info("this replica holds the lease %s and acts, as %s", self.place, self.identity)
            else:
                why = self.trouble or f"{self.holder or 'nobody'} holds it"
                log.warning("this replica has lost the lease %s and does nothing until it has it: %s", self.place, why)

    def _keep(self) -> None:
        said: str | None = None
        while not self._stopping.is_set():
            try:
                wait = self.step()
            except Exception:  # whatever is odd about one answer, the next may be good
                log.exception("looking after the lease %s", self.place)
                wait = self._claim.look_every
            if self.trouble is not None and self.trouble != said:
                log.warning("the lease %s: %s", self.place, self.trouble)
            said = self.trouble
            self._stopping.wait(wait)
