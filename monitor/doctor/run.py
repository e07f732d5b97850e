"""All checks side by side, each within its time limit: one that hangs costs the others nothing."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from monitor.base.threads import run_parallel
from monitor.doctor.context import NoConfigError, Visit
from monitor.doctor.model import Status, Verdicts, not_checked, problem, worst

LIMIT = 5.0


@dataclass(frozen=True)
class Check:
    """One check: what reads the facts, and what judges them. Its name begins with its group.

    `of_node` ones are made only where an agent runs or could.
    """

    name: str
    gather: Callable[[Visit], Any]
    judge: Callable[[Any], Verdicts]
    limit: float = LIMIT
    of_node: bool = False

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class Result:
    """A check that was made."""

    check: str
    verdicts: Verdicts

    @property
    def group(self) -> str:
        return self.check.partition(".")[0]

    @property
    def status(self) -> Status:
        return worst(self.verdicts)


def run(checks: Iterable[Check], visit: Visit) -> tuple[Result, ...]:
    """Make all checks at once, and return their results in the order given."""
    checks = tuple(checks)
    limit = max((check.limit for check in checks), default=0.0) + 0.5
    outcomes = run_parallel([lambda check=check: _within(check, visit) for check in checks], limit, len(checks))  # type: ignore[misc]  # a check
    return tuple(
        Result(check.name, outcome.value if outcome.value is not None else _late(check))
        for check, outcome in zip(checks, outcomes, strict=True)
    )


def _within(check: Check, visit: Visit) -> Verdicts:
    """Make a check, and return its verdicts, or that it took too long."""
    (outcome,) = run_parallel([lambda: _made(check, visit)], check.limit)
    return _late(check) if outcome.value is None else outcome.value


def _made(check: Check, visit: Visit) -> Verdicts:
    try:
        if check.of_node and not visit.here.get():
            return (not_checked("node.no-agent"),)
        return check.judge(check.gather(visit))
    except NoConfigError:
        return (not_checked("no-config"),)
    except Exception as error:  # one check that breaks must not take the others with it
        return (problem("broken", why=_where(error)),)


def _where(error: Exception) -> str:
    """Given what nobody expected, return what it is and where it came up. What it says may hold a secret."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}, {os.path.basename(last.filename)}:{last.lineno}"


def _late(check: Check) -> Verdicts:
    return (problem("late", seconds=check.limit),)
