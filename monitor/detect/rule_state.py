"""Evaluates one rule: which of its subjects are due, what to remember of them, and when to look again."""

from __future__ import annotations

import heapq
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from monitor.detect.base import UNKNOWN, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.bounds import bounded_findings, limited_per_node
from monitor.detect.history import SubjectState, UnitState
from monitor.detect.lib.scopes import ScopeIndex
from monitor.detect.observation import Observation
from monitor.detect.subject_index import SubjectIndex
from monitor.facts.changes import GPU_STATES, Changes
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

log = logging.getLogger(__name__)
RULE_BROKEN = "rule-broken"
_NO_STATE = SubjectState()
_NO_UNIT = UnitState()
_SHARED_BY_PODS = frozenset(("pod_groups", "workloads"))  # which determine the queue of a pod
MAX_OUTDATED_TIMERS = 100


class RuleState:
    """A rule with the state of its subjects. Units without memory and findings are not kept."""

    def __init__(self, rule: Rule, index: SubjectIndex, units: Mapping[str, UnitState]) -> None:
        self.rule = rule
        self.units = dict(units)
        self._index = index
        self._parts = _evaluated_for(rule)
        self._refines: Set[str] = frozenset(rule.refines)
        self._shared = _SHARED_BY_PODS if rule.scope is SubjectKind.POD else frozenset[str]()
        self._due_at: dict[str, float] = {}
        self._timers: list[tuple[float, str]] = []
        self._broken: dict[str, Exception] = {}
        self._unlisted: defaultdict[str, set[str]] = defaultdict(set)  # held units without subjects, by hidden node
        self._found = {unit: found for unit, state in units.items() if (found := tuple(state.findings()))}
        self._changed = False  # whether a unit has other findings since the last collection
        self.findings: tuple[Finding, ...] = tuple(self._unique())

    @property
    def next_at(self) -> float | None:
        """When time alone may change a result."""
        while self._timers and self._due_at.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def evaluate(self, changes: Changes, seen: Observation, context: RuleContext) -> bool:
        """Evaluate the units that have changed or are due. Return whether findings may differ."""
        units = {*self._index.changed(changes, self._parts), *self._due(context.now)}
        units |= {unit for node in changes.nodes for unit in self._unlisted.pop(node, ())}
        if changes.complete or self._shared & changes.kinds:
            units |= self.units.keys()
        elif self._refines:
            refined = self._index.changed(changes, self._refines)
            units |= {unit for unit in refined if unit in self.units}
        was_broken = bool(self._broken)
        for unit in sorted(units):
            self._evaluate_unit(unit, seen, context)
        correlates = self.rule.correlate is not None and bool(units) and bool(self._found or self.findings)
        if not (self._changed or changes.complete or was_broken or self._broken or correlates):
            return False
        self._changed = False
        found = tuple(limited_per_node(self.rule.rule, list(self._correlated(context))))
        different, self.findings = found != self.findings, found
        return different

    def _due(self, now: float) -> Iterator[str]:
        while (at := self.next_at) is not None and at <= now:
            unit = heapq.heappop(self._timers)[1]
            del self._due_at[unit]
            yield unit

    def _evaluate_unit(self, unit: str, seen: Observation, context: RuleContext) -> None:
        state = self.units.get(unit, _NO_UNIT)
        listed = self._index.observers(unit)
        observers = listed or (state.observers if self._index.shared else ())
        if seen.blinds(self.rule, observers):
            for node in () if listed else observers:
                self._unlisted[node].add(unit)
            self._keep(unit, state.held(), None)
            return
        try:
            subjects, next_at = self._evaluate_subjects(unit, state, seen, context)
        except Exception as error:  # a bug in one rule must not stop the others
            if unit not in self._broken:
                log.exception("rule %s failed on %s", self.rule.rule, unit or "the cluster")
            self._broken[unit] = error
            self._keep(unit, state.held(), None)
            return
        self._broken.pop(unit, None)
        self._keep(unit, UnitState(subjects=subjects, observers=observers) if subjects else _NO_UNIT, next_at)

    def _evaluate_subjects(
        self, unit: str, state: UnitState, seen: Observation, context: RuleContext
    ) -> tuple[dict[str, SubjectState], float | None]:
        """State of each subject, and when the first is due again."""
        after: dict[str, SubjectState] = {}
        next_at: float | None = None
        for key, subject in self._index.subjects(unit, seen).items():
            before = state.subjects.get(key, _NO_STATE)
            result = (
                self.rule.evaluate(subject, context, before.memory, context.now) if subject is not None else UNKNOWN
            )
            if result.next_at is not None and (next_at is None or result.next_at < next_at):
                next_at = result.next_at
            kept = before.held() if result.unknown else _next_state(before, result)
            if kept.findings or kept.memory is not None:
                after[key] = kept
        return after, next_at

    def _keep(self, unit: str, state: UnitState, next_at: float | None) -> None:
        if state.subjects:
            self.units[unit] = state
        else:
            self.units.pop(unit, None)
        found = tuple(state.findings()) if state.subjects else ()
        if found != self._found.get(unit, ()):
            self._changed = True
            self._found[unit] = found
            if not found:
                del self._found[unit]
        if next_at is None:
            self._due_at.pop(unit, None)
        elif self._due_at.get(unit) != next_at:
            self._due_at[unit] = next_at
            heapq.heappush(self._timers, (next_at, unit))
            if len(self._timers) > 2 * len(self._due_at) + MAX_OUTDATED_TIMERS:  # most are outdated
                self._timers = [(at, unit) for unit, at in self._due_at.items()]
                heapq.heapify(self._timers)

    def _correlated(self, context: RuleContext) -> Iterable[Finding]:
        findings = list(self._unique())
        if self.rule.correlate is not None:
            findings = list(bounded_findings(self.rule.correlate(findings, context)))
        if self._broken:
            findings.append(_broken_finding(self.rule.rule, next(iter(self._broken.values()))))
        return findings

    def _unique(self) -> Iterator[Finding]:
        """Findings of all units, each key once: that of the earliest start."""
        by_key: dict[str, Finding] = {}
        for unit in sorted(self._found):
            for finding in self._found[unit]:
                known = by_key.setdefault(finding.key, finding)
                if finding.since is not None and (known.since is None or finding.since < known.since):
                    by_key[finding.key] = finding
        return iter(by_key.values())


def _evaluated_for(rule: Rule) -> Set[str]:
    """Parts whose changes evaluate a subject."""
    if "gpu" not in rule.needs:
        return frozenset((*rule.needs, *rule.uses))
    return frozenset((*(part for part in rule.needs if part != "gpu"), *rule.uses, GPU_STATES))


def _next_state(before: SubjectState, result: RuleResult) -> SubjectState:
    """State after an evaluation; findings that the result does not judge are held."""
    if result.memory is None and not result.findings and not result.blind:
        return _NO_STATE
    found = bounded_findings(result.findings)
    if result.blind:
        keys, blind = {finding.key for finding in found}, ScopeIndex((scope, True) for scope in result.blind)
        held = (finding for finding in before.held().findings if finding.key not in keys)
        found = (*found, *(finding for finding in held if any(blind.covering(finding))))
    return SubjectState(memory=result.memory, findings=found)


def _broken_finding(rule: str, error: Exception) -> Finding:
    return Finding(
        rule=rule,
        severity=Severity.WARNING,
        cause=RULE_BROKEN,
        labels={"service": "gpuwarden"},
        headline=Text(key="rule-broken", values={"rule": rule, "error": f"{type(error).__name__}: {error}"}),
        raw=repr(error),
    )
