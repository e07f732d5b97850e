"""A real kube-scheduler for an API server of `tests.support.kube_api`."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

from tests.lab.http_probes import answers
from tests.lab.variants import chosen
from tests.support import need, wait_until
from tests.support.kube_api import KubeApiServer, free_ports

STOP_SECONDS = 20.0


@contextmanager
def kube_scheduler(api: KubeApiServer, root: Path) -> Iterator[None]:
    """Run the scheduler; its log is in `root`."""
    program = chosen().built_programs()["kube-scheduler"]
    need(program is not None, "kube-scheduler (built by the lab, or named by KUBE_SCHEDULER)")
    (port,) = free_ports(1)
    command = [
        str(program), f"--kubeconfig={api.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
        f"--secure-port={port}", "--kube-api-qps=500", "--kube-api-burst=1000",
    ]  # fmt: skip
    with (root / "scheduler.log").open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    unverified = ssl._create_unverified_context()  # its certificate is generated in memory; this is loopback only
    try:
        wait_until(
            lambda: answers(HTTPSConnection("127.0.0.1", port, timeout=3, context=unverified), "/healthz"),
            60,
            f"the scheduler responds (see {root / 'scheduler.log'})",
        )
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
