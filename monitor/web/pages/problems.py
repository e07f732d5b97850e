"""What is wrong, by cause: all alerts of one rule and cause are one line. Pure.

Of a thousand alerts a dozen lines are shown: only these are put into words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.alert.model import SEVERITY_RANK, Phase
from monitor.alert.mute import AlertView
from monitor.facts.findings import Severity
from monitor.facts.text import Text
from monitor.i18n.notes import sentence
from monitor.present.findings import SaidFinding
from monitor.web.pages.render import link


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong. `explained_by` is the `own` of the one of which it is only a symptom."""

    own: str
    rule: str
    cause: str
    severity: Severity
    since: float | None
    headline: Text | str
    explained_by: str | None
    silenced: bool = False
    alert: bool = False


@dataclass(frozen=True)
class Problem:
    """Everything that is wrong for one cause. `first` is the worst of it."""

    first: Trouble
    count: int
    since: float | None
    silenced: bool
    symptoms: int

    @property
    def href(self) -> str | None:
        """Return where there is more about it."""
        if not self.first.alert:
            return None
        return link("alerts", self.first.own) if self.count == 1 else f"/alerts?rule={self.first.rule}"

    def headline(self, lang: str) -> str:
        """Return what it is, in one sentence."""
        said = self.first.headline
        return said if isinstance(said, str) else sentence(said, lang)


def of_alerts(shown: Iterable[AlertView]) -> list[Trouble]:
    """Return the alerts that fire."""
    return [
        Trouble(
            own=each.alert.fingerprint,
            rule=each.alert.finding.rule,
            cause=each.alert.finding.cause,
            severity=each.alert.finding.severity,
            since=each.alert.since,
            headline=each.alert.finding.headline,
            explained_by=each.explained_by,
            silenced=each.silenced_by is not None or each.in_maintenance,
            alert=True,
        )
        for each in shown
        if each.alert.phase is Phase.FIRING
    ]


def of_findings(findings: Iterable[SaidFinding]) -> list[Trouble]:
    """Return findings, where there are no alerts."""
    return [
        Trouble(each.key, each.rule, each.cause, each.severity, each.since, each.headline, each.explained_by)
        for each in findings
    ]


def grouped(troubles: Sequence[Trouble]) -> list[Problem]:
    """Return what is wrong by cause, the worst and oldest first, what nobody wants to hear of last."""
    groups: dict[tuple[str, str], list[Trouble]] = {}
    symptoms: Counter[str] = Counter()
    for each in troubles:
        if each.explained_by is None:
            groups.setdefault((each.rule, each.cause), []).append(each)
        else:
            symptoms[each.explained_by] += 1
    made = [_problem(group, symptoms) for group in groups.values()]
    return sorted(made, key=lambda each: (each.silenced, SEVERITY_RANK[each.first.severity], each.since or 0.0))


def _problem(group: Sequence[Trouble], symptoms: Counter[str]) -> Problem:
    return Problem(
        first=min(group, key=lambda each: (each.silenced, SEVERITY_RANK[each.severity])),
        count=len(group),
        since=min((each.since for each in group if each.since is not None), default=None),
        silenced=all(each.silenced for each in group),
        symptoms=sum(symptoms[each.own] for each in group),
    )
