"""The end of log files."""

from __future__ import annotations

import os
from pathlib import Path


def tail(log: Path, lines: int = 20) -> str:
    """Last lines of a log, indented; a missing log is reported as empty."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - 16384))
            text = handle.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(f"    {line[:400]}" for line in text.splitlines()[-lines:]) or "    (empty)"
