"""A settable wall clock for one process: a small library preloaded before libc."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

from tests.support import need

SOURCE = Path(__file__).with_name("clock.c")
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


class Clock:
    """Offset of a process's wall clock from the machine's; its monotonic clock is unaffected."""

    def __init__(self, directory: Path) -> None:
        need(shutil.which("gcc") is not None, "gcc, to build the clock")
        self._file, self._library = directory / "clock", directory / "clock.so"
        subprocess.run(["gcc", *FLAGS, "-o", str(self._library), str(SOURCE), "-ldl"], check=True, timeout=60)
        self._file.write_bytes(struct.pack("q", 0))

    def environment(self) -> dict[str, str]:
        """Environment variables for a process that uses this clock."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}

    def set(self, ahead: int) -> None:
        """Set the offset in seconds."""
        with self._file.open("r+b") as file:  # in place: the other process maps this file
            file.write(struct.pack("q", ahead))
