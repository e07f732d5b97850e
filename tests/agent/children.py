"""Real processes for tests to look at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def child(prepare: str = "pass") -> Iterator[int]:
    """Run a Python process that executes `prepare` and then waits. Yield its pid; it is gone at the end.

    A process of its own, not a fork: forking a test run that has threads is an error in newer Pythons.
    """
    program = f"import ctypes, os, signal\n{prepare}\nos.write(1, b'x')\nsignal.pause()"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"x", "the child could not be prepared"
            yield process.pid
        finally:
            process.kill()
