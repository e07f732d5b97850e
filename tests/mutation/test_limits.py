"""Limits of mutants: what still runs ends by them, and no other process does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.mutation.limits import limit
from tests.support import need

# In namespaces of its own, so that no other program takes the freed process id.
SAME_ID = """
import os, signal, sys, time
from pathlib import Path
from tests.mutation.limits import limit

mutant = os.fork()
if not mutant:
    os._exit(0)
limit(mutant, 0.3)
os.waitpid(mutant, 0)
Path("/proc/sys/kernel/ns_last_pid").write_text(str(mutant - 1))
other = os.fork()
if not other:
    time.sleep(1.0)
    os._exit(7)
print(other == mutant, os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


def test_one_that_still_runs_is_ended() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        limit(process.pid, 0.1)
        assert process.wait(120) == -signal.SIGXCPU


def test_a_process_that_gets_the_id_of_an_ended_one_is_not_touched() -> None:
    need(os.geteuid() == 0 and shutil.which("unshare") is not None, "root and unshare")
    line = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", SAME_ID]
    done = subprocess.run(line, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "True 7\n", done.stderr
