"""Probes of the platform's services, each on threads of its own: whatever one does, the others and we go on.

An attempt that is over its time limit is left behind: libraries know limits for silence, not for the whole, and a name
look-up knows none. A service has at most a few attempts left behind; while it has that many, no more are made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from monitor.base.clock import Clock
from monitor.facts.services import ServiceFact

MAX_ABANDONED = 3
MAX_OVERRUN_SECONDS = 2.0  # seconds by which an attempt that is broken off at its limit can only be late if we stood still
MAX_DETAIL_CHARS = 500
MAX_CLOCK_DRIFT_SECONDS = 1.0  # seconds: a clock that is kept right by little steps was not set


@dataclass(frozen=True)
class ServiceTarget:
    """A service, and when it counts as well. `status` are the HTTP answers that do; none: any below 400."""

    name: str
    kind: str  # http, tcp, postgresql, harbor, registry
    url: str
    interval: float = 15.0
    limit: float = 10.0
    status: tuple[int, ...] = ()
    contains: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True
    write: bool = True
    max_lag: float | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address as it may be shown: without user, and without a query, which may hold a token."""
        scheme, _, rest = self.url.partition("://")
        authority, slash, path = rest.partition("?")[0].partition("/")
        return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


class ProbeError(Exception):
    """A service is not well, for this cause: one of those of ServiceFact. The text is what it said."""

    def __init__(self, cause: str, detail: str, *, status: int | None = None, component: str | None = None) -> None:
        super().__init__(detail)
        self.cause = cause
        self.status = status
        self.component = component


ProbeFunction = Callable[[ServiceTarget], None]  # returns if the service is well. Raises ProbeError, or anything


def run_probe(target: ServiceTarget) -> None:
    """Given a service, return if it is well. Raise ProbeError."""
    if target.kind == "postgresql":
        from monitor.probes.postgresql import probe  # here: an optional package
    elif target.kind == "tcp":
        from monitor.probes.tcp import probe
    else:
        from monitor.probes.http import probe  # here: who has no services need not load a client
    probe(target)


class ServiceProbes:
    """Looks at each service once an interval, between start() and stop()."""

    def __init__(self, targets: Iterable[ServiceTarget], look: ProbeFunction = run_probe, clock: Clock = time) -> None:
        self._probes = tuple(_ServiceProbe(target, look, clock) for target in targets)

    def start(self) -> None:
        for probe in self._probes:
            probe.start()

    def stop(self) -> None:
        """Make no more attempts. Those under way are left behind."""
        for probe in self._probes:
            probe.stop()

    def facts(self) -> tuple[ServiceFact, ...]:
        """Return how each service fares that has been looked at."""
        return tuple(probe.fact for probe in self._probes if probe.fact is not None)

    def wait_first_round(self, seconds: float) -> None:
        """Return when each service has been looked at once, or after so long."""
        deadline = time.monotonic() + seconds
        for probe in self._probes:
            probe.first.wait(max(0.0, deadline - time.monotonic()))


class _ProbeAttempt:
    """One look at a service, on a thread of its own, and in time its outcome."""

    def __init__(self, target: ServiceTarget, look: ProbeFunction) -> None:
        self._target = target
        self._look = look
        self.error: ProbeError | None = None
        self.ended = threading.Event()
        threading.Thread(target=self._run, name=f"service-{target.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._look(self._target)
        except ProbeError as error:
            self.error = error
        except Exception as error:  # whatever an odd answer provokes is a fact about the service
            self.error = ProbeError("error", f"{type(error).__name__}: {error}")
        finally:
            self.ended.set()


class _ServiceProbe:
    """One service, its schedule, and what is known of it."""

    def __init__(self, target: ServiceTarget, look: ProbeFunction, clock: Clock) -> None:
        self._target = target
        self._look = look
        self._clock = clock
        self._left_behind: list[_ProbeAttempt] = []
        self._failing_from: float | None = None  # by the clock that nobody sets
        self._stopping = threading.Event()
        self.first = threading.Event()
        self.fact: ServiceFact | None = None

    def start(self) -> None:
        threading.Thread(target=self._keep_looking, name=f"services-{self._target.name}", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _keep_looking(self) -> None:
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            self.fact = self._round(began) or self.fact
            if self.fact is not None:
                self.first.set()
            self._stopping.wait(max(0.0, began + self._target.interval - self._clock.monotonic()))

    def _round(self, began: float) -> ServiceFact | None:
        """Make one attempt and return what is known after it; None if it was we who were stopped meanwhile."""
        self._left_behind = [attempt for attempt in self._left_behind if not attempt.ended.is_set()]
        late = ProbeError("timeout", f"no answer within {self._target.limit:g} s")
        if len(self._left_behind) >= MAX_ABANDONED:
            return self._make(late, began, None)
        attempt = _ProbeAttempt(self._target, self._look)
        ended = attempt.ended.wait(self._target.limit)
        took = self._clock.monotonic() - began
        if not ended:
            self._left_behind.append(attempt)
        error = attempt.error if ended else late
        if error is not None and took > self._target.limit + MAX_OVERRUN_SECONDS:
            return None
        return self._make(error, began, took if ended else None)

    def _make(self, error: ProbeError | None, began: float, latency: float | None) -> ServiceFact:
        if error is None:
            self._failing_from = None
        elif self._failing_from is None:
            self._failing_from = began
        return ServiceFact(
            name=self._target.name,
            kind=self._target.kind,
            target=self._target.shown,
            ok=error is None,
            at=self._clock.time(),
            cause=error.cause if error else None,
            detail=str(error)[:MAX_DETAIL_CHARS] if error else None,
            component=error.component if error else None,
            status=error.status if error else None,
            latency_seconds=latency,
            failing_since=self._failing_since(),
        )

    def _failing_since(self) -> float | None:
        """Return since when it fails, by the time of day as it is now: setting a clock does not change for how long."""
        if self._failing_from is None:
            return None
        since = self._clock.time() - (self._clock.monotonic() - self._failing_from)
        before = self.fact.failing_since if self.fact else None
        return before if before is not None and abs(before - since) < MAX_CLOCK_DRIFT_SECONDS else since
