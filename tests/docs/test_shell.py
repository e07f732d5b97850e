"""Documented commands work: each is run here or by the test its mark names, or its mark says why it is not run."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, every_block
from tests.support import wait_until
from tests.support.command import command, get, quiet_environment, running
from tests.support.receivers.bots import WeComBot

BLOCKS = every_block(("sh", "console"))
# Each command once, even if documented several times.
LINES = sorted({line for block in BLOCKS if not block.mark for line in block.text.splitlines()})
CONFIG = """
agent: {{listen: "127.0.0.1:{agent}"}}
daemon:
  listen: 127.0.0.1:{page}
  kubernetes: {{enabled: no}}
  alerts: {{receivers: [{{kind: wecom, url: "{wecom}"}}]}}
  cleanup:
    policies: [{{name: pods, kind: pods, cron: "30 3 * * *", finished_after: 3d}}]
"""


def test_whatever_is_not_run_says_why() -> None:
    strange = [
        str(block) for block in BLOCKS if block.mark and not re.match(r"not run: \w|run by tests/\S+$", block.mark)
    ]
    assert strange == []
    named = {block.mark.removeprefix("run by ") for block in BLOCKS if block.mark.startswith("run by ")}
    assert [file for file in sorted(named) if not (ROOT / file).is_file()] == []


def test_what_an_answer_shows_is_what_is_tested() -> None:
    shown = [block for block in BLOCKS if block.kind == "console" and block.mark.startswith("run by ")]
    assert shown
    for block in shown:
        test = (ROOT / block.mark.removeprefix("run by ")).read_text(encoding="utf-8")
        assert [line for line in block.text.splitlines()[1:] if line not in test] == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment with a running agent and daemon for the commands."""
    directory = tmp_path_factory.mktemp("shell")
    environ = quiet_environment(directory)
    agent, page = free_port(), free_port()
    for name in ("AGENT__LISTEN", "DAEMON__LISTEN", "DAEMON__KUBERNETES__ENABLED"):
        del environ[f"GPUWARDEN_{name}"]
    with WeComBot() as wecom:
        config = directory / "gpuwarden.yml"
        config.write_text(CONFIG.format(agent=agent, page=page, wecom=wecom.url), encoding="utf-8")
        environ |= {
            "GPUWARDEN_CONFIG": str(config),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}",
        }
        with running(command("up"), environ, stdout=subprocess.DEVNULL):
            wait_until(lambda: _answers(page), 20, "the page answers")
            yield environ
        assert wecom.taken, "the test message of `alerts test` did not arrive"


def _answers(page: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{page}/v1/findings")[0] == 200
    except OSError:
        return False


@pytest.mark.e2e
@pytest.mark.parametrize("line", LINES)
def test_a_command_runs(line: str, shell: dict[str, str], tmp_path: Path) -> None:
    ran = subprocess.run(
        ["bash", "-c", line], env=shell, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode in (0, 1), f"{ran.stdout}{ran.stderr}"  # 1: a cluster problem was found
    assert not re.search(r"Traceback|Usage:", ran.stderr), ran.stderr
