"""Attributes symptoms to causes, and keeps the ages in texts current."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from monitor.detect.base import AGE, COST, CURRENCY, HOURLY_COST, UNSPENT_COST
from monitor.detect.lib.scopes import ScopeIndex
from monitor.facts.findings import Finding
from monitor.facts.prices import format_price
from monitor.facts.text import Text, Value

HOUR_SECONDS = 3600.0


def explained(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Set `explained_by` of symptoms; a cause is never explained by its own symptom."""
    causes = ScopeIndex((scope, finding) for finding in findings for scope in finding.explains)
    result = []
    for finding in findings:
        cause = next((other.key for other in causes.covering(finding) if not _mutual(other, finding)), None)
        same = finding.explained_by == cause
        result.append(finding if same else msgspec.structs.replace(finding, explained_by=cause))
    return tuple(result)


def _mutual(cause: Finding, finding: Finding) -> bool:
    return cause is finding or any(scope.covers(cause) for scope in finding.explains)


def aged(findings: Iterable[Finding], now: float) -> tuple[Finding, ...]:
    """Findings whose headlines state their age now, not at the time of the evaluation that found them."""
    return tuple(finding if finding.since is None else _aged(finding, now - finding.since) for finding in findings)


def _aged(finding: Finding, age: float) -> Finding:
    headline = _with_age(finding.headline, age)
    evidence = tuple(_with_age(text, age) if AGE in text.values else text for text in finding.evidence)
    return msgspec.structs.replace(finding, headline=headline, evidence=evidence)


def _with_age(text: Text, age: float) -> Text:
    return Text(key=text.key, values=text.values | {AGE: max(0.0, age)} | _cost(text.values, age))


def _cost(values: Mapping[str, Value], age: float) -> dict[str, Value]:
    """What has been spent at an age, if the text states a cost."""
    hourly, unspent = values.get(HOURLY_COST), values.get(UNSPENT_COST)
    if not isinstance(hourly, int | float) or not isinstance(unspent, int | float):
        return {}
    spent = max(0.0, hourly * age / HOUR_SECONDS - unspent)
    return {COST: format_price(spent, str(values.get(CURRENCY, "")))}
