"""Runs the rules over the live cluster, again and again, and remembers what they found across restarts.

A look is due every few seconds, and soon after a pod, a node, an event or a service has changed. However large the
cluster, looking takes no more than a fifth of a core. Where looks are far apart for that, glances by the few rules that
are prompt come in between, so that what Kubernetes says is told within seconds there too; they are kept to as much.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.base.statefile import StateFile
from monitor.cluster.live import LiveCluster
from monitor.detect.base import CleanupDeletion, Limits, Rule, RuleContext
from monitor.detect.engine import History, detect
from monitor.detect.rules import RULES
from monitor.facts.findings import Finding
from monitor.facts.services import ServiceFact
from monitor.probes.runner import ServiceProbes
from monitor.queries.cluster import cluster_facts_of

log = logging.getLogger(__name__)
FILE = "findings.json"
CHANGE_POLL_SECONDS = 0.1  # how often it is looked whether something has changed
IDLE_FACTOR = 4.0  # a look is followed by at least so many times as long, without one, as it needed a core ...
MIN_PAUSE_SECONDS = 0.25  # ... and by at least this
MIN_PROMPT_PAUSE_SECONDS = 0.5  # the same between two glances
SAVE_INTERVAL_SECONDS = 15.0
STARTUP_TIMEOUT_SECONDS = 15.0  # the longest that the first look waits for Kubernetes, the agents and the probes


@dataclass(frozen=True)
class EvaluatorSettings:
    """What is looked for, how often, and where it is remembered."""

    state: str
    resource: str = "nvidia.com/gpu"
    limits: Mapping[str, Limits[Any]] = field(default_factory=dict)
    rules: Sequence[Rule] = RULES
    interval: float = 5.0
    startup_timeout: float = STARTUP_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Evaluation:
    """When it was looked, and how many seconds that took."""

    at: float
    seconds: float


FindingsListener = Callable[[tuple[Finding, ...]], None]


def history_file(directory: str) -> StateFile[History]:
    """Return the file in which the rules' memory outlives the process."""
    return StateFile(directory, FILE, History, "what was found before")


