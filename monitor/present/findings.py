"""Findings in words, and as a table for the terminal and the page alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from monitor.base.units import format_duration
from monitor.facts.findings import Finding, Severity
from monitor.i18n.notes import sentence
from monitor.present.node import Rows, TextTable, make_table

SHOWN = 200
WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)
# What a finding is about, the most telling first; the owner is in the sentence.
SUBJECT_LABELS = ("node", "gpu", "namespace", "pod", "container", "mount", "image", "service", "queue", "job", "user")
NOT_EVALUATED = "no daemon answers, or it has not looked yet; findings need one that watches: gpuwarden daemon"


class FindingView(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in one language. `explained_by` is the key of the finding of which it is only a symptom."""

    key: str
    rule: str
    severity: Severity
    cause: str
    labels: dict[str, str]
    headline: str
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    since: float | None = None
    explained_by: str | None = None
    held: bool = False
    raw: str | None = None


def finding_views(findings: Iterable[Finding], lang: str) -> tuple[FindingView, ...]:
    """Given findings, return them in words: causes before symptoms, the worst first, the oldest first."""
    ordered = sorted(findings, key=_urgency)
    return tuple(
        FindingView(
            key=finding.key,
            rule=finding.rule,
            severity=finding.severity,
            cause=finding.cause,
            labels=finding.labels,
            headline=sentence(finding.headline, lang),
            evidence=tuple(sentence(note, lang) for note in finding.evidence),
            advice=tuple(sentence(note, lang) for note in finding.advice),
            since=finding.since,
            explained_by=finding.explained_by,
            held=finding.held,
            raw=finding.raw,
        )
        for finding in ordered
    )


def _urgency(finding: Finding) -> tuple[bool, int, float, str]:
    since = finding.since if finding.since is not None else float("inf")
    return finding.explained_by is not None, WORST_FIRST.index(finding.severity), since, finding.key


def findings_table(findings: Sequence[FindingView] | None, now: float, everything: bool = False) -> TextTable:
    """Given findings in words, or None if they are not known, return their table. Symptoms only with `everything`."""
    columns = "severity | rule | subject | what | for"
    if findings is None:
        return make_table("Findings", columns, [], NOT_EVALUATED)
    shown = [finding for finding in findings if everything or finding.explained_by is None]
    rows: Rows = [
        (
            finding.severity.value,
            finding.rule,
            _subject(finding),
            finding.headline + (" (as last seen)" if finding.held else ""),
            "" if finding.since is None else format_duration(max(0.0, now - finding.since)),
        )
        for finding in shown
    ]
    return make_table(_title(len(findings), len(shown)), columns, rows[:SHOWN], "nothing is wrong that is known of")


def _title(all_of_them: int, shown: int) -> str:
    words = [f"the first {SHOWN} of {shown}"] if shown > SHOWN else []
    symptoms = all_of_them - shown
    words += [f"{symptoms} more that these explain"] if symptoms else []
    return f"Findings ({', '.join(words)})" if words else "Findings"


def _subject(finding: FindingView) -> str:
    return ", ".join(f"{name} {finding.labels[name]}" for name in SUBJECT_LABELS if name in finding.labels)


def has_urgent(findings: Iterable[FindingView] | None) -> bool:
    """Return whether something is found that somebody should look at."""
    return any(finding.severity is not Severity.INFO for finding in findings or ())
