"""Which version of the program wrote the state directory last, for the alert about a downgrade."""

from __future__ import annotations

import msgspec

import monitor
from monitor.base.state_problems import StateProblemKind, StateProblems
from monitor.base.statefile import StateFile

FILE = "program.json"


class StateWriter(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the file; `program` is None for versions that did not write it."""

    program: str | None = None


def last_writer(state: str) -> str | None:
    """Version that wrote the state directory last, if known."""
    return _file(state).load().program


def record_writer(state: str, problems: StateProblems) -> None:
    """Record this version, unless the directory belongs to a newer one."""
    if not any(problem.kind is StateProblemKind.NEWER for problem in problems.current()):
        _file(state).save(StateWriter(program=monitor.__version__))


def _file(state: str) -> StateFile[StateWriter]:
    return StateFile(state, FILE, StateWriter, "the version of the program")
