"""Mutants that no test notices, and why each of them may live.

A mutant is known by its function and by the lines that it changes: its number shifts with every change of the code.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

EXPLAINED = Path(__file__).with_name("survivors.tsv")
# Nothing could differ; it differs for values only that there are not; what is shown differs, and nothing that is done.
KINDS = ("same", "never", "shown")
COLUMNS = ("function", "was", "became", "kind", "why")
_CLASS = "ǁ"  # how mutmut writes the dot between a class and its method


@dataclass(frozen=True, order=True)
class Mutant:
    """One small change of a function. Its lines are in one line, without the space around them."""

    function: str
    was: str
    became: str


def mutant_of(name: str, diff: str) -> Mutant:
    """Given a mutant's name and its diff, return the mutant."""
    changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    was, became = (" ".join(" ".join(line[1:] for line in changed if line[0] == sign).split()) for sign in "-+")
    return Mutant(function_of(name), was, became)


def function_of(name: str) -> str:
    """Given `a.b.x_f__mutmut_3` or `a.b.xǁCǁf__mutmut_3`, return `a.b.f` or `a.b.C.f`."""
    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    plain = mangled.removeprefix("x_") if _CLASS not in mangled else mangled.removeprefix(f"x{_CLASS}")
    return f"{module}.{plain.replace(_CLASS, '.')}"


def explained(path: Path = EXPLAINED) -> dict[Mutant, str]:
    """Return why each mutant that is explained may live: the kind of reason. Raise ValueError at one without."""
    found: dict[Mutant, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if tuple(row) != COLUMNS or row["kind"] not in KINDS or not row["why"]:
                raise ValueError(f"{path.name}: not explained: {row}")
            found[Mutant(row["function"], row["was"], row["became"])] = row["kind"]
    return found


def unexplained(survivors: Iterable[Mutant], known: Mapping[Mutant, str]) -> list[Mutant]:
    """Return the survivors that nobody has explained."""
    return sorted(set(survivors) - set(known))
