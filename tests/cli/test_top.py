"""`gpuwarden top` in a real terminal, and without one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from tests.present.test_top import VIEW
from tests.support import free_port
from tests.support.command import STOP_LIMIT, command, quiet_environment, run
from tests.support.fake_agents import Behaviour, FakeAgent, answers

LIMIT_SECONDS = 180.0
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|.)")


def serves(view: bytes = msgspec.json.encode(VIEW)) -> Behaviour:
    """A daemon with one view and no alerts."""

    def behave(handler: object) -> None:
        path = handler.path  # type: ignore[attr-defined]
        answers(view if path == "/v1/view" else b"[]")(handler)  # type: ignore[arg-type]

    return behave


class Screen:
    """A terminal of 24 lines in which a command runs."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self._fd = fd
        self.process = process
        self.written = ""

    def press(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def shows(self, *words: str) -> str:
        """Wait until all words were written since the last call; return what was."""
        deadline = time.monotonic() + LIMIT_SECONDS
        seen = ""
        while not all(word in SEQUENCE.sub("", seen) for word in words):
            assert time.monotonic() < deadline, f"{words} not in {seen!r}"
            seen += self._read()
        return seen

    def _read(self) -> str:
        if not select.select([self._fd], [], [], 1.0)[0]:
            return ""
        try:
            text = os.read(self._fd, 65536).decode(errors="replace")
        except OSError:  # the command has ended
            text = ""
        self.written += text
        return text

    def end(self) -> int:
        """Exit code of the command, which ends by itself."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "still running"
            self._read()
        while self._read():
            pass
        return self.process.wait()

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._fd)[3] & termios.ECHO)


@contextlib.contextmanager
def screen(environ: dict[str, str], *words: str, columns: int = 100) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = environ | {"TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environ.pop(name, None)
    process = subprocess.Popen(
        command("top", *words), env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Screen(ours, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(STOP_LIMIT)
        os.close(ours)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return quiet_environment(tmp_path, DAEMON__LISTEN=f"127.0.0.1:{free_port()}")


@pytest.fixture
def daemon(environ: dict[str, str]) -> Iterator[FakeAgent]:
    with FakeAgent(serves(), port=int(environ["GPUWARDEN_DAEMON__LISTEN"].rpartition(":")[2])) as fake:
        yield fake


@pytest.mark.usefixtures("daemon")
def test_keys_sort_switch_and_quit(environ: dict[str, str]) -> None:
    with screen(environ, "--lang", "en") as terminal:
        shown = terminal.shows("2 nodes, 3 GPUs", "n2/0", "n2/1", "n10/0", "No alert is firing", "by name", "q:quit")
        assert "\x1b[" in shown
        assert not terminal.echoes()
        assert re.search("n2/0.*n2/1.*n10/0", SEQUENCE.sub("", shown), re.DOTALL)
        terminal.press("m")
        shown = terminal.shows("by GPU memory")
        assert "n2/1" in shown
        terminal.press("\t")
        terminal.shows("1-2 of 2", "agent silent", "1/2")
        terminal.press("\x1b[B")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.echoes(), "the terminal is as it was"
        assert terminal.written.rstrip().endswith("\x1b[?1049l"), "and shows what it showed"


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_restores_the_terminal(environ: dict[str, str], how: signal.Signals) -> None:
    with screen(environ) as terminal:
        terminal.shows("n2/0")
        terminal.process.send_signal(how)
        terminal.end()
        assert terminal.echoes()
        assert "\x1b[?1049l" in terminal.written


def test_a_daemon_that_goes_away_leaves_the_last_figures_with_their_age(
    environ: dict[str, str], daemon: FakeAgent
) -> None:
    with screen(environ, "--lang", "zh") as terminal:
        terminal.shows("2 个节点，3 张 GPU")
        daemon.behave = answers(b'{"error": "starting"}', 503)
        assert "n2/0" in terminal.shows("没有响应", "starting")
        daemon.behave = serves()
        terminal.press("q")
        assert terminal.end() == 0


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("words", [(), ("--once",)])
def test_without_a_terminal_it_is_one_frame(environ: dict[str, str], words: tuple[str, ...]) -> None:
    result = run("top", "--lang", "en", *words, environ=environ)
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert all(word in result.stdout for word in ("2 nodes, 3 GPUs", "n2/0", "n10/0", "lab/zhang-0", "300 / 400 W"))
    assert "q:quit" not in result.stdout


@pytest.mark.usefixtures("daemon")
def test_one_frame_in_a_terminal_of_80_columns_keeps_the_names(environ: dict[str, str]) -> None:
    with screen(environ, "--once", columns=80) as terminal:
        terminal.shows("n2/0", "lab/zhang-0")
        assert terminal.end() == 0
        lines = SEQUENCE.sub("", terminal.written).splitlines()
        assert max(map(cell_len, lines)) <= 80


def test_without_a_daemon_and_without_a_cluster_it_is_code_3(environ: dict[str, str]) -> None:
    result = run("top", environ=environ | {"GPUWARDEN_DAEMON__AGENTS__STATIC": "[127.0.0.1:1]"})
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("gpuwarden: no daemon answers on ")
    assert result.stderr.count("\n") == 1
