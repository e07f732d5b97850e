"""`gpuwarden top`: nodes and GPUs, live."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import click

from monitor.cli.base import config_option, lang_option, language, load_config, or_exit

if TYPE_CHECKING:
    from monitor.cli.top_source import TopSource

REDRAW_SECONDS = 1.0
QUIT_KEYS = ("q", "\x03", "\x04")
ESCAPE_SECONDS = 0.05  # within which the rest of an escape sequence follows
ESCAPES = {
    "[A": "up", "[B": "down", "OA": "up", "OB": "down", "[5~": "page-up", "[6~": "page-down", "[H": "home",
    "[F": "end", "[1~": "home", "[4~": "end",
}  # fmt: skip


@click.command()
@click.option("--once", is_flag=True, help="Print one frame and exit, as without a terminal.")
@lang_option
@config_option
def top(once: bool, lang: str | None, config_path: str | None) -> None:
    """Show nodes and GPUs live: utilisation, memory, temperature, power, holder, state. Keys sort; q quits."""
    config = load_config(config_path)
    from monitor.cli.tables import make_console
    from monitor.cli.top_screen import draw
    from monitor.cli.top_source import open_source
    from monitor.present.top import TopChoice, top_frame

    lang = language(lang)
    with contextlib.ExitStack() as stack:
        source = or_exit(lambda: stack.enter_context(open_source(config, lang)))
        if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            console = make_console(sys.stdout)
            frame = top_frame(source.view, source.alerts, TopChoice(), lang)
            console.print(draw(frame, lang, console.width, None))
            return
        _watch(source, lang)


def _watch(source: TopSource, lang: str) -> None:
    """Show frames until q is pressed. The terminal is restored however this ends."""
    from rich.live import Live

    from monitor.cli.tables import make_console
    from monitor.cli.top_screen import draw, lines_around
    from monitor.present.top import TopChoice, pressed, top_frame

    signal.signal(signal.SIGTERM, _exit)
    console = make_console(sys.stdout)
    choice = TopChoice()
    screen = Live(console=console, screen=True, auto_refresh=False)
    with _raw_keys() as keys, source.refreshed(), screen as live:
        while True:
            frame = top_frame(source.view, source.alerts, choice, lang)
            trouble = source.trouble(time.time())
            page = max(1, console.height - lines_around(frame, trouble))
            live.update(draw(frame, lang, console.width, page, trouble), refresh=True)
            key = keys.wait()
            if key in QUIT_KEYS:
                return
            choice = pressed(choice, key, len(frame.rows), page)


def _exit(_signal: int, _frame: object) -> NoReturn:
    sys.exit(0)


class _Keys:
    """Keys of the terminal, which has to be in cbreak mode."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def wait(self) -> str:
        """The next key; empty if there is none until the next redraw."""
        if not select.select([self._fd], [], [], REDRAW_SECONDS)[0]:
            return ""
        key = os.read(self._fd, 1).decode(errors="replace")
        if key == "":
            return QUIT_KEYS[0]  # the terminal is gone
        if key == "\x1b":
            return self._escape()
        return {"\t": "tab", " ": "page-down"}.get(key, key)

    def _escape(self) -> str:
        sequence = ""
        while len(sequence) < max(map(len, ESCAPES)) and select.select([self._fd], [], [], ESCAPE_SECONDS)[0]:
            sequence += os.read(self._fd, 1).decode(errors="replace")
            if sequence in ESCAPES:
                return ESCAPES[sequence]
        return ""


@contextlib.contextmanager
def _raw_keys() -> Iterator[_Keys]:
    """Read keys one by one without echo."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    try:
        yield _Keys(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
