"""The tutorial, followed literally in both languages. Only addresses are replaced: of the repository, robot and pages.

Every command is typed in a terminal and has to succeed; what the tutorial shows has to appear there or in the group.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from monitor.cli.main import main
from tests.docs.pages import ROOT, blocks
from tests.docs.reader import DEMO, Reader
from tests.docs.terminal import machine, terminal
from tests.e2e.test_newcomer import ADDRESS, repository
from tests.support import free_port, wait_until
from tests.support.command import get
from tests.support.receivers.bots import WeComBot

MARK = "run by tests/docs/test_tutorial.py"
PAGES = {"en": ROOT / "docs" / "tutorial.md", "zh": ROOT / "docs" / "zh" / "tutorial.md"}
PAGE_PORT = "9836"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository to clone."""
    return repository(tmp_path_factory.mktemp("source"))


@dataclass
class Place:
    """Where a reader works, and the port of the page there."""

    reader: Reader
    home: Path
    port: int

    @property
    def clone(self) -> Path:
        return self.home / "gpuwarden"

    def shows_an_outage(self) -> bool:
        return '"rule"' in get(f"http://127.0.0.1:{self.port}/v1/findings")[2]

    def lend_environment(self) -> None:
        """Lend the clone the command of the tests' environment, newer than its lock file: nothing is installed."""
        commands = self.clone / ".venv" / "bin"
        commands.mkdir(parents=True)
        (commands / "gpuwarden").symlink_to(Path(sys.executable).with_name("gpuwarden"))
        (commands.parent / ".runtime").touch()


@pytest.fixture
def place(source: Path, tmp_path: Path) -> Iterator[Place]:
    home, state, port = tmp_path / "home", str(tmp_path / "state"), free_port()
    home.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GPUWARDEN_", "LC_", "MAKE", "ARGS"))
    }
    # Ports and state directory differ from the defaults, because gpuwarden may be in use on this machine.
    environ = kept | {
        "HOME": str(home),
        "KUBECONFIG": "",
        "PYTHONPATH": str(home / "gpuwarden"),  # the code of the clone, not that of the tests
        "TZ": "Asia/Shanghai",
        "GPUWARDEN_AGENT__LISTEN": f"127.0.0.1:{free_port()}",
        "GPUWARDEN_DAEMON__LISTEN": f"127.0.0.1:{port}",
        "GPUWARDEN_AGENT__PATHS__STATE": state,
        "GPUWARDEN_DAEMON__STATE": state,
    }
    with ExitStack() as stack:
        first = stack.enter_context(machine(tmp_path))
        robot = stack.enter_context(WeComBot())
        own = {
            "URL": str(source),
            ADDRESS: robot.url,
            PAGE_PORT: str(port),
            DEMO: f"{DEMO} ARGS='--listen 127.0.0.1:{port}'",
        }
        shell = stack.enter_context(terminal(first, home, environ))
        reader = Reader(shell, lambda: stack.enter_context(terminal(first, home / "gpuwarden", environ)), robot, own)
        yield Place(reader, home, port)


@pytest.mark.e2e
@pytest.mark.parametrize("language", PAGES)
def test_it_does_what_it_says(language: str, place: Place) -> None:
    page = blocks(PAGES[language])
    assert {block.mark for block in page if block.kind == "sh"} == {MARK}
    for number, _ in enumerate(place.reader.follow(page)):
        if number == 0:
            place.lend_environment()
        elif page[number - 1].text.strip() == DEMO:
            wait_until(place.shows_an_outage, 120, "the demo shows an outage")
    assert "</html>" in (place.clone / "report.html").read_text(encoding="utf-8")
    assert "imagenet-2012" in place.reader.shell.run("ls /mnt/share/datasets")


@pytest.mark.parametrize("language", PAGES)
def test_its_commands_exist(language: str) -> None:
    lines = [line for block in blocks(PAGES[language]) if block.kind == "sh" for line in block.text.splitlines()]
    commands = [shlex.split(line.partition(" > ")[0])[1:] for line in lines if line.startswith("gpuwarden ")]
    assert len(commands) > 5
    for words in commands:
        command: click.Command = main
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        # Checks arguments and options, and runs nothing. The names of help are those of `main`: a command keeps them.
        command.make_context(command.name, words, **main.context_settings).close()


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("```sh\nls /nonexistent\n```\n", "ended with code 2"),
        ("```sh\necho one\n```\n\n```text\none\ntwo\n```\n", "is shown:\none\ntwo"),
        ("```sh\nread -p 'Which [a]: '\n```\n\n```text\nWhat [a]: b\n```\n", "What [a]:"),
        ("```sh\ntrue\n```\n\n<!-- in the group -->\n```text\nhello\n```\n", "in the group:\nhello"),
    ],
    ids=["command", "output", "question", "message"],
)
def test_a_wrong_page_fails(page: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page.md"
    file.write_text(page, encoding="utf-8")
    with machine(tmp_path) as first, terminal(first, tmp_path, os.environ) as shell, WeComBot() as robot:
        reader = Reader(shell, lambda: shell, robot, {})
        monkeypatch.setattr("tests.docs.terminal.MIN_WAIT_SECONDS", 2)
        monkeypatch.setattr("tests.docs.reader.wait_until", impatient)
        with pytest.raises((AssertionError, pytest.fail.Exception)) as failure:
            list(reader.follow(blocks(file)))
    assert says in str(failure.value)


def impatient(predicate: Callable[[], object], _: float, what: str) -> None:
    if not predicate():
        pytest.fail(what)
