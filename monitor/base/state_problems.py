"""Problems with the files of a state directory, collected from whatever uses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from monitor.base.private_files import aside_copies

NOTE_SUFFIX = ".txt"  # beside a file that was moved aside: why, and what could be kept of it
MAX_NOTE_CHARS = 1000


class StateProblemKind(StrEnum):
    """What is wrong with a file."""

    UNWRITABLE = "unwritable"  # its content is kept in memory only
    NEWER = "newer"  # a newer version wrote it: it is left as it is
    DAMAGED = "damaged"  # it was moved aside


@dataclass(frozen=True)
class StateProblem:
    """A problem with the file at `path`."""

    kind: StateProblemKind
    path: str
    why: str


class StateProblems:
    """All problems of a state directory. A file that was moved aside is one until it is removed.

    `writer` is the version of the program that wrote the directory last, if known.
    """

    def __init__(self, directory: str, writer: str | None = None) -> None:
        self._directory = directory
        self._writer = writer
        self._readers: list[Callable[[], Iterable[StateProblem | None]]] = []

    def add(self, read: Callable[[], Iterable[StateProblem | None]]) -> None:
        """Include the problems that `read` returns."""
        self._readers.append(read)

    def current(self) -> tuple[StateProblem, ...]:
        found = [self._attributed(problem) for read in self._readers for problem in read() if problem is not None]
        return (*found, *(self._moved_aside(name) for name in aside_copies(self._directory)))

    def _attributed(self, problem: StateProblem) -> StateProblem:
        """The problem; that of a newer file with the version that wrote it."""
        if problem.kind is not StateProblemKind.NEWER or self._writer is None:
            return problem
        return replace(problem, why=f"written by version {self._writer}, {problem.why}")

    def _moved_aside(self, name: str) -> StateProblem:
        path = os.path.join(self._directory, name)
        return StateProblem(StateProblemKind.DAMAGED, path, read_note(path) or "its recovery has not finished")


def read_note(aside: str) -> str | None:
    """Note beside a file that was moved aside; None if there is none."""
    try:
        with open(aside + NOTE_SUFFIX, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_NOTE_CHARS).strip()
    except OSError:
        return None
