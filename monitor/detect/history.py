"""What the engine remembers of each subject; persisted across restarts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from monitor.facts.findings import Finding


class SubjectState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Memory of a rule about one subject, and what it last found."""

    memory: Any = None
    findings: tuple[Finding, ...] = ()

    def held(self) -> SubjectState:
        """The same while nothing is known about the subject."""
        findings = tuple(f if f.held else msgspec.structs.replace(f, held=True) for f in self.findings)
        return SubjectState(memory=self.memory, findings=findings)


class UnitState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Subjects that are evaluated together, by key, and the nodes that described them."""

    subjects: dict[str, SubjectState] = msgspec.field(default_factory=dict)
    observers: tuple[str, ...] = ()

    def findings(self) -> Iterable[Finding]:
        return (finding for state in self.subjects.values() for finding in state.findings)

    def held(self) -> UnitState:
        """The same while the unit cannot be observed."""
        return UnitState(subjects={key: state.held() for key, state in self.subjects.items()}, observers=self.observers)


class DetectionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """State of all subjects by rule and unit.

    `findings` are those of the last evaluation. After a start, those without a subject are adopted: held until
    `adopted_until`, unless they are found again.
    """

    units: dict[str, dict[str, UnitState]] = msgspec.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    adopted: tuple[Finding, ...] = ()
    adopted_until: float = 0.0
