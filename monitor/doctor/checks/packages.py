"""The packages that are installed, against those that this version asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.doctor.model import Verdicts, not_checked, ok, problem

_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9][0-9A-Za-z.+!-]*)")


@dataclass(frozen=True)
class Package:
    """A package. `wanted` is written like `>=3.11,<4`; `extra` is what asks for it, where not everybody needs it."""

    name: str
    wanted: str
    installed: str | None
    extra: str | None = None


@dataclass(frozen=True)
class PackageFacts:
    """Python and the packages; None where this was not installed as a package, so that nothing says what it needs."""

    python: str
    python_wanted: str | None
    packages: tuple[Package, ...] | None


def judge(facts: PackageFacts) -> Verdicts:
    """Given what is installed, return what is missing or of the wrong version."""
    if facts.packages is None:
        return (not_checked("packages.unknown"),)
    wrong = []
    if facts.python_wanted and not satisfies(facts.python, facts.python_wanted):
        wrong.append(problem("packages.python", version=facts.python, wanted=facts.python_wanted))
    for each in facts.packages:
        if each.installed is None and each.extra is not None:
            wrong.append(problem("packages.extra", name=each.name, extra=each.extra))
        elif each.installed is None:
            wrong.append(problem("packages.missing", name=each.name))
        elif not satisfies(each.installed, each.wanted):
            wrong.append(problem("packages.version", name=each.name, version=each.installed, wanted=each.wanted))
    return tuple(wrong) or (ok("packages.ok", version=facts.python, count=len(facts.packages)),)


def satisfies(version: str, wanted: str) -> bool:
    """Given a version and bounds such as `>=3.11,<4`, return whether it keeps to them. Unknown bounds bind nobody."""
    return all(_keeps(_numbers(version), sign, _numbers(bound)) for sign, bound in _BOUND.findall(wanted))


def _keeps(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    one, other = (each + (0,) * (length - len(each)) for each in (version, bound))
    return {
        ">=": one >= other,
        "<=": one <= other,
        ">": one > other,
        "<": one < other,
        "==": one == other,
        "!=": one != other,
        "~=": one >= other and one[: len(bound) - 1] == other[: len(bound) - 1],
    }[sign]


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: 3.11.0rc1 counts as 3.11.0."""
    found = re.match(r"[0-9.]*", version)
    return tuple(int(part) for part in (found.group() if found else "").split(".") if part)
