"""Limits of findings, whatever a rule puts into them: they are stored, sent and shown many times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from monitor.base.text import shorten, shorten_name
from monitor.detect.base import MAX_RAW_CHARS
from monitor.detect.labels import MAX_LABEL_CHARS
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

MAX_VALUE_CHARS = 1000  # of a value in a sentence
MAX_TEXTS_CHARS = 16_000  # of all evidence, and of all advice
MAX_FINDINGS_PER_NODE = 1000  # of one rule: no node has as many GPUs, mounts or pods
TOO_MANY = "too-many-findings"


def bounded_finding(finding: Finding) -> Finding:
    """The finding within all limits: long labels stay unique, long texts are cut."""
    changes: dict[str, object] = {
        "rule": shorten_name(finding.rule, MAX_LABEL_CHARS),
        "cause": shorten_name(finding.cause, MAX_LABEL_CHARS),
        "labels": bounded_labels(finding.labels),
        "headline": _text(finding.headline),
        "evidence": _texts(finding.evidence),
        "advice": _texts(finding.advice),
        "explains": _scopes(finding.explains),
        "raw": shorten(finding.raw, MAX_RAW_CHARS) if finding.raw is not None else None,
    }
    changed = {name: value for name, value in changes.items() if value is not getattr(finding, name)}
    return replace(finding, **changed) if changed else finding


def bounded_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Labels with values of bounded length, the same object if none is too long."""
    if all(len(value) <= MAX_LABEL_CHARS for value in labels.values()):
        return labels
    return {name: shorten_name(value, MAX_LABEL_CHARS) for name, value in labels.items()}


def _scopes(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Scopes whose labels equal those of bounded findings."""
    labels = [bounded_labels(scope.labels) for scope in scopes]
    if all(short is scope.labels for short, scope in zip(labels, scopes, strict=True)):
        return scopes
    return tuple(replace(scope, labels=short) for short, scope in zip(labels, scopes, strict=True))


def _texts(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    bounded, room = [], MAX_TEXTS_CHARS
    for text in map(_text, texts):
        room -= sum(len(value) for value in text.values.values() if isinstance(value, str))
        if room >= 0:
            bounded.append(text)
    same = len(bounded) == len(texts) and all(one is other for one, other in zip(bounded, texts, strict=True))
    return texts if same else tuple(bounded)


def _text(text: Text) -> Text:
    if all(not isinstance(value, str) or len(value) <= MAX_VALUE_CHARS for value in text.values.values()):
        return text
    return replace(text, values={name: _value(value) for name, value in text.values.items()})


def _value(value: Value) -> Value:
    return shorten(value, MAX_VALUE_CHARS) if isinstance(value, str) else value


def limited_per_node(rule: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Findings of a rule without those beyond the limit of a node, and one finding about each node that exceeds it."""
    by_node: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_node[finding.labels.get("node", "")].append(finding)
    for node, found in by_node.items():
        if not node or len(found) <= MAX_FINDINGS_PER_NODE:
            yield from found
            continue
        yield from sorted(found, key=lambda finding: finding.key)[:MAX_FINDINGS_PER_NODE]
        yield _too_many(rule, node, len(found) - MAX_FINDINGS_PER_NODE)


def _too_many(rule: str, node: str, left_out: int) -> Finding:
    return Finding(
        rule=rule,
        severity=Severity.WARNING,
        cause=TOO_MANY,
        labels={"service": "gpuwarden", "node": node},
        headline=Text(key="rule-too-many", values={"rule": rule, "node": node, "count": left_out}),
    )


def bounded_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings within all limits."""
    return tuple([bounded_finding(finding) for finding in findings])
