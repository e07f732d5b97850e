"""What a check finds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from monitor.i18n import Value

MOST_NAMES = 5


class Status(StrEnum):
    """How it is with one thing."""

    OK = "ok"
    NOT_CHECKED = "not-checked"
    WARNING = "warning"
    PROBLEM = "problem"


_ORDER = tuple(Status)
TROUBLE = (Status.WARNING, Status.PROBLEM)


@dataclass(frozen=True)
class Verdict:
    """One thing that was looked at. `doctor.<key>` says how it is and, in trouble, `doctor.<key>.do` what to do."""

    status: Status
    key: str
    values: Mapping[str, Value]


Verdicts = tuple[Verdict, ...]


def ok(key: str, **values: Value) -> Verdict:
    """Return that something is well."""
    return Verdict(Status.OK, key, values)


def not_checked(key: str, **values: Value) -> Verdict:
    """Return that something could not be looked at, or need not be."""
    return Verdict(Status.NOT_CHECKED, key, values)


def warning(key: str, **values: Value) -> Verdict:
    """Return that something works, and not well."""
    return Verdict(Status.WARNING, key, values)


def problem(key: str, **values: Value) -> Verdict:
    """Return that something does not work."""
    return Verdict(Status.PROBLEM, key, values)


def worst(verdicts: Iterable[Verdict]) -> Status:
    """Given verdicts, return the status of all of them together."""
    return max((verdict.status for verdict in verdicts), key=_ORDER.index, default=Status.OK)


def listed(names: Sequence[str]) -> str:
    """Given names, return the first few, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f", … (+{more})" if more > 0 else "")
