"""Findings: what is wrong, with whom, why, since when, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from monitor.facts.base import Fact
from monitor.facts.text import Text

# Every label that a finding may carry, and so every label of an alert.
LABELS = (
    "cluster", "node", "gpu", "pod", "namespace", "container", "user", "job", "queue", "mount", "image", "service",
)  # fmt: skip


class Severity(StrEnum):
    """How bad it is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Scope(Fact, frozen=True, kw_only=True):
    """Findings that have these labels, of these rules and with these causes (of any, if none is named)."""

    labels: dict[str, str]
    rules: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding is one of these."""
        if self.rules and finding.rule not in self.rules:
            return False
        if self.causes and finding.cause not in self.causes:
            return False
        return all(finding.labels.get(name) == value for name, value in self.labels.items())


class Finding(Fact, frozen=True, kw_only=True):
    """Something that is wrong. `labels` name the subject; together with the rule they are what a finding is known by.

    `headline` says it in one sentence, `evidence` gives the figures, `advice` what to do. `since` is when it began,
    where that is known. `explains` are the findings that are only its symptoms; `explained_by` is set on those, to the
    key of the cause. `held` is set while there are no fresh facts and the finding is what was last known.
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

    @property
    def key(self) -> str:
        """Return what this finding is known by: a change of cause or severity is the same finding getting worse."""
        return self.rule + "".join(f"|{name}={self.labels[name]}" for name in sorted(self.labels))
