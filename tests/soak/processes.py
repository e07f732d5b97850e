"""Processes of the soak test: the cluster and the daemon, and its configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from tests.soak.pods import CANARIES
from tests.soak.samples import read_metrics

READY = 180.0  # seconds until the daemon's first evaluation
RAISED = -5
CONFIG = """\
daemon:
  listen: 127.0.0.1:{port}
  state: {state}
  kubernetes: {{enabled: yes, kubeconfig: {kubeconfig}}}
  agents: {{port: {agents}}}
  alerts:
    receivers:
      - {{kind: webhook, name: canaries, url: "{hook}"}}
      - {{kind: wecom, name: everybody, url: "{bot}"}}
    group_by: [alertname, pod]
    routes:
      - {{match: {{namespace: {canaries}}}, receivers: [canaries]}}
      - {{receivers: [everybody]}}
"""


def configure(folder: Path, port: int, ports: dict[str, int], hook: str, bot: str) -> Path:
    """Write kubeconfig and configuration, and return the path."""
    server = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{ports['api']}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    whole = {
        "apiVersion": "v1", "kind": "Config", "clusters": [server], "users": [{"name": "u", "user": {}}],
        "contexts": [context], "current-context": "c",
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(whole))
    config = folder / "gpuwarden.yml"
    config.write_text(
        CONFIG.format(
            port=port, state=folder / "state", kubeconfig=folder / "kubeconfig", agents=ports["agents"], hook=hook,
            bot=bot, canaries=CANARIES,
        )
    )  # fmt: skip
    return config


@contextmanager
def cluster_process(data: Path, rate: float) -> Iterator[tuple[dict[str, int], subprocess.Popen[bytes]]]:
    """Run the cluster; yields its ports and process."""
    command = [sys.executable, "-m", "tests.soak.cluster", str(data), str(rate)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    _raise(process.pid)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline()), process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def daemon_process(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon until the context exits."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    command = [str(Path(sys.executable).with_name("gpuwarden")), "daemon", "--config", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output, start_new_session=True)
    _raise(process.pid)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def _raise(pid: int) -> None:
    """Raise a process's priority if permitted: other programs are not part of the test."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, min(RAISED, os.getpriority(os.PRIO_PROCESS, pid)))
        Path(f"/proc/{pid}/autogroup").write_text(str(RAISED))  # counts across sessions


def wait_for_evaluation(daemon: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + READY
    while time.monotonic() < deadline and daemon.poll() is None:
        with suppress(requests.RequestException):
            text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
            if read_metrics(text, 0.0, 0.0).look is not None:
                return
        time.sleep(0.5)
    raise RuntimeError(f"the daemon has not looked within {READY:.0f} s, or has ended")


def begin_changes(cluster: subprocess.Popen[bytes]) -> None:
    """Start the changes of the cluster."""
    assert cluster.stdin is not None
    cluster.stdin.write(b"\n")
    cluster.stdin.flush()
