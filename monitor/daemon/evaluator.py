"""Evaluates the rules over the live cluster and persists their history across restarts.

An evaluation follows each change, and is due when time alone may change a result. It costs what has changed, not what
the cluster holds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from monitor.base.state_problems import StateProblem
from monitor.base.threads import spawn
from monitor.cluster.facts_feed import FactsFeed
from monitor.cluster.live import LiveCluster
from monitor.daemon.history_files import HistoryFiles
from monitor.daemon.pod_health import PodHealthTracker
from monitor.detect.base import CleanupDeletion, Limits, Rule, RuleContext
from monitor.detect.engine import Engine
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES, pod_pending
from monitor.facts.changes import Changes
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.prices import GpuPrices
from monitor.facts.services import ServiceFact
from monitor.probes.runner import ServiceProbes

log = logging.getLogger(__name__)
CHANGE_POLL_SECONDS = 0.1
MIN_PAUSE_SECONDS = 0.25  # changes that arrive together are evaluated together
AGE_REFRESH_SECONDS = 3.0  # after which findings are published although only their age has changed
SAVE_INTERVAL_SECONDS = 60.0
STARTUP_TIMEOUT_SECONDS = 15.0  # the first evaluation waits this long for Kubernetes, the agents and the probes
STOP_TIMEOUT_SECONDS = 1.0


@dataclass(frozen=True)
class EvaluatorSettings:
    """Rules, their limits, prices of GPUs, longest time between two evaluations, and directory of the history file."""

    state: str
    resource: str = "nvidia.com/gpu"
    limits: Mapping[str, Limits[Any]] = field(default_factory=dict)
    prices: GpuPrices | None = None
    rules: Sequence[Rule] = RULES
    interval: float = 5.0
    startup_timeout: float = STARTUP_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Evaluation:
    """Time and duration of an evaluation."""

    at: float
    seconds: float


FindingsListener = Callable[[tuple[Finding, ...]], None]


class FactsFollower(Protocol):
    """Follows the facts on the thread that evaluates them."""

    def follow(self, facts: ClusterFacts, changes: Changes, now: float, /) -> None: ...


class Evaluator:
    """Evaluates the rules between start() and stop().

    `findings` and `last` describe the latest evaluation; None before the first. `on_evaluated` is called after the
    findings are saved: a finding that is held only because it was there before would otherwise be lost in a crash,
    while its alert would not.
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        cluster: LiveCluster,
        probes: ServiceProbes,
        now: Callable[[], float] = time.time,
        on_evaluated: FindingsListener = lambda _: None,
        own_deletions: Callable[[], tuple[CleanupDeletion, ...]] = lambda: (),
        job_results: FactsFollower | None = None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._probes = probes
        self._now = now
        self._on_evaluated = on_evaluated
        self._own_deletions = own_deletions
        self._job_results = job_results
        self._files = HistoryFiles(settings.state)
        self._engine = self._new_engine(None)
        self._feed = FactsFeed(cluster.take_update, settings.resource)
        self._save_at = 0.0
        self._told_at = 0.0
        self._unpublished = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.pod_health = PodHealthTracker()
        self.findings: tuple[Finding, ...] | None = None
        self.last: Evaluation | None = None

    @property
    def state_problem(self) -> StateProblem | None:
        """Why the history file is not written; None if it is."""
        return self._files.problem

    def start(self) -> None:
        self._engine = self._new_engine(self._files.load())
        self._probes.start()
        self._thread = spawn("findings", self._run)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop evaluating and save the history. Wait up to `timeout` seconds for an evaluation in progress."""
        self._stopping.set()
        self._probes.stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def _new_engine(self, history: DetectionHistory | None) -> Engine:
        return Engine(self._settings.rules, self._settings.limits, history)

    def evaluate(self) -> tuple[Finding, ...]:
        """Evaluate what has changed since the last evaluation or is due."""
        began = time.monotonic()
        changes = self._feed.update()
        context = RuleContext(
            facts=self._feed.facts,
            now=self._now(),
            services=self._probes.facts(),
            own_deletions=self._own_deletions(),
            prices=self._settings.prices,
        )
        changed = self._engine.update(context, changes)
        if changed or self.findings is None or context.now - self._told_at >= AGE_REFRESH_SECONDS:
            findings, self._told_at = self._engine.findings(context.now), context.now
            self._log_changes(self.findings or (), findings)
            self.findings, self._unpublished = findings, True
        self.last = Evaluation(context.now, time.monotonic() - began)
        self.pod_health.follow(context.facts, changes, context.now, self._engine.cluster_memory(pod_pending.NAME))
        if self._job_results is not None:
            self._job_results.follow(context.facts, changes, context.now)
        return self.findings

    def services(self) -> tuple[ServiceFact, ...]:
        """Latest result of each service probe."""
        return self._probes.facts()

    def rules(self) -> tuple[str, ...]:
        """Names of the enabled rules."""
        limits = self._settings.limits
        return tuple(rule.rule for rule in self._settings.rules if rule.rule not in limits or limits[rule.rule].enabled)

    def _run(self) -> None:
        self._wait_for_facts()
        while not self._stopping.is_set():
            began, versions, before = time.monotonic(), self._versions(), self.findings
            findings = self._try_evaluate()
            if findings is not None and self._unpublished:
                self._publish(findings, before)
            self._pause(began + self._settings.interval, versions)
        if self.findings is not None:
            self._files.save(self._engine.history)

    def _try_evaluate(self) -> tuple[Finding, ...] | None:
        try:
            return self.evaluate()
        except Exception:  # one odd fact must not end the loop
            log.exception("evaluation failed")
            return None

    def _publish(self, findings: tuple[Finding, ...], before: tuple[Finding, ...] | None) -> None:
        """Save the history if it is due or findings came or went, then call the listener."""
        self._unpublished = False
        if time.monotonic() >= self._save_at:
            self._files.save(self._engine.history)
            self._save_at = time.monotonic() + SAVE_INTERVAL_SECONDS
        elif _keys(findings) != _keys(before):
            self._files.save_findings(self._engine.history)
        try:
            self._on_evaluated(findings)
        except Exception:  # a failing listener must not stop the evaluation
            log.exception("findings listener failed")

    def _wait_for_facts(self) -> None:
        """Wait until every source answered once: missing facts must not resolve findings from before the restart."""
        deadline = time.monotonic() + self._settings.startup_timeout
        while not self._cluster.answered_once() and time.monotonic() < deadline and not self._stopping.wait(0.05):
            pass
        self._probes.wait_first_round(0.0 if self._stopping.is_set() else deadline - time.monotonic())
        self._cluster.catch_up()

    def _pause(self, due: float, versions: tuple[object, ...]) -> None:
        """Return at `due`, when a result is due, on a change, or when stopping; a short pause collects changes."""
        earliest = time.monotonic() + MIN_PAUSE_SECONDS
        due = max(earliest, due)
        while (left := due - time.monotonic()) > 0 and not self._stopping.wait(min(left, CHANGE_POLL_SECONDS)):
            next_at = self._engine.next_at
            is_due = self._versions() != versions or (next_at is not None and next_at <= self._now())
            if is_due and time.monotonic() >= earliest:
                return

    def _versions(self) -> tuple[object, ...]:
        """Value that changes whenever a fact does."""
        return self._cluster.version, tuple((fact.name, fact.ok, fact.cause) for fact in self._probes.facts())

    def _log_changes(self, previous: tuple[Finding, ...], findings: tuple[Finding, ...]) -> None:
        before, now = ({finding.key: finding for finding in each} for each in (previous, findings))
        for key in now.keys() - before.keys():
            log.info("found %s: %s", key, now[key].cause)
        for key in before.keys() - now.keys():
            log.info("resolved %s: %s", key, before[key].cause)


def _keys(findings: tuple[Finding, ...] | None) -> set[str]:
    return {finding.key for finding in findings or ()}
