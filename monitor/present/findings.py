"""Findings in one language, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.i18n import say
from monitor.i18n.figures import brief_duration
from monitor.i18n.notes import sentence
from monitor.present.table import Rows, TextTable, make_limited_table, make_table, table_list, table_text

WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)
# Labels that identify the subject, most specific first; the owner is part of the headline.
SUBJECT_LABELS = (
    "node", "gpu", "namespace", "pod", "container", "mount", "image", "service", "condition", "queue", "job", "user",
)  # fmt: skip
NOT_EVALUATED = "unknown: no daemon answers, or it has not evaluated its rules yet; start one with gpuwarden daemon"


class LocalizedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in one language. `explained_by` is the key of its cause, if it is a symptom."""

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


def localize_findings(findings: Iterable[Finding], lang: str) -> tuple[LocalizedFinding, ...]:
    """Findings in one language: causes before symptoms, then by severity, oldest first."""
    return tuple(
        LocalizedFinding(
            key=finding.key,
            rule=finding.rule,
            severity=finding.severity,
            cause=finding.cause,
            labels=finding.labels,
            headline=sentence(finding.headline, lang),
            evidence=tuple(sentence(text, lang) for text in finding.evidence),
            advice=tuple(sentence(text, lang) for text in finding.advice),
            since=finding.since,
            explained_by=finding.explained_by,
            held=finding.held,
            raw=finding.raw,
        )
        for finding in sorted(findings, key=_urgency)
    )


def _urgency(finding: Finding) -> tuple[bool, int, float, str]:
    since = finding.since if finding.since is not None else float("inf")
    return finding.explained_by is not None, WORST_FIRST.index(finding.severity), since, finding.key


def findings_table(
    findings: Sequence[LocalizedFinding] | None, now: float, everything: bool = False, lang: str = "en"
) -> TextTable:
    """Table of findings, None if they are unknown. Symptoms are included only with `everything`."""
    columns = "severity | rule | subject | headline | for"
    if findings is None:
        return make_table("Findings", columns, [], NOT_EVALUATED)
    selected = [finding for finding in findings if everything or finding.explained_by is None]
    rows: Rows = [
        (
            finding.severity.value,
            finding.rule,
            subject(finding.labels, lang),
            table_text(lang, "as-last-seen", headline=finding.headline) if finding.held else finding.headline,
            "" if finding.since is None else brief_duration(max(0.0, now - finding.since), lang),
        )
        for finding in selected
    ]
    symptoms = len(findings) - len(selected)
    remarks = [Text("table.explained", {"count": symptoms})] if symptoms else []
    return make_limited_table("Findings", columns, rows, "no findings", remarks)


def has_urgent(findings: Iterable[LocalizedFinding] | None) -> bool:
    """Whether a finding is more than informational."""
    return any(finding.severity is not Severity.INFO for finding in findings or ())


def subject_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels that identify what a finding or alert is about, most specific first."""
    return tuple((name, labels[name]) for name in SUBJECT_LABELS if name in labels)


def subject(labels: Mapping[str, str], lang: str = "en") -> str:
    """What a finding or alert is about, as text. English uses the labels themselves, which silences match."""
    if lang == "en":
        return ", ".join(f"{name} {value}" for name, value in subject_labels(labels))
    return table_list(lang, (say(lang, f"label.{name}", {"value": value}) for name, value in subject_labels(labels)))
