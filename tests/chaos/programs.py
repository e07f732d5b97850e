"""The product's processes: started, killed, paused and restarted like by a kubelet; their output goes to files."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Figures:
    """Resources of a process."""

    pid: int
    threads: int
    files: int


class Program:
    """One process of the product, across restarts."""

    def __init__(self, name: str, line: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self.began = 0.0
        self._line = list(line)
        self.environ = dict(environ)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._line, env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.began = time.monotonic()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: int) -> None:
        if self.runs:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process like the OOM killer."""
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait(60)

    def stop(self, seconds: float) -> int | None:
        """Terminate the process, and return its exit code; None if it has not ended within this time."""
        assert self._process is not None
        self.send(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def said(self, after: int = 0) -> str:
        """Log output from an offset on."""
        return self.log.read_bytes()[after:].decode("utf-8", "replace") if self.log.exists() else ""

    def place(self) -> int:
        """Current end of the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def figures(self) -> Figures:
        status = Path(f"/proc/{self.pid}/status").read_text()
        threads = int(status.partition("Threads:")[2].split()[0])
        return Figures(self.pid, threads, len(os.listdir(f"/proc/{self.pid}/fd")))


def grown(samples: Sequence[Figures], threads: int, files: int) -> str | None:
    """Growth of a process's last run beyond these bounds; None if within them.

    The first third is warm-up: threads and connections are created on first use.
    """
    if not samples:
        return None
    life = [each for each in samples if each.pid == samples[-1].pid]
    warm = life[: max(1, len(life) // 3)]
    more_threads = life[-1].threads - max(each.threads for each in warm)
    more_files = life[-1].files - max(each.files for each in warm)
    if more_threads <= threads and more_files <= files:
        return None
    return f"{more_threads} threads and {more_files} files more after {len(life)} samples"
