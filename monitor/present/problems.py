"""Problems of the overview: all alerts, or findings, of one rule and cause are one row.

Only the rows that are shown are rendered: a large outage has thousands of alerts in a dozen rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monitor.alert.model import SEVERITY_RANK, Phase
from monitor.alert.mute import AlertView
from monitor.facts.findings import Severity
from monitor.facts.text import Text
from monitor.i18n.notes import sentence
from monitor.present.findings import LocalizedFinding


class Issue(NamedTuple):
    """An alert or a finding. `explained_by` is the `id` of its cause, if it is a symptom."""

    id: str
    rule: str
    cause: str
    severity: Severity
    since: float | None
    headline: Text | str
    explained_by: str | None
    muted: bool = False
    is_alert: bool = False


@dataclass(frozen=True)
class ProblemRow:
    """All issues of one rule and cause. `worst` is shown for them."""

    worst: Issue
    count: int
    since: float | None
    muted: bool
    symptoms: int

    def headline(self, lang: str) -> str:
        headline = self.worst.headline
        return headline if isinstance(headline, str) else sentence(headline, lang)


def issues_of_alerts(alerts: Iterable[AlertView]) -> list[Issue]:
    """Firing alerts as issues."""
    return [
        Issue(
            id=shown.alert.fingerprint,
            rule=shown.alert.finding.rule,
            cause=shown.alert.finding.cause,
            severity=shown.alert.finding.severity,
            since=shown.alert.since,
            headline=shown.alert.finding.headline,
            explained_by=shown.explained_by,
            muted=shown.silenced_by is not None or shown.in_maintenance,
            is_alert=True,
        )
        for shown in alerts
        if shown.alert.phase is Phase.FIRING
    ]


def issues_of_findings(findings: Iterable[LocalizedFinding]) -> list[Issue]:
    """Findings as issues, where alerting is not available."""
    return [
        Issue(
            finding.key, finding.rule, finding.cause, finding.severity, finding.since, finding.headline,
            finding.explained_by,
        )
        for finding in findings
    ]  # fmt: skip


def problem_rows(issues: Sequence[Issue]) -> list[ProblemRow]:
    """Issues grouped by rule and cause: by severity, oldest first, muted ones last."""
    groups: dict[tuple[str, str], list[Issue]] = {}
    symptoms: Counter[str] = Counter()
    for issue in issues:
        if issue.explained_by is None:
            groups.setdefault((issue.rule, issue.cause), []).append(issue)
        else:
            symptoms[issue.explained_by] += 1
    rows = [_problem_row(group, symptoms) for group in groups.values()]
    return sorted(rows, key=lambda row: (row.muted, SEVERITY_RANK[row.worst.severity], row.since or 0.0))


def _problem_row(group: Sequence[Issue], symptoms: Counter[str]) -> ProblemRow:
    return ProblemRow(
        worst=min(group, key=lambda issue: (issue.muted, SEVERITY_RANK[issue.severity])),
        count=len(group),
        since=min((issue.since for issue in group if issue.since is not None), default=None),
        muted=all(issue.muted for issue in group),
        symptoms=sum(symptoms[issue.id] for issue in group),
    )
