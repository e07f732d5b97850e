"""A real daemon on a state directory, for attacks on that directory."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running


class RunningDaemon:
    """A started daemon with its page and its log."""

    def __init__(self, process: subprocess.Popen[str], page: str) -> None:
        self.process = process
        self.page = page
        self.log = ""
        threading.Thread(target=self._read_log, daemon=True).start()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):  # it is closed when the daemon has ended
            for line in self.process.stderr:
                self.log += line

    def json(self, path: str) -> Any:
        return json.loads(get(self.page + path)[2])

    def answers(self) -> bool:
        assert self.process.poll() is None, f"ended with code {self.process.returncode}: {self.log}"
        try:
            return get(f"{self.page}/healthz")[0] == 200
        except OSError:
            return False

    def alerts(self, rule: str) -> list[dict[str, Any]]:
        """Alerts of a rule that the daemon shows."""
        return [alert for alert in self.json("/v1/alerts") if alert["rule"] == rule]

    def wait_alert(self, cause: str, *words: str) -> dict[str, Any]:
        """Self-monitoring alert with this cause and these words in its headline, waited for."""
        found: list[dict[str, Any]] = []

        def present() -> bool:
            found[:] = [alert for alert in self.alerts("monitor-blind") if alert["cause"] == cause]
            return bool(found) and all(word in found[0]["headline"] for word in words)

        wait_until(present, 30, f"an alert monitor-blind/{cause} that says {words}")
        return found[0]

    def metric(self, name: str) -> float | None:
        match = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", get(f"{self.page}/metrics")[2], re.MULTILINE)
        return float(match[1]) if match else None


@contextlib.contextmanager
def daemon(state: Path, config: Path | None = None, **settings: str) -> Iterator[RunningDaemon]:
    """Run a daemon until the context exits; it answers when the context begins."""
    port = free_port()
    environ = quiet_environment(state, DAEMON__LISTEN=f"127.0.0.1:{port}", **settings)
    line = command("daemon", *(("--config", str(config)) if config else ()))
    with running(line, environ, stdout=subprocess.DEVNULL) as process:
        started = RunningDaemon(process, f"http://127.0.0.1:{port}")
        wait_until(started.answers, 30, "the daemon answers")
        yield started
