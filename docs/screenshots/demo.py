"""A running demo, and what it says about itself."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
SPEED = "2"  # of the story
START_LIMIT_SECONDS = 120.0
SHOW_LIMIT_SECONDS = 600.0  # the whole story
REQUEST_LIMIT_SECONDS = 30.0
POLL_SECONDS = 0.5
STOP_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Demo:
    """A demo: the address of its page, the link that signs in once, and the address of its simulated group."""

    page: str
    login: str
    group: str

    def ask(self, path: str) -> Any:
        """Answer of the daemon."""
        with urllib.request.urlopen(f"{self.page}{path}", timeout=REQUEST_LIMIT_SECONDS) as answer:
            return json.load(answer)


@contextlib.contextmanager
def running_demo(language: str) -> Iterator[Demo]:
    """Run `gpuwarden demo` in a language."""
    port = _free_port()
    options = ("--lang", language, "--listen", f"127.0.0.1:{port}", "--speed", SPEED)
    command = [sys.executable, "-m", "monitor.cli", "demo", *options]
    with tempfile.NamedTemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield wait_for(lambda: _started(process, Path(out.name)), START_LIMIT_SECONDS, "the demo starts")
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _started(process: subprocess.Popen[bytes], out: Path) -> Demo | None:
    """The demo, as soon as it has printed all addresses."""
    text = out.read_text(encoding="utf-8")
    if process.poll() is not None:
        raise RuntimeError(f"the demo ended:\n{text}")
    login = re.search(r"(http://[\d.:]+)/login#code=\S+", text)
    if login is None:
        return None
    others = [address for address in re.findall(r"http://[\d.:]+(?=/)", text) if address != login[1]]
    return Demo(login[1], login[0], f"{others[0]}/") if others else None


def wait_for(find: Callable[[], T | None], limit_seconds: float, what: str) -> T:
    """What `find` returns, as soon as it returns something. Raise TimeoutError."""
    deadline = time.monotonic() + limit_seconds
    while (found := find()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {limit_seconds:.0f} s: {what}")
        time.sleep(POLL_SECONDS)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
