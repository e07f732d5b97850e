"""Findings: what is wrong, for which subject, why, since when, and what to do."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from monitor.facts.alert_identity import identifying_labels
from monitor.facts.base import Fact
from monitor.facts.text import Text

# All labels of findings, and therefore of alerts.
LABELS = (
    "cluster", "node", "gpu", "pod", "namespace", "container", "user", "job", "queue", "mount", "image", "service",
    "condition",
)  # fmt: skip


class Severity(StrEnum):
    """Severity of a finding."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Scope(Fact, frozen=True, kw_only=True):
    """Findings with these labels, rules and causes; no rules or causes means any."""

    labels: dict[str, str]
    rules: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    def covers(self, finding: Finding) -> bool:
        if self.rules and finding.rule not in self.rules:
            return False
        if self.causes and finding.cause not in self.causes:
            return False
        return all(finding.labels.get(name) == value for name, value in self.labels.items())


class Finding(Fact, frozen=True, kw_only=True, dict=True, gc=True):
    """A detected problem. `labels` name the subject and its attributes; rule and subject identify the finding.

    `headline` is one sentence, `evidence` the figures, `advice` what to do. `since` is the start, if known. `explains`
    selects findings that are only symptoms of this one; on those, `explained_by` is the key of this one. `held` is set
    while there are no fresh facts and the finding is the last known one.
    """

    rule: str
    severity: Severity
    cause: str
    labels: dict[str, str]
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()
    since: float | None = None
    explains: tuple[Scope, ...] = ()
    explained_by: str | None = None
    held: bool = False
    raw: str | None = None

    @cached_property
    def key(self) -> str:
        """Identity of the finding: a change of cause, severity or attributes does not make it a new finding."""
        subject = identifying_labels(self.rule, self.labels)
        return self.rule + "".join(f"|{name}={subject[name]}" for name in sorted(subject))
