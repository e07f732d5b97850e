"""StopSignal.wait ends on a stop signal and on nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

WAITING = """
from monitor.base.signals import StopSignal
stop = StopSignal()
print("waiting", flush=True)
while not stop.wait(0.3):
    pass
print("stopped", flush=True)
"""


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_paused_and_continued_is_not_stopped(which: signal.Signals) -> None:
    """Suspended for longer than the wait, as by a debugger, a frozen container or a sleeping machine."""
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            for _ in range(3):
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.5)
                process.send_signal(signal.SIGCONT)
                time.sleep(0.2)
            assert process.poll() is None
            process.send_signal(which)
            assert process.stdout.readline() == "stopped\n"
            assert process.wait(60) == 0
        finally:
            process.kill()
