"""Whether this node reaches the registries it pulls from."""

from __future__ import annotations

import time

from monitor.agent.collectors import AbsentError
from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.probe import RegistryProbe, TlsContext
from monitor.agent.settings import RegistryTarget
from monitor.base.clock import Clock
from monitor.base.threads import map_parallel
from monitor.facts import ProbeFact

# A probe ends within its timeout, unless a name lookup does not return. Only such a probe is abandoned.
_GRACE_SECONDS = 0.25
_STALL_SECONDS = 2.0  # a probe that is later than this was delayed by this process, not by the registry


class ProbesCollector:
    """Probes all registries in parallel, so that a dead one does not delay the others."""

    name = "probes"

    def __init__(self, registries: tuple[RegistryTarget, ...], timeout: float, clock: Clock = time) -> None:
        self._probers = [_RegistryProber(target, timeout, clock) for target in registries]

    def collect(self) -> tuple[ProbeFact, ...]:
        """Last outcome for each registry. Raise AbsentError if none is configured."""
        if not self._probers:
            raise AbsentError("no registries are configured; list them under agent.registries")
        facts = map_parallel(_RegistryProber.probe, self._probers, len(self._probers), "probe")
        return tuple(fact for fact in facts if fact is not None)


class _RegistryProber:
    """Probes one registry, one attempt at a time."""

    def __init__(self, target: RegistryTarget, timeout: float, clock: Clock) -> None:
        self._fact: ProbeFact | None = None
        self._target = target
        self._timeout = timeout
        self._clock = clock
        self._tls = TlsContext(target)
        self._guard = HungCallGuard("probes", clock)
        self._attempt: RegistryProbe | None = None

    def probe(self) -> ProbeFact | None:
        """Outcome of a new attempt, or of the last one while it has not returned."""
        if self._attempt is None or not self._guard.hung():
            self._attempt = RegistryProbe(self._target, self._timeout, self._tls, self._clock)
        started = self._clock.monotonic()
        fact = self._run(self._attempt)
        if fact.ok or self._clock.monotonic() - started <= self._timeout + _STALL_SECONDS:
            self._fact = fact  # otherwise this process was suspended, which says nothing about the registry
        return self._fact

    def _run(self, attempt: RegistryProbe) -> ProbeFact:
        try:
            return self._guard.call("", attempt.run, self._timeout + _GRACE_SECONDS)
        except HungError:
            return attempt.failed("timeout", "no answer, and the attempt cannot be ended")
        except Exception as error:  # an error in one probe must not hide the others
            return attempt.failed("other", f"{type(error).__name__}: {error}")
