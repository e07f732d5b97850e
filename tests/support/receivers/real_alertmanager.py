"""A real Alertmanager (Debian package) on loopback, with data in a test directory."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import free_port, need, wait_until

BINARY = "prometheus-alertmanager"
CONFIG = """\
global:
  resolve_timeout: 5m
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 4h
receivers:
  - name: hook
    webhook_configs:
      - url: {hook}
        send_resolved: true
        http_config: {{authorization: {{credentials: {token}}}}}
"""
CALLBACK_TOKEN = "callback-0123456789abcdef"


@dataclass(frozen=True)
class RealAlertmanager:
    url: str

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are firing in Alertmanager."""
        found: list[dict[str, Any]] = self.get("/api/v2/alerts")
        return found

    def _ready(self) -> bool:
        try:
            return bool(self.get("/api/v2/status"))
        except OSError:
            return False


@contextmanager
def real_alertmanager(folder: Path, hook: str) -> Iterator[RealAlertmanager]:
    """Run Alertmanager with a webhook receiver for `hook`, called with CALLBACK_TOKEN, until the context exits."""
    need(shutil.which(BINARY) is not None, f"{BINARY} (Debian package)")
    config = folder / "alertmanager.yml"
    config.write_text(CONFIG.format(hook=hook, token=CALLBACK_TOKEN))
    running = RealAlertmanager(f"http://127.0.0.1:{free_port()}")
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [BINARY, f"--config.file={config}", f"--storage.path={folder / 'data'}", "--cluster.listen-address=",
             f"--web.listen-address={running.url.removeprefix('http://')}"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            wait_until(running._ready, 15, "Alertmanager answers")
            yield running
        finally:
            process.terminate()
            process.wait(60)
