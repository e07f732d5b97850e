"""kube-state-metrics on loopback, following the pods of a cluster."""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.go_peers import go_peer
from bench.process import running
from tests.lab.logs import tail
from tests.support import free_port

WAITING_REASON = "kube_pod_container_status_waiting_reason"
START_LIMIT_SECONDS = 60.0


@contextmanager
def kube_state_metrics(kubeconfig: str, folder: Path) -> Iterator[str]:
    """Run it until the context exits; address of its metrics. RuntimeError with the end of its log if it fails."""
    port, log = free_port(), folder / "kube-state-metrics.log"
    command = [
        str(go_peer("kube-state-metrics")),
        f"--kubeconfig={kubeconfig}",
        "--resources=pods",
        "--host=127.0.0.1",
        f"--port={port}",
        "--telemetry-host=127.0.0.1",
        f"--telemetry-port={free_port()}",
    ]
    address = f"127.0.0.1:{port}"
    with running(command, dict(os.environ), log):
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while not is_serving(address):
            if time.monotonic() > deadline:
                raise RuntimeError(f"kube-state-metrics exports no pods; the end of its log:\n{tail(log)}")
            time.sleep(0.2)
        yield address


def is_serving(address: str) -> bool:
    """Whether it exports the metric of waiting containers."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as response:
            return f"# TYPE {WAITING_REASON} " in response.read().decode()
    except OSError:
        return False
