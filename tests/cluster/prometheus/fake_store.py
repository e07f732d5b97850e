"""A scripted metrics store on loopback."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics
from monitor.facts.node import NodeSnapshot

Labels = dict[str, str]


class FakeStore:
    """Store of agents, each with target labels and scrape time. `behave` may replace an answer."""

    def __init__(self) -> None:
        self.agents: list[tuple[Labels, NodeSnapshot | None, float]] = []  # None: `up` is 0
        self.more: dict[str, Any] = {}  # further fields of every response
        self.behave: Callable[[str], tuple[int, bytes] | None] = lambda _: None
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.url = ""

    def scrape(self, snapshot: NodeSnapshot, at: float | None = None, **labels: str) -> None:
        """Add an agent, with the labels of its target."""
        target = {"job": "gpuwarden-agent", "instance": f"{snapshot.node}:9835"} | labels
        self.agents = [each for each in self.agents if each[0] != target]
        self.agents.append((target, snapshot, time.time() if at is None else at))

    def fail_to_scrape(self, node: str) -> None:
        """Set `up` of this agent to 0, and make its series stale."""
        self.agents = [(t, None if s and s.node == node else s, at) for t, s, at in self.agents]

    def answer(self, query: str) -> tuple[int, bytes]:
        """Status and body of a response."""
        self.asked.append(query)
        taken = self.behave(query)
        if taken is not None:
            return taken
        result = [{"metric": labels, "value": [0, repr(float(value))]} for labels, value in self._series(query)]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}} | self.more
        return 200, json.dumps(body).encode()

    def _series(self, query: str) -> Iterator[tuple[Labels, float]]:
        for target, snapshot, at in self.agents:
            if query.startswith("up"):
                yield {"__name__": "up", **target}, snapshot is not None
            elif snapshot is None:
                continue
            elif query.startswith("timestamp"):
                yield target, at
            elif query.startswith("last_over_time"):
                yield {**target, **_renamed(target, {"node": snapshot.node})}, 1.0
            else:
                yield from self._families(query, target, snapshot)

    def _families(self, query: str, target: Labels, snapshot: NodeSnapshot) -> Iterator[tuple[Labels, float]]:
        wanted = set(query.partition('__name__=~"')[2].partition('"')[0].split("|"))
        if target["instance"].replace(".", "\\\\.") not in query:
            return
        for family in text_string_to_metric_families(AgentMetrics().render(snapshot).decode()):
            for sample in family.samples:
                if sample.name in wanted:
                    own = {name: value for name, value in sample.labels.items() if value}
                    yield {"__name__": sample.name, **target, **_renamed(target, own)}, sample.value


def _renamed(target: Labels, own: Labels) -> Labels:
    """Labels after a scrape, which renames those that the target has too."""
    return {f"exported_{name}" if name in target else name: value for name, value in own.items()}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextlib.contextmanager
def fake_store() -> Iterator[FakeStore]:
    """Run a store until the block ends."""
    store = FakeStore()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            store.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, body = store.answer(form["query"][0])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
            """Log nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
