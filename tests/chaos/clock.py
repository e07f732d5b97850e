"""A wall clock that can be set for one process: a small library in front of the C library's."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from tests.support import need

SOURCE = Path(__file__).with_name("clock.c")
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


class Clock:
    """How far the time of day of a process is ahead of the machine's. Its monotonic clock is never touched."""

    def __init__(self, directory: Path) -> None:
        need(shutil.which("gcc") is not None, "gcc, to build the clock")
        self._file, self._library = directory / "clock", directory / "clock.so"
        subprocess.run(["gcc", *FLAGS, "-o", str(self._library), str(SOURCE), "-ldl"], check=True, timeout=60)
        self._file.write_bytes(struct.pack("q", 0))

    def environment(self) -> dict[str, str]:
        """Return what a process needs in its environment to go by this clock."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}

    def set(self, ahead: int) -> None:
        """Jump to so many seconds ahead of the machine's clock."""
        with self._file.open("r+b") as file:  # in place: the other process looks at this very file
            file.write(struct.pack("q", ahead))
