"""Evaluates the rules over the live cluster and persists their history across restarts.

An evaluation is due every few seconds, and soon after a pod, node, event or service changes. Evaluation takes at most a
fifth of a core on a cluster of any size. Where that spaces evaluations far apart, the few rules marked prompt are
evaluated in between, within the same CPU limit, so that what Kubernetes reports is notified within seconds.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.base.state_problems import StateProblem
from monitor.base.statefile import StateFile
from monitor.base.threads import spawn
from monitor.cluster.live import LiveCluster
from monitor.detect.base import CleanupDeletion, Limits, Rule, RuleContext
from monitor.detect.engine import DetectionHistory, detect
from monitor.detect.rules import RULES
from monitor.facts.findings import Finding
from monitor.facts.services import ServiceFact
from monitor.probes.runner import ServiceProbes
from monitor.queries.cluster import cluster_facts_of

log = logging.getLogger(__name__)
FILE = "findings.json"
CHANGE_POLL_SECONDS = 0.1
IDLE_FACTOR = 4.0  # idle for at least 4x the CPU time of the last evaluation, capping evaluation at 20 % of a core
MIN_PAUSE_SECONDS = 0.25
MIN_PROMPT_PAUSE_SECONDS = 0.5
SAVE_INTERVAL_SECONDS = 15.0
STARTUP_TIMEOUT_SECONDS = 15.0  # the first evaluation waits this long for Kubernetes, the agents and the probes
STOP_TIMEOUT_SECONDS = 1.0


@dataclass(frozen=True)
class EvaluatorSettings:
    """Rules and their limits, evaluation interval, and directory of the history file."""

    state: str
    resource: str = "nvidia.com/gpu"
    limits: Mapping[str, Limits[Any]] = field(default_factory=dict)
    rules: Sequence[Rule] = RULES
    interval: float = 5.0
    startup_timeout: float = STARTUP_TIMEOUT_SECONDS


@dataclass(frozen=True)
class Evaluation:
    """Time and duration of a full evaluation."""

    at: float
    seconds: float


FindingsListener = Callable[[tuple[Finding, ...]], None]


def history_file(directory: str) -> StateFile[DetectionHistory]:
    """File that persists the history of the rules."""
    return StateFile(directory, FILE, DetectionHistory, "the finding history")


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
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._probes = probes
        self._now = now
        self._on_evaluated = on_evaluated
        self._own_deletions = own_deletions
        self._history_file = history_file(settings.state)
        self._history = DetectionHistory()
        self._save_at = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.findings: tuple[Finding, ...] | None = None
        self.last: Evaluation | None = None

    @property
    def state_problem(self) -> StateProblem | None:
        """Why the history file is not written; None if it is."""
        return self._history_file.problem

    def start(self) -> None:
        self._history = self._history_file.load()
        self._probes.start()
        self._thread = spawn("findings", self._run)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop evaluating and save the history. Wait up to `timeout` seconds for an evaluation in progress."""
        self._stopping.set()
        self._probes.stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def evaluate(self, prompt_only: bool = False) -> tuple[Finding, ...]:
        """Evaluate all rules, or only the prompt ones, once."""
        began = time.monotonic()
        context = RuleContext(
            facts=cluster_facts_of(self._cluster, self._settings.resource),
            now=self._now(),
            services=self._probes.facts(),
            own_deletions=self._own_deletions(),
        )
        result = detect(self._settings.rules, self._settings.limits, context, self._history, prompt_only)
        self._log_changes(result.findings)
        self._history, self.findings = result.history, result.findings
        if not prompt_only:
            self.last = Evaluation(context.now, time.monotonic() - began)
        return result.findings

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
            cpu_began = time.thread_time()  # not elapsed time: other threads may have had the core meanwhile
            findings = self._try_evaluate()
            cpu_seconds = time.thread_time() - cpu_began
            if findings is not None:
                self._publish(findings, before)
            earliest = time.monotonic() + max(MIN_PAUSE_SECONDS, IDLE_FACTOR * cpu_seconds)
            # Prompt evaluations repeat the findings of the other rules: only after those could be evaluated.
            self._pause(earliest, began + self._settings.interval, versions, prompt=findings is not None)
        if self.findings is not None:
            self._history_file.save(self._history)

    def _evaluate_prompt_rules(self) -> float:
        """Evaluate the prompt rules, publish changed findings, and return when to do so again at the earliest."""
        cpu_began, before = time.thread_time(), self.findings
        findings = self._try_evaluate(prompt_only=True)
        if findings is not None and findings != before:
            self._publish(findings, before)
        return time.monotonic() + max(MIN_PROMPT_PAUSE_SECONDS, IDLE_FACTOR * (time.thread_time() - cpu_began))

    def _try_evaluate(self, prompt_only: bool = False) -> tuple[Finding, ...] | None:
        try:
            return self.evaluate(prompt_only)
        except Exception:  # one odd fact must not end the loop
            log.exception("evaluation failed")
            return None

    def _publish(self, findings: tuple[Finding, ...], before: tuple[Finding, ...] | None) -> None:
        """Save the history if it is due or findings came or went, then call the listener."""
        if time.monotonic() >= self._save_at or _keys(findings) != _keys(before):
            self._history_file.save(self._history)
            self._save_at = time.monotonic() + SAVE_INTERVAL_SECONDS
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
        self._cluster.refresh()

    def _pause(self, earliest: float, due: float, versions: tuple[object, ...], prompt: bool) -> None:
        """Return at `due`, on a change after `earliest`, or when stopping.

        Earlier changes trigger evaluations of the prompt rules, if `prompt`.
        """
        due, prompt_versions = max(due, earliest), versions
        prompt_at = time.monotonic() + MIN_PAUSE_SECONDS if prompt else math.inf
        while (left := due - time.monotonic()) > 0 and not self._stopping.wait(min(left, CHANGE_POLL_SECONDS)):
            now, current = time.monotonic(), self._versions()
            if now >= earliest and current != versions:
                return
            if now >= prompt_at and current != prompt_versions:
                prompt_versions, prompt_at = current, self._evaluate_prompt_rules()

    def _versions(self) -> tuple[object, ...]:
        """Value that changes whenever a pod, node or event changes, or a service fails or recovers."""
        kube = self._cluster.kube
        services = tuple((fact.name, fact.ok, fact.cause) for fact in self._probes.facts())
        return (kube.pods.version, kube.nodes.version, kube.events.version, services) if kube else services

    def _log_changes(self, findings: tuple[Finding, ...]) -> None:
        before = {finding.key: finding for finding in self._history.findings}
        now = {finding.key: finding for finding in findings}
        for key in now.keys() - before.keys():
            log.info("found %s: %s", key, now[key].cause)
        for key in before.keys() - now.keys():
            log.info("resolved %s: %s", key, before[key].cause)


def _keys(findings: tuple[Finding, ...] | None) -> set[str]:
    return {finding.key for finding in findings or ()}
