"""A real Prometheus that holds given samples and scrapes nothing."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import free_port, need, wait_until
from tests.support.command import running


@contextmanager
def prometheus_with(directory: Path, openmetrics: str) -> Iterator[str]:
    """Run a server that holds the samples of a text in OpenMetrics; yield its host and port."""
    need(shutil.which("promtool") is not None and shutil.which("prometheus") is not None, "Debian package prometheus")
    (directory / "history.txt").write_text(openmetrics, encoding="utf-8")
    (directory / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    filled = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"],
        cwd=directory, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert filled.returncode == 0, filled.stderr
    address = f"127.0.0.1:{free_port()}"
    line = [
        "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=50y",
        f"--web.listen-address={address}", "--log.level=error",
    ]  # fmt: skip
    with running(line, {"HOME": str(directory)}, directory, subprocess.DEVNULL):
        wait_until(lambda: _ready(address), 30, "Prometheus is ready")
        yield address


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
