"""The rendered explanation of a pod, split into its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExplanationParts:
    """Subject, answer, evidence and advice."""

    well: bool
    subject: str
    headline: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]


def explanation_parts(name: str, lines: Sequence[str], *, well: bool) -> ExplanationParts:
    """Split the lines that `gpuwarden why` prints."""
    return ExplanationParts(
        well=well,
        subject=lines[0] if lines else name,
        headline=lines[1] if len(lines) > 1 else "",
        evidence=tuple(line[4:] for line in lines if line.startswith("  - ")),
        advice=tuple(line[4:] for line in lines if line.startswith("  > ")),
    )
