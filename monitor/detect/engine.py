"""Evaluates all rules: each only for the subjects that have changed or are due.

A rule evaluates one subject at a time. The engine determines which subjects have changed, which are due because time
has passed, and which cannot be observed; it keeps the memory of each, and links symptoms to their causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from monitor.detect.base import Limits, Rule, RuleContext, symptoms_of, with_limits
from monitor.detect.changes import changes_between
from monitor.detect.correlation import aged, explained
from monitor.detect.history import DetectionHistory
from monitor.detect.indexes import new_indexes
from monitor.detect.observation import Observation
from monitor.detect.rule_state import RULE_BROKEN, RuleState
from monitor.detect.subject_index import WHOLE_CLUSTER
from monitor.facts.changes import Changes, all_changes
from monitor.facts.findings import Finding

ADOPTION_SECONDS = 1800.0  # for which findings of an older version are held, unless they are found again
AGENTS = "agents"  # the source of all agents in the view
CLOCK_SLACK_SECONDS = 1.0  # a clock set back by more than this invalidates all timers


@dataclass(frozen=True)
class Detection:
    """Findings of one evaluation and the history for the next."""

    findings: tuple[Finding, ...]
    history: DetectionHistory = field(default_factory=DetectionHistory)


class Engine:
    """Evaluates rules incrementally. Used from one thread."""

    def __init__(
        self, rules: Sequence[Rule], limits: Mapping[str, Limits[Any]], history: DetectionHistory | None = None
    ) -> None:
        history = history or DetectionHistory()
        self._limits = {rule.rule: limits.get(rule.rule) or Limits(rule.limits()) for rule in rules}
        self._rules = [rule for rule in rules if self._limits[rule.rule].enabled]
        self._symptoms = {rule.rule: symptoms_of(rule, rules) for rule in rules}
        self._indexes = new_indexes()
        self._states = [
            RuleState(rule, self._indexes[rule.scope], history.units.get(rule.rule, {})) for rule in self._rules
        ]
        self._adopted, self._adopted_until = history.adopted, history.adopted_until
        if orphaned := self._orphaned(history):
            self._adopted, self._adopted_until = (*self._adopted, *orphaned), 0.0
        self._before: RuleContext | None = None
        self._sources: list[tuple[str, bool]] = []
        self._findings: tuple[Finding, ...] = ()

    def _orphaned(self, history: DetectionHistory) -> tuple[Finding, ...]:
        """Findings of no known subject: of an older version, or found after the memory was saved for the last time."""
        known = {finding.key for state in self._states for finding in state.findings} | {f.key for f in self._adopted}
        correlates = {rule.rule: rule.correlate is not None and bool(history.units) for rule in self._rules}
        orphaned = (f for f in history.findings if f.key not in known and f.cause != RULE_BROKEN)
        return tuple(structs.replace(f, held=True) for f in orphaned if correlates.get(f.rule) is False)

    @property
    def history(self) -> DetectionHistory:
        """Everything that the next start needs."""
        return DetectionHistory(
            units={state.rule.rule: state.units for state in self._states if state.units},
            findings=self._findings,
            adopted=self._adopted,
            adopted_until=self._adopted_until,
        )

    def cluster_memory(self, rule: str) -> Any:
        """Memory of a rule about the whole cluster; None without one, also if the rule is disabled."""
        units = next((state.units for state in self._states if state.rule.rule == rule), {})
        subjects = units[WHOLE_CLUSTER].subjects if WHOLE_CLUSTER in units else {}
        return next((state.memory for state in subjects.values()), None)

    @property
    def next_at(self) -> float | None:
        """When an evaluation is due even if nothing changes."""
        return min((at for state in self._states if (at := state.next_at) is not None), default=None)

    def evaluate(self, context: RuleContext, changes: Changes | None = None) -> tuple[Finding, ...]:
        """Findings now."""
        self.update(context, changes)
        return self.findings(context.now)

    def findings(self, now: float) -> tuple[Finding, ...]:
        """Findings of the last update, with their ages at this time."""
        return aged(self._findings, now)

    def update(self, context: RuleContext, changes: Changes | None = None) -> bool:
        """Evaluate what has changed or is due, and return whether there are other findings.

        `changes` are those of the facts since the last update; by default they are determined.
        """
        changes = self._changes(context, changes)
        seen = Observation(context)
        for index in self._indexes.values():
            index.update(changes, seen)
        different = [state.evaluate(changes, seen, self._rule_context(context, state.rule)) for state in self._states]
        changed = any(different) or self._before is None or bool(self._adopted)
        if changed:
            self._findings = explained(self._collect(context.now))
        self._before = context
        return changed

    def _rule_context(self, context: RuleContext, rule: Rule) -> RuleContext:
        return with_limits(context, self._limits[rule.rule], self._symptoms[rule.rule])

    def _changes(self, context: RuleContext, changes: Changes | None) -> Changes:
        """All changes since the last evaluation; everything if the clock was set back or a source came or went."""
        before, sources = self._before, _sources(context)
        known, self._sources = self._sources, sources
        if before is None or context.now < before.now - CLOCK_SLACK_SECONDS or sources != known:
            return all_changes(context.facts)
        changes = changes or changes_between(before.facts, context.facts)
        kinds = {"services"} if before.services != context.services else set()
        kinds |= {"deletions"} if before.own_deletions != context.own_deletions else set()
        return replace(changes, kinds=changes.kinds | kinds)

    def _collect(self, now: float) -> tuple[Finding, ...]:
        """Findings of all rules, sorted by key."""
        found = {finding.key: finding for state in self._states for finding in state.findings}
        if self._adopted:
            self._adopted_until = self._adopted_until or now + ADOPTION_SECONDS
            open_ = now < self._adopted_until
            self._adopted = tuple(finding for finding in self._adopted if open_ and finding.key not in found)
            found = {finding.key: finding for finding in self._adopted} | found
        return tuple(found[key] for key in sorted(found))


def detect(
    rules: Sequence[Rule], limits: Mapping[str, Limits[Any]], context: RuleContext, history: DetectionHistory
) -> Detection:
    """Findings of a new engine that continues a history: every subject is evaluated."""
    engine = Engine(rules, limits, history)
    return Detection(engine.evaluate(context), engine.history)


def _sources(context: RuleContext) -> list[tuple[str, bool]]:
    """Which Kubernetes resources can be observed; each agent is observed by itself."""
    return [(source.name, source.ok) for source in context.facts.sources if source.name != AGENTS]
