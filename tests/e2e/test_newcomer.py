"""A new user with only the README: clone, start, one line for WeCom, and an alert arrives. Needs no lab."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support import wait_until
from tests.support.command import get
from tests.support.receivers.bots import WeComBot

MARK = "run by tests/e2e/test_newcomer.py"
START, WECOM, TRY = (block.text.strip() for block in blocks(ROOT / "README.md") if block.mark == MARK)
ADDRESS = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY"
GONE = "http://127.0.0.1:9/"  # the discard port, where nothing listens


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def repository(directory: Path) -> Path:
    """A repository with the working tree, to be cloned."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    git = ["git", "-c", "user.name=newcomer", "-c", "user.email=newcomer@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], cwd=directory, check=True, timeout=60)
    return directory


@contextmanager
def running(line: str, environ: dict[str, str], directory: Path, page: int) -> Iterator[None]:
    """Run a README command until the page responds, and interrupt it at the end."""
    log = directory.parent / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-c", line], env=environ, cwd=directory, stdout=out, stderr=out, start_new_session=True
        )
        try:
            wait_until(lambda: process.poll() is not None or answers(page), 180, f"the page answers: {log}")
            assert process.poll() is None, log.read_text()
            yield
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(60)


def answers(page: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{page}/healthz")[0] == 200
    except OSError:
        return False


@pytest.mark.timeout(400)
def test_from_the_clone_to_the_first_alert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, state, home = (tmp_path / name for name in ("source", "state", "home"))
    for directory in (source, state, home):
        directory.mkdir()
    repository(source)
    page = free_port()
    # Ports and state directory differ from the defaults, because gpuwarden may be in use on this machine.
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("GPUWARDEN_", "VENV", "MAKE", "ARGS"))
    }
    environ |= {
        "GPUWARDEN_AGENT__LISTEN": f"127.0.0.1:{free_port()}",
        "GPUWARDEN_DAEMON__LISTEN": f"127.0.0.1:{page}",
        "GPUWARDEN_AGENT__PATHS__STATE": str(state),
        "GPUWARDEN_DAEMON__STATE": str(state),
        "GPUWARDEN_DAEMON__KUBERNETES__ENABLED": "no",
    }
    began = time.monotonic()
    with running(START.replace("URL", str(source)), environ, home, page):
        started = time.monotonic()
    clone = home / "gpuwarden"
    with WeComBot() as wecom:
        line = WECOM.replace(ADDRESS, f"{{kind: wecom, url: '{wecom.url}'}}")
        # A service that is down is the real finding.
        with running(f"{line}; exec make run", environ | {"GPUWARDEN_DAEMON__SERVICES": f"[{GONE}]"}, clone, page):
            tried = subprocess.run(
                ["bash", "-c", f"{line}; {TRY}"],
                env=environ,
                cwd=clone,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert tried.returncode == 0, f"{tried.stdout}{tried.stderr}"
            wait_until(lambda: len(wecom.taken) >= 1, 10, "the test message arrives")
            wait_until(lambda: any("127.0.0.1:9" in text(each) for each in wecom.taken), 120, "the alert arrives")
    ended = time.monotonic()
    message = next(each for each in wecom.taken if "127.0.0.1:9" in text(each))
    assert message["msgtype"] == "markdown"
    assert "Service down" in text(message)
    with capsys.disabled():
        print(f"\nfrom clone to page {started - began:.0f} s, to the first alert {ended - began:.0f} s")


def text(message: dict[str, dict[str, str]]) -> str:
    """Text of a WeCom message."""
    return str(message[str(message["msgtype"])]["content"])
