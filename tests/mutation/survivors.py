"""Surviving mutants, each with a reason why it is acceptable.

A mutant is identified by its function and its changed lines, because its number changes with the code.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

EXPLAINED = Path(__file__).with_name("survivors.tsv")
# Equivalent; differs only for values that cannot occur; changes only displayed text, no action.
KINDS = ("same", "never", "shown")
COLUMNS = ("function", "was", "became", "kind", "why")
_CLASS = "ǁ"  # mutmut's separator between class and method


@dataclass(frozen=True, order=True)
class Mutant:
    """One mutation of a function; its lines are joined into one, stripped."""

    function: str
    was: str
    became: str


def mutant_of(name: str, diff: str) -> Mutant:
    """The mutant for a name and a diff."""
    changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    was, became = (" ".join(" ".join(line[1:] for line in changed if line[0] == sign).split()) for sign in "-+")
    return Mutant(function_of(name), was, became)


def function_of(name: str) -> str:
    """`a.b.f` for `a.b.x_f__mutmut_3`, and `a.b.C.f` for `a.b.xǁCǁf__mutmut_3`."""
    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    plain = mangled.removeprefix("x_") if _CLASS not in mangled else mangled.removeprefix(f"x{_CLASS}")
    return f"{module}.{plain.replace(_CLASS, '.')}"


def explained(path: Path = EXPLAINED) -> dict[Mutant, str]:
    """Reason kind of each explained mutant; ValueError if one has no reason."""
    found: dict[Mutant, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if tuple(row) != COLUMNS or row["kind"] not in KINDS or not row["why"]:
                raise ValueError(f"{path.name}: not explained: {row}")
            found[Mutant(row["function"], row["was"], row["became"])] = row["kind"]
    return found


def unexplained(survivors: Iterable[Mutant], known: Mapping[Mutant, str]) -> list[Mutant]:
    """Survivors without an explanation."""
    return sorted(set(survivors) - set(known))
