"""A daemon that is suspended and resumed, as by a debugger, a frozen container or a sleeping machine."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

from tests.cluster.living import two_gpus
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.fake_agents import FakeAgent, reports, says_nothing

SILENT_AFTER = 3.0
PAUSE = 6.0


def test_nobody_was_silent_while_it_was_paused(tmp_path: Path) -> None:
    """Agents are not polled while the daemon is suspended; an agent that is silent afterwards is still reported."""
    with FakeAgent(reports(two_gpus("n1"))) as agent:
        environ = quiet_environment(
            tmp_path / "state",
            DAEMON__LISTEN=f"127.0.0.1:{free_port()}",
            DAEMON__AGENTS__STATIC=f"[{agent.target}]",
            DAEMON__AGENTS__INTERVAL="500ms",
            DAEMON__AGENTS__LIMIT="1s",
            DAEMON__RULES__AGENT_SILENT__SILENT_AFTER=f"{SILENT_AFTER}s",
        )
        log = tmp_path / "log"
        with running(["sh", "-c", f"exec {shlex.join(command('daemon'))} 2>{log}"], environ) as process:
            url = f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}"
            wait_until(lambda: _answers(url) and "nodes=1" in _said(log), 120, "it has looked")
            time.sleep(1.0)
            process.send_signal(signal.SIGSTOP)
            time.sleep(PAUSE)
            process.send_signal(signal.SIGCONT)
            time.sleep(2.0)
            assert "found agent-silent" not in _said(log)
            agent.behave = says_nothing
            wait_until(lambda: "found agent-silent" in _said(log), 120, "it is silent now")


def _answers(url: str) -> bool:
    try:
        return get(f"{url}/v1/findings")[0] == 200
    except OSError:
        return False


def _said(log: Path) -> str:
    return log.read_text()
