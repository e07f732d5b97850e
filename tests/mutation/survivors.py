"""Mutants that survive the tests, and why each of them may.

A mutant is identified by its function and the lines that it changes: its number shifts with every change of the code.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

EXPLAINED = Path(__file__).with_name("survivors.tsv")
# same: equivalent; never: differs only for impossible values; shown: differs only in the output.
KINDS = ("same", "never", "shown")
COLUMNS = ("function", "was", "became", "kind", "why")
_CLASS = "ǁ"  # mutmut's separator between class and method


@dataclass(frozen=True, order=True)
class Mutant:
    """A change of a function, with whitespace collapsed."""

    function: str
    was: str
    became: str


def mutant_of(name: str, diff: str) -> Mutant:
    """The mutant with this name and diff."""
    changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    was, became = (" ".join(" ".join(line[1:] for line in changed if line[0] == sign).split()) for sign in "-+")
    return Mutant(function_of(name), was, became)


def function_of(name: str) -> str:
    """`a.b.f` for `a.b.x_f__mutmut_3`, `a.b.C.f` for `a.b.xǁCǁf__mutmut_3`."""
    module, _, mangled = name.rpartition("__mutmut_")[0].rpartition(".")
    plain = mangled.removeprefix("x_") if _CLASS not in mangled else mangled.removeprefix(f"x{_CLASS}")
    return f"{module}.{plain.replace(_CLASS, '.')}"


def explained(path: Path = EXPLAINED) -> dict[Mutant, str]:
    """Kind of reason for each explained mutant. Raise ValueError if one is missing."""
    kinds: dict[Mutant, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if tuple(row) != COLUMNS or row["kind"] not in KINDS or not row["why"]:
                raise ValueError(f"{path.name}: not explained: {row}")
            kinds[Mutant(row["function"], row["was"], row["became"])] = row["kind"]
    return kinds


def unexplained(survivors: Iterable[Mutant], known: Mapping[Mutant, str]) -> list[Mutant]:
    """Survivors without an explanation."""
    return sorted(set(survivors) - set(known))
