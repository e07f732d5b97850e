"""Probes the platform's services, each on its own threads, so that a service that hangs delays no other probe.

An attempt that exceeds its time limit is abandoned: client libraries limit the silence between two bytes, not the
whole, and nothing limits a name lookup. A service has at most a few abandoned attempts; until one of them ends, no new
one is started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from monitor.base.clock import Clock
from monitor.base.text import shorten
from monitor.base.threads import Periodic, spawn
from monitor.facts.services import ServiceFact

MAX_ABANDONED = 3
MAX_OVERRUN_SECONDS = 2.0  # an attempt that ends later than this after its limit means that this process stood still
MAX_DETAIL_CHARS = 500
MAX_CLOCK_DRIFT_SECONDS = 1.0  # small corrections of the clock leave `failing_since` unchanged


@dataclass(frozen=True)
class ServiceTarget:
    """A service, and when it is healthy. `status` are the accepted HTTP statuses; empty: any below 400."""

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
        """URL without the user and without the query, which may contain a token."""
        scheme, _, rest = self.url.partition("://")
        authority, slash, path = rest.partition("?")[0].partition("/")
        return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


class ProbeError(Exception):
    """A service is unhealthy. `cause` is one of those of ServiceFact, the message is what the service reported."""

    def __init__(self, cause: str, detail: str, *, status: int | None = None, component: str | None = None) -> None:
        super().__init__(detail)
        self.cause = cause
        self.status = status
        self.component = component


ProbeFunction = Callable[[ServiceTarget], None]  # returns if the service is healthy; raises ProbeError or anything


def run_probe(target: ServiceTarget) -> None:
    """Probe a service with the implementation of its kind. Raise ProbeError if it is unhealthy."""
    if target.kind == "postgresql":
        from monitor.probes.postgresql import probe  # here: an optional package
    elif target.kind == "tcp":
        from monitor.probes.tcp import probe
    else:
        from monitor.probes.http import probe  # here: without services no HTTP client is loaded
    probe(target)


class ServiceProbes:
    """Probes each service once per interval, between start() and stop()."""

    def __init__(self, targets: Iterable[ServiceTarget], probe: ProbeFunction = run_probe, clock: Clock = time) -> None:
        self._probes = tuple(_ServiceProbe(target, probe, clock) for target in targets)

    def start(self) -> None:
        for probe in self._probes:
            probe.start()

    def stop(self) -> None:
        """Start no further attempts, and abandon those in progress."""
        for probe in self._probes:
            probe.stop()

    def facts(self) -> tuple[ServiceFact, ...]:
        """Latest result of each service that has been probed."""
        return tuple(probe.fact for probe in self._probes if probe.fact is not None)

    def wait_first_round(self, seconds: float) -> None:
        """Wait until each service has been probed once, at most `seconds`."""
        deadline = time.monotonic() + seconds
        for probe in self._probes:
            probe.first.wait(max(0.0, deadline - time.monotonic()))


class _ProbeAttempt:
    """One attempt on its own thread, and its outcome once it has ended."""

    def __init__(self, target: ServiceTarget, probe: ProbeFunction) -> None:
        self._target = target
        self._probe = probe
        self.error: ProbeError | None = None
        self.ended = threading.Event()
        spawn(f"service-{target.name}", self._run)

    def _run(self) -> None:
        try:
            self._probe(self._target)
        except ProbeError as error:
            self.error = error
        except Exception as error:  # an unexpected reply is a result too
            self.error = ProbeError("error", f"{type(error).__name__}: {error}")
        finally:
            self.ended.set()


class _ServiceProbe:
    """Schedule and latest result of one service."""

    def __init__(self, target: ServiceTarget, probe: ProbeFunction, clock: Clock) -> None:
        self._target = target
        self._probe = probe
        self._clock = clock
        self._abandoned: list[_ProbeAttempt] = []
        self._failing_from: float | None = None  # of the monotonic clock
        self._loop = Periodic(f"services-{target.name}", self._run_once, target.interval)
        self.start = self._loop.start
        self.stop = self._loop.stop
        self.first = threading.Event()
        self.fact: ServiceFact | None = None

    def _run_once(self) -> float:
        began = self._clock.monotonic()
        self.fact = self._attempt(began) or self.fact
        if self.fact is not None:
            self.first.set()
        return max(0.0, began + self._target.interval - self._clock.monotonic())

    def _attempt(self, began: float) -> ServiceFact | None:
        """Result of one attempt; None if this process stood still during it."""
        self._abandoned = [attempt for attempt in self._abandoned if not attempt.ended.is_set()]
        late = ProbeError("timeout", f"no answer within {self._target.limit:g} s")
        if len(self._abandoned) >= MAX_ABANDONED:
            return self._result(late, began, None)
        attempt = _ProbeAttempt(self._target, self._probe)
        ended = attempt.ended.wait(self._target.limit)
        took = self._clock.monotonic() - began
        if not ended:
            self._abandoned.append(attempt)
        error = attempt.error if ended else late
        if error is not None and took > self._target.limit + MAX_OVERRUN_SECONDS:
            return None
        return self._result(error, began, took if ended else None)

    def _result(self, error: ProbeError | None, began: float, latency: float | None) -> ServiceFact:
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
            detail=shorten(str(error), MAX_DETAIL_CHARS) if error else None,
            component=shorten(error.component, MAX_DETAIL_CHARS) if error and error.component else None,
            status=error.status if error else None,
            latency_seconds=latency,
            failing_since=self._failing_since(),
        )

    def _failing_since(self) -> float | None:
        """Start of the failure by the wall clock as it is set now: setting the clock does not change its duration."""
        if self._failing_from is None:
            return None
        since = self._clock.time() - (self._clock.monotonic() - self._failing_from)
        before = self.fact.failing_since if self.fact else None
        return before if before is not None and abs(before - since) < MAX_CLOCK_DRIFT_SECONDS else since
