"""Whether this node reaches the registries that it has to pull from."""

from __future__ import annotations

import threading
import time

from monitor.agent.collectors import AbsentError
from monitor.agent.guard import Guard, HungError
from monitor.agent.probe import Probe, TlsContext
from monitor.agent.settings import RegistryTarget
from monitor.base.clock import Clock
from monitor.facts import ProbeFact

# A probe ends by itself within its timeout, but for a name look-up that does not return. Only that is left behind.
_GRACE = 0.25
_PAUSE = 2.0  # seconds by which it can only be late if this process stood still


class ProbesCollector:
    """Probes all registries at once, so that a dead one costs the others nothing."""

    name = "probes"

    def __init__(self, registries: tuple[RegistryTarget, ...], timeout: float, clock: Clock = time) -> None:
        self._routes = [_Route(target, timeout, clock) for target in registries]

    def collect(self) -> tuple[ProbeFact, ...]:
        """Return how each registry answered. Raise AbsentError if none is configured."""
        if not self._routes:
            raise AbsentError("no registries are configured; list them under agent.registries")
        threads = [threading.Thread(target=route.probe, name="probe", daemon=True) for route in self._routes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return tuple(route.fact for route in self._routes if route.fact is not None)


class _Route:
    """The way to one registry, and what is under way on it."""

    def __init__(self, target: RegistryTarget, timeout: float, clock: Clock) -> None:
        self.fact: ProbeFact | None = None
        self._target = target
        self._timeout = timeout
        self._clock = clock
        self._tls = TlsContext(target)
        self._guard = Guard("probes", clock)
        self._attempt: Probe | None = None

    def probe(self) -> None:
        """Find out how the registry answers, or that the attempt of before has not come back yet."""
        if self._attempt is None or not self._guard.hung():
            self._attempt = Probe(self._target, self._timeout, self._tls, self._clock)
        began = self._clock.monotonic()
        fact = self._asked(self._attempt)
        if fact.ok or self._clock.monotonic() - began <= self._timeout + _PAUSE:
            self.fact = fact  # else it was we who were stopped, which is no word about the registry

    def _asked(self, attempt: Probe) -> ProbeFact:
        try:
            return self._guard.call("", attempt.run, self._timeout + _GRACE)
        except HungError:
            return attempt.failed("timeout", "no answer, and the attempt cannot be ended")
        except Exception as error:  # one that breaks the probe must not hide the others
            return attempt.failed("other", f"{type(error).__name__}: {error}")
