"""One loopback server that receives the messages of all three and exports what kube-state-metrics would."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from monitor.cluster.platforms import all_rules, required_fields
from monitor.facts.kube import PodFact
from monitor.kube import resources
from monitor.kube.client import connect
from monitor.kube.reflector import Reflector
from monitor.kube.store import ObjectStore

METRICS = "/metrics"
NAME = "kube_pod_container_status_waiting_reason"
ALERTS = ("ImagePull", "ImagePullFails")  # alert names in gpuwarden and in the Prometheus rule
SETTLE = 20.0

Arrivals = dict[tuple[str, str], float]


class Hook:
    """Records the monotonic time of the first message about a pod at each path."""

    def __init__(self, url: str, arrivals: Arrivals) -> None:
        self.url = url
        self._arrivals = arrivals

    def address(self, who: str) -> str:
        return f"{self.url}/{who}"

    @property
    def target(self) -> str:
        return self.url.removeprefix("http://")

    def arrived(self, who: str, pod: str) -> float | None:
        return self._arrivals.get((who, pod))


@contextmanager
def hook(kubeconfig: str) -> Iterator[Hook]:
    """Serve until the context exits."""
    arrivals: Arrivals = {}
    with _pods(kubeconfig) as pods:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(arrivals, lambda: exposed(pods)))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="hook", daemon=True).start()
        try:
            yield Hook(f"http://127.0.0.1:{server.server_port}", arrivals)
        finally:
            server.shutdown()
            server.server_close()


@contextmanager
def _pods(kubeconfig: str) -> Iterator[ObjectStore[PodFact]]:
    """Follow the pods, so that each scrape shows their current state."""
    store: ObjectStore[PodFact] = ObjectStore()
    reflector = Reflector(connect(kubeconfig), resources.pods(required_fields(all_rules())), store)
    reflector.start()
    try:
        if not reflector.wait_settled(SETTLE):
            raise RuntimeError("the exporter cannot list the pods")
        yield store
    finally:
        reflector.stop()
        reflector.join(2.0)


def exposed(pods: ObjectStore[PodFact]) -> str:
    """Waiting containers with reasons, in the format of kube-state-metrics."""
    lines = [f"# TYPE {NAME} gauge"]
    for pod in pods.snapshot().items:
        for status in pod.statuses:
            if status.state == "waiting" and status.reason:
                labels = {
                    "namespace": pod.namespace,
                    "pod": pod.name,
                    "uid": pod.uid,
                    "container": status.name,
                    "reason": status.reason,
                }
                written = ",".join(f'{name}="{value}"' for name, value in labels.items())
                lines.append(f"{NAME}{{{written}}} 1")
    return "\n".join(lines) + "\n"


def _handler(arrivals: Arrivals, metrics: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(metrics().encode())

        def do_POST(self) -> None:
            body, now = self.rfile.read(int(self.headers["Content-Length"])), time.monotonic()
            for alert in json.loads(body)["alerts"]:
                labels = alert["labels"]
                if alert["status"] == "firing" and labels["alertname"] in ALERTS:
                    arrivals.setdefault((self.path.removeprefix("/"), labels["pod"]), now)
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence the request log."""

    return Handler
