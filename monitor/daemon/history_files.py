"""Persists the history of the rules: the findings whenever they change, and the memory of the rules now and then.

The memory of all subjects of a large cluster takes megabytes. What is lost of it in a crash are the last seconds; a
finding that must not be lost is in the small file.
"""

from __future__ import annotations

import msgspec

from monitor.base.state_problems import StateProblem
from monitor.base.statefile import StateFile
from monitor.detect.history import DetectionHistory, UnitState
from monitor.facts.findings import Finding

FINDINGS_FILE, MEMORY_FILE = "findings.json", "memory.json"
FINDINGS_VERSION = 2  # 1: with one memory per rule


class SavedFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of the last evaluation, and those adopted from an earlier start: see DetectionHistory."""

    findings: tuple[Finding, ...] = ()
    adopted: tuple[Finding, ...] = ()
    adopted_until: float = 0.0


class SavedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """State of all subjects by rule and unit."""

    units: dict[str, dict[str, UnitState]] = msgspec.field(default_factory=dict)


class HistoryFiles:
    """Both files in the state directory."""

    def __init__(self, directory: str) -> None:
        what = "the finding history"
        self._findings = StateFile(directory, FINDINGS_FILE, SavedFindings, what, FINDINGS_VERSION)
        self._memory = StateFile(directory, MEMORY_FILE, SavedMemory, "the memory of the rules")

    @property
    def problem(self) -> StateProblem | None:
        """Why a file is not written; None if both are."""
        return self._findings.problem or self._memory.problem

    def load(self) -> DetectionHistory:
        """The saved history, as far as it is readable."""
        saved = self._findings.load()
        return DetectionHistory(
            units=self._memory.load().units,
            findings=saved.findings,
            adopted=saved.adopted,
            adopted_until=saved.adopted_until,
        )

    def save_findings(self, history: DetectionHistory) -> None:
        """Replace the small file."""
        self._findings.save(
            SavedFindings(findings=history.findings, adopted=history.adopted, adopted_until=history.adopted_until)
        )

    def save(self, history: DetectionHistory) -> None:
        """Replace both files."""
        self._memory.save(SavedMemory(units=history.units))
        self.save_findings(history)
