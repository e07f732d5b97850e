"""What is not told because something else explains it, and what a cause explains. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitor.alert.model import SEVERITY_RANK, Alert, Phase, Symptoms
from monitor.facts.findings import Severity

MAX_EXAMPLES = 5


@dataclass(frozen=True)
class Inhibition:
    """`causes` has the root cause of each alert that is explained, `explained` the alerts of each root cause."""

    causes: Mapping[str, str]
    explained: Mapping[str, tuple[Alert, ...]]

    def urgent(self, fingerprint: str) -> bool:
        """Return whether something critical is not told because of this cause: then it must be told itself."""
        return any(alert.finding.severity is Severity.CRITICAL for alert in self.explained.get(fingerprint, ()))

    def symptoms(self, causes: Iterable[str]) -> tuple[Symptoms, ...]:
        """Given causes, return what they explain, by rule: the most frequent first, of each the worst and oldest."""
        by_rule: dict[str, list[Alert]] = {}
        for cause in causes:
            for alert in self.explained.get(cause, ()):
                by_rule.setdefault(alert.finding.rule, []).append(alert)
        symptoms = [_symptoms(rule, alerts) for rule, alerts in by_rule.items()]
        return tuple(sorted(symptoms, key=lambda each: (-each.count, each.rule)))


def inhibition(alerts: Mapping[str, Alert], linger: float, now: float) -> Inhibition:
    """Given all alerts, return which are explained by others. What explains must be there itself.

    A cause counts while it is pending or fires, and for `linger` seconds after. Of several that explain each other in
    a circle one is told.
    """
    explained = [alert for alert in alerts.values() if alert.phase is not Phase.RESOLVED and alert.finding.explained_by]
    if not explained:
        return Inhibition({}, {})
    holding = {alert.finding.key: alert.fingerprint for alert in alerts.values() if _holds(alert, linger, now)}
    parents = {
        alert.fingerprint: holding[alert.finding.explained_by]
        for alert in explained
        if alert.finding.explained_by in holding
    }
    causes = {own: root for own in parents if (root := _root(own, parents)) != own}
    by_cause: dict[str, list[Alert]] = {}
    for own, root in causes.items():
        by_cause.setdefault(root, []).append(alerts[own])
    return Inhibition(causes, {root: tuple(symptoms) for root, symptoms in by_cause.items()})


def _holds(cause: Alert, linger: float, now: float) -> bool:
    """Return whether a cause keeps its symptoms from being told.

    A pending one of which nothing is known any more does not: it may never fire, and then nobody would be told.
    """
    if cause.phase is Phase.PENDING:
        return not cause.finding.held
    return cause.phase is Phase.FIRING or (cause.resolved_at is not None and now - cause.resolved_at < linger)


def _root(own: str, parents: Mapping[str, str]) -> str:
    """Return the last cause of a chain; of a circle the one that all its members agree on."""
    path = {own: None}
    while (parent := parents.get(own)) is not None:
        if parent in path:
            chain = list(path)
            return min(chain[chain.index(parent) :])
        path[parent] = None
        own = parent
    return own


def _symptoms(rule: str, alerts: list[Alert]) -> Symptoms:
    alerts.sort(key=lambda each: (SEVERITY_RANK[each.finding.severity], each.since, each.finding.key))
    return Symptoms(
        rule=rule, count=len(alerts), examples=tuple(alert.finding.labels for alert in alerts[:MAX_EXAMPLES])
    )  # fmt: skip
