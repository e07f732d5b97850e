"""Starts mutmut with limits of time that end only the mutant they were set for.

mutmut 3.8 forgets no limit: it signals the process id of each mutant when its time is over, minutes after the mutant
has ended, and by then the kernel may have given the id to any other process of the machine.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import signal
import sys
import threading
from contextlib import suppress

MILLISECONDS = 1000.0


def limit(pid: int, timeout_s: float) -> None:
    """Send SIGXCPU to a child that still runs after so many seconds; it must not have been reaped yet."""
    process = os.pidfd_open(pid)
    threading.Thread(target=_end_after, args=(process, timeout_s), daemon=True).start()


def _end_after(process: int, seconds: float) -> None:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    try:
        if not poll.poll(seconds * MILLISECONDS):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGXCPU)
    finally:
        os.close(process)


def main() -> None:
    """Run mutmut with the arguments of this program."""
    sys.path[0] = os.getcwd()  # as `python -m mutmut` has it
    isolation = importlib.import_module("mutmut.workers.isolation")
    if not callable(getattr(isolation, "register_timeout", None)):
        raise SystemExit("mutmut no longer sets its limits by register_timeout: adapt tests/mutation/limits.py")
    isolation.register_timeout = limit  # type: ignore[attr-defined]  # the module is known only at run time
    runpy.run_module("mutmut", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
