"""Inhibition: symptoms are not notified while their cause is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from monitor.alert.model import SEVERITY_RANK, Alert, Phase, Symptoms, alerts_by_key
from monitor.facts.findings import Severity

MAX_EXAMPLES = 5


@dataclass(frozen=True)
class Inhibition:
    """Root cause of each inhibited alert (`causes`), and the alerts that each root cause inhibits (`explained`).

    At `ends_at` a resolved cause ceases to inhibit.
    """

    causes: Mapping[str, str]
    explained: Mapping[str, tuple[Alert, ...]]
    ends_at: float = inf

    def urgent(self, fingerprint: str) -> bool:
        """Whether a cause inhibits a critical alert, so that it must be sent even in quiet hours."""
        return any(alert.finding.severity is Severity.CRITICAL for alert in self.explained.get(fingerprint, ()))

    def symptoms(self, causes: Iterable[str]) -> tuple[Symptoms, ...]:
        """Alerts inhibited by some causes, by rule, the most frequent rule first; examples by severity and age."""
        by_rule: dict[str, list[Alert]] = {}
        for cause in causes:
            for alert in self.explained.get(cause, ()):
                by_rule.setdefault(alert.finding.rule, []).append(alert)
        symptoms = [_symptoms(rule, alerts) for rule, alerts in by_rule.items()]
        return tuple(sorted(symptoms, key=lambda entry: (-entry.count, entry.rule)))


def inhibition(alerts: Mapping[str, Alert], linger: float, now: float) -> Inhibition:
    """Which alerts inhibit which others; a cause must be an alert itself.

    A cause inhibits while it is pending or firing, and for `linger` seconds after it resolved. Of alerts that explain
    each other in a cycle, one is notified.
    """
    explained = [alert for alert in alerts.values() if alert.phase is not Phase.RESOLVED and alert.finding.explained_by]
    if not explained:
        return Inhibition({}, {})
    by_key = alerts_by_key(alerts.values())
    parents, ends_at = {}, inf
    for alert in explained:
        cause = by_key.get(alert.finding.explained_by or "")
        if cause is not None and _inhibits(cause, linger, now):
            parents[alert.fingerprint] = cause.fingerprint
            if cause.phase is Phase.RESOLVED and cause.resolved_at is not None:
                ends_at = min(ends_at, cause.resolved_at + linger)
    causes = {fingerprint: root for fingerprint in parents if (root := _root(fingerprint, parents)) != fingerprint}
    by_cause: dict[str, list[Alert]] = {}
    for fingerprint, root in causes.items():
        by_cause.setdefault(root, []).append(alerts[fingerprint])
    return Inhibition(causes, {root: tuple(symptoms) for root, symptoms in by_cause.items()}, ends_at)


def _inhibits(cause: Alert, linger: float, now: float) -> bool:
    """Whether a cause holds back its symptoms.

    A pending cause whose finding is held does not: if it never fires, neither it nor its symptoms would be sent.
    """
    if cause.phase is Phase.PENDING:
        return not cause.finding.held
    return cause.phase is Phase.FIRING or (cause.resolved_at is not None and now - cause.resolved_at < linger)


def _root(fingerprint: str, parents: Mapping[str, str]) -> str:
    """Last cause of a chain; for a cycle, the same member whatever the start."""
    path = {fingerprint: None}
    while (parent := parents.get(fingerprint)) is not None:
        if parent in path:
            chain = list(path)
            return min(chain[chain.index(parent) :])
        path[parent] = None
        fingerprint = parent
    return fingerprint


def _symptoms(rule: str, alerts: list[Alert]) -> Symptoms:
    alerts.sort(key=lambda alert: (SEVERITY_RANK[alert.finding.severity], alert.since, alert.finding.key))
    return Symptoms(
        rule=rule, count=len(alerts), examples=tuple(alert.finding.labels for alert in alerts[:MAX_EXAMPLES])
    )  # fmt: skip
