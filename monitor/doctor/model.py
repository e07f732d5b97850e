"""Checks, their verdicts and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from monitor.doctor.context import DoctorContext
from monitor.i18n import Value

MAX_NAMES = 5
DEFAULT_TIMEOUT_SECONDS = 5.0
CLUSTER_TIMEOUT_SECONDS = 8.0  # for a check that waits for the API server and then makes requests of its own


class CheckStatus(StrEnum):
    """Outcome of a check, from good to bad."""

    OK = "ok"
    NOT_CHECKED = "not-checked"
    WARNING = "warning"
    PROBLEM = "problem"


_SEVERITY = tuple(CheckStatus)
TROUBLE = (CheckStatus.WARNING, CheckStatus.PROBLEM)


@dataclass(frozen=True)
class CheckVerdict:
    """One outcome of a check: `doctor.<key>` describes it; for trouble, `doctor.<key>.do` says what to do."""

    status: CheckStatus
    key: str
    values: Mapping[str, Value]


Verdicts = tuple[CheckVerdict, ...]


def _verdict(status: CheckStatus, key: str, **values: Value) -> CheckVerdict:
    return CheckVerdict(status, key, values)


ok = partial(_verdict, CheckStatus.OK)
not_checked = partial(_verdict, CheckStatus.NOT_CHECKED)  # it could not be checked, or does not apply
warning = partial(_verdict, CheckStatus.WARNING)  # it works, but with a limitation or a risk
problem = partial(_verdict, CheckStatus.PROBLEM)


def joined(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f", … (+{more})" if more > 0 else "")


@dataclass(frozen=True)
class Check:
    """A check: a reader of facts and a judge of them. The part of `name` before the dot is its group.

    `on_node` checks run only where an agent runs or could run.
    `send_timeout_seconds` replaces the timeout if test messages are sent.
    """

    name: str
    read: Callable[[DoctorContext], Any]
    judge: Callable[[Any], Verdicts]
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    send_timeout_seconds: float | None = None
    on_node: bool = False


@dataclass(frozen=True)
class CheckResult:
    """The verdicts of a check."""

    check: str
    verdicts: Verdicts

    @property
    def group(self) -> str:
        return self.check.partition(".")[0]

    @property
    def status(self) -> CheckStatus:
        """Worst status of the verdicts."""
        return max((verdict.status for verdict in self.verdicts), key=_SEVERITY.index, default=CheckStatus.OK)