class Evaluator:
    """Looks between start() and stop(). `findings` are those of the last look, `last`; None before the first.

    `on_look` is told what each look has found, when that cannot be forgotten any more: a finding that is held only
    because it was there before would otherwise be gone after a crash, while an alert about it is not.
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        cluster: LiveCluster,
        probes: ServiceProbes,
        now: Callable[[], float] = time.time,
        on_look: FindingsListener = lambda _: None,
        own_deletions: Callable[[], tuple[CleanupDeletion, ...]] = lambda: (),
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._probes = probes
        self._now = now
        self._on_look = on_look
        self._own_deletions = own_deletions
        self._memory = history_file(settings.state)
        self._history = History()
        self._save_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="findings", daemon=True)
        self.findings: tuple[Finding, ...] | None = None
        self.last: Evaluation | None = None

    def start(self) -> None:
        self._history = self._memory.load()
        self._probes.start()
        self._thread.start()

    def stop(self) -> None:
        """End, and save what is remembered. A look that is under way is not waited for long."""
        self._stopping.set()
        self._probes.stop()
        self._thread.join(1.0)

    def look(self, glance: bool = False) -> tuple[Finding, ...]:
        """Look once, or only glance, and return what is found."""
        began = time.monotonic()
        situation = RuleContext(
            world=cluster_facts_of(self._cluster, self._settings.resource),
            now=self._now(),
            services=self._probes.facts(),
            own_deletions=self._own_deletions(),
        )
        found = detect(self._settings.rules, self._settings.limits, situation, self._history, glance)
        self._log(found.findings)
        self._history, self.findings = found.history, found.findings
        if not glance:
            self.last = Evaluation(situation.now, time.monotonic() - began)
        return found.findings

    def services(self) -> tuple[ServiceFact, ...]:
        """Return how each service fares that has been looked at."""
        return self._probes.facts()

    def rules(self) -> tuple[str, ...]:
        """Return the rules that are looked for."""
        limits = self._settings.limits
        return tuple(each.rule for each in self._settings.rules if each.rule not in limits or limits[each.rule].enabled)

    def _keep_looking(self) -> None:
        self._wait_for_facts()
        while not self._stopping.is_set():
            began, seen, before = time.monotonic(), self._versions(), self.findings
            worked = time.thread_time()  # and not for how long it took: others may have had the core meanwhile
            found = self._look_safely()
            worked = time.thread_time() - worked
            if found is not None:
                self._pass_on(found, before)
            earliest = time.monotonic() + max(MIN_PAUSE_SECONDS, IDLE_FACTOR * worked)
            # A glance tells what other rules found as still being so: only after they could be asked.
            self._rest(earliest, began + self._settings.interval, seen, glances=found is not None)
        if self.findings is not None:
            self._memory.save(self._history)

    def _glance(self) -> float:
        """Look by the prompt rules, tell what is new, and return when the next glance may be."""
        worked, before = time.thread_time(), self.findings
        found = self._look_safely(glance=True)
        if found is not None and found != before:
            self._pass_on(found, before)
        return time.monotonic() + max(MIN_PROMPT_PAUSE_SECONDS, IDLE_FACTOR * (time.thread_time() - worked))

    def _look_safely(self, glance: bool = False) -> tuple[Finding, ...] | None:
        try:
            return self.look(glance)
        except Exception:  # whatever one odd fact provokes, the next look may succeed
            log.exception("looking for findings")
            return None

    def _pass_on(self, found: tuple[Finding, ...], before: tuple[Finding, ...] | None) -> None:
        """Save what is found, then tell it."""
        if time.monotonic() >= self._save_at or _keys(found) != _keys(before):
            self._memory.save(self._history)
            self._save_at = time.monotonic() + SAVE_INTERVAL_SECONDS
        try:
            self._on_look(found)
        except Exception:  # whoever listens must not stop us from looking
            log.exception("a listener failed")

    def _wait_for_facts(self) -> None:
        """Return when everything was asked once: what was found before a restart is not over because nobody knows."""
        deadline = time.monotonic() + self._settings.startup_timeout
        while not self._cluster.answered_once() and time.monotonic() < deadline and not self._stopping.wait(0.05):
            pass
        self._probes.wait_first_round(0.0 if self._stopping.is_set() else deadline - time.monotonic())
        self._cluster.refresh()

    def _rest(self, earliest: float, due: float, seen: tuple[object, ...], glances: bool) -> None:
        """Return at `due`, or as soon after `earliest` as something has changed, or when it is time to stop.

        What changes before that is glanced at.
        """
        due, glanced, glance_at = max(due, earliest), seen, time.monotonic() + MIN_PAUSE_SECONDS if glances else math.inf
        while (left := due - time.monotonic()) > 0 and not self._stopping.wait(min(left, CHANGE_POLL_SECONDS)):
            now, versions = time.monotonic(), self._versions()
            if now >= earliest and versions != seen:
                return
            if now >= glance_at and versions != glanced:
                glanced, glance_at = versions, self._glance()

    def _versions(self) -> tuple[object, ...]:
        """Return what changes whenever a pod, a node or an event does, or a service fails or recovers."""
        kube = self._cluster.kube
        services = tuple((fact.name, fact.ok, fact.cause) for fact in self._probes.facts())
        return (kube.pods.version, kube.nodes.version, kube.events.version, services) if kube else services

    def _log(self, findings: tuple[Finding, ...]) -> None:
        """Log what is new and what is over."""
        before = {finding.key: finding for finding in self._history.findings}
        now = {finding.key: finding for finding in findings}
        for key in now.keys() - before.keys():
            log.info("found %s: %s", key, now[key].cause)
        for key in before.keys() - now.keys():
            log.info("over %s: %s", key, before[key].cause)


def _keys(findings: tuple[Finding, ...] | None) -> set[str]:
    return {finding.key for finding in findings or ()}
