"""Processes whose wall clock a test moves, for what takes hours: Python imports `sitecustomize` first."""

from __future__ import annotations

import os
from pathlib import Path

FILE = "MOVED_CLOCK_FILE"
PROGRAM = f"""\
import os, time

read = time.time


def moved():
    with open(os.environ["{FILE}"]) as file:
        return read() + float(file.read())


time.time = moved
"""


class MovedClock:
    """The wall clock of processes with this environment. Durations, measured by another clock, stay real."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "sitecustomize.py").write_text(PROGRAM)
        self._file = directory / "seconds"
        self.ahead(0.0)
        path = os.pathsep.join(filter(None, [str(directory), os.environ.get("PYTHONPATH", "")]))
        self.environment = {"PYTHONPATH": path, FILE: str(self._file)}

    def ahead(self, seconds: float) -> None:
        """Move the clock to this much ahead of the real one."""
        new = self._file.with_suffix(".new")
        new.write_text(repr(seconds))
        new.replace(self._file)
