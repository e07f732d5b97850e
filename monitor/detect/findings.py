"""Creates the findings of rules, with texts named after rule and cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.base.text import shorten
from monitor.detect.base import MAX_RAW_CHARS
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value


def make_finding(
    rule: str,
    cause: str,
    labels: dict[str, str],
    values: Mapping[str, Value],
    *,
    severity: Severity = Severity.WARNING,
    key: str | None = None,
    evidence: Iterable[Text] = (),
    advice: Iterable[Text] | None = None,
    advice_key: str | None = None,
    advice_values: Mapping[str, Value] | None = None,
    since: float | None = None,
    explains: Iterable[Scope] = (),
    held: bool = False,
    raw: str | None = None,
) -> Finding:
    """A finding whose headline is the text `key`, by default `<rule>.<cause>`, or `<rule>` for a rule without causes.

    Its advice is by default the text `<key>.advice` with the values of the headline; both can be replaced.
    """
    headline = Text(key or (rule if cause == rule else f"{rule}.{cause}"), dict(values))
    if advice is None:
        own = headline.values if advice_values is None else dict(advice_values)
        advice = (Text(advice_key or f"{headline.key}.advice", own),)
    return Finding(
        rule=rule,
        severity=severity,
        cause=cause,
        labels=labels,
        headline=headline,
        evidence=tuple(evidence),
        advice=tuple(advice),
        since=since,
        explains=tuple(explains),
        held=held,
        raw=raw,
    )


def shorten_raw(message: str | None) -> str:
    """A message cut to the length that a finding may quote."""
    return shorten(message or "", MAX_RAW_CHARS)
