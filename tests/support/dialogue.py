"""A conversation with a command in a terminal of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Self

from tests.support.command import command

LIMIT_SECONDS = 180.0  # for each answer of the command


class Dialogue:
    """What the command prints, and what is typed."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self._read_until = 0
        self.text = ""

    @classmethod
    @contextlib.contextmanager
    def of(cls, *arguments: str, environ: Mapping[str, str]) -> Iterator[Self]:
        """Run `gpuwarden` with these arguments, and kill it at the end if it still runs."""
        terminal, inside = pty.openpty()
        process = subprocess.Popen(command(*arguments), env=environ, stdin=inside, stdout=inside, stderr=inside)
        os.close(inside)
        try:
            yield cls(process, terminal)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            os.close(terminal)

    def answer(self, question: str, answer: str) -> None:
        """Wait for the question, then type the answer and ENTER."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while (found := re.compile(question).search(self.text, self._read_until)) is None:
            assert self._read(deadline), f"{question!r} was not asked: {self.text}"
        self._read_until = found.end()
        os.write(self._terminal, f"{answer}\n".encode())

    def end(self) -> int:
        """Exit code of the command, after all of its output."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._read(deadline):
            pass
        return self._process.wait(LIMIT_SECONDS)

    def _read(self, deadline: float) -> bool:
        """Read more output; False at its end."""
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more was printed: {self.text}"
        try:
            content = os.read(self._terminal, 4096)
        except OSError:  # the command has closed the terminal
            return False
        self.text += content.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(content)
