"""State that is in use, damaged, newer, read-only or locked: the daemon starts, keeps what is readable and says so."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from tests.security.state_daemon import daemon
from tests.support.command import quiet_environment, run


def test_a_second_daemon_on_the_same_directory_ends_with_code_2_and_kill_9_leaves_no_lock(tmp_path: Path) -> None:
    with daemon(tmp_path) as first:
        second = run("daemon", environ=quiet_environment(tmp_path))
        assert second.returncode == 2
        for word in (str(tmp_path), f"process {first.process.pid} on {socket.gethostname()}", "daemon.state"):
            assert word in second.stderr
        assert first.answers()
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(30)
    with daemon(tmp_path) as third:
        assert third.answers()
