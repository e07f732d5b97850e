"""Real metrics stores on loopback with data in a test directory: Prometheus and VictoriaMetrics."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import free_port, need, wait_until

SCRAPED = """\
global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}
scrape_configs:
  - job_name: gpuwarden-agent
    static_configs: [{{targets: [{targets}], labels: {{{labels}}}}}]
"""


@dataclass(frozen=True)
class Store:
    """A running store; `kind` is prometheus or victoria-metrics."""

    kind: str
    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Send SIGKILL, like a machine failure."""
        self.process.kill()
        self.process.wait(60)


def prometheus_command(port: int, config: Path, folder: Path) -> list[str]:
    """Command line of Prometheus."""
    return [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]


def victoria_command(port: int, config: Path, folder: Path) -> list[str]:
    """Command line of VictoriaMetrics."""
    return [
        "victoria-metrics",
        f"-promscrape.config={config}",
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-loggerLevel=ERROR",
        "-memory.allowedBytes=64MB",
    ]


KINDS: dict[str, Callable[[int, Path, Path], list[str]]] = {
    "prometheus": prometheus_command,
    "victoria-metrics": victoria_command,
}


@contextlib.contextmanager
def metric_store(
    kind: str, folder: Path, targets: Sequence[str], interval: str = "1s", **labels: str
) -> Iterator[Store]:
    """Run a store that scrapes these addresses, with these target labels."""
    need(shutil.which(kind) is not None, f"{kind} (Debian package {kind})")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scrape.yml"
    listed = ", ".join(f'"{target}"' for target in targets)
    more = ", ".join(f'{name}: "{value}"' for name, value in labels.items())
    file.write_text(SCRAPED.format(interval=interval, targets=listed, labels=more), encoding="utf-8")
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(KINDS[kind](port, file, folder), stdout=log, stderr=log, cwd=folder)
    store = Store(kind, f"http://127.0.0.1:{port}", process)
    try:
        wait_until(lambda: _ready(store), 20, f"{kind} is ready; it says {(folder / 'log').read_text()[-500:]}")
        yield store
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            store.kill()


def _ready(store: Store) -> bool:
    path = "/-/ready" if store.kind == "prometheus" else "/health"
    try:
        with urllib.request.urlopen(store.url + path, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
