"""The overview of 1,000 nodes with 8 GPUs each and 10,000 pods, as served to a browser.

The cluster is that of `bench.detect`, with problems on one node in twenty; its findings are alerts of the real
dispatcher. A separate process serves it over HTTP. Every request sees another view, in which every GPU has another
utilisation and one in two hundred another state: more than changes between two evaluations of a real cluster.

*A page* is the whole overview, timed from the request to the last byte, compressed. *Transferred* is that page with its
styles and scripts. *An update* is what an open page requests every 1.5 s, with the sections that it has; its cost is
CPU time of the serving process including compression and HTTP.
"""

from __future__ import annotations

import gzip
import http.client
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import psutil

from bench.cluster_data import write
from bench.detect import BEAT, NOW, Facts, read, worlds
from bench.plot import Bar, Plot
from bench.report import Goal, Report
from monitor.config.alerts import AlertsConfig
from monitor.daemon.alerting import AlertingInputs, AlertingService
from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.explain.fits.model import FitsRequest
from monitor.facts.cluster import ClusterView, GpuState, GpuView
from monitor.facts.findings import Finding
from monitor.present.findings import LocalizedFinding, localize_findings
from monitor.queries.alerts import AlertQueries
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.web.app import create_app
from monitor.web.context import PageData
from monitor.web.server import WebServer

LARGE, SMALL = 1000, 100
PAGES, UPDATES, WARM = 40, 40, 5
VIEWS = 6
CHANGED = 0.005  # share of GPUs that change state
STATES = (GpuState.FREE, GpuState.BUSY, GpuState.IDLE_HELD, GpuState.ZOMBIE)


def run() -> Report:
    """Measure a large and a small cluster, and return the report."""
    with TemporaryDirectory() as name:
        found = {nodes: measure(Path(name) / str(nodes), nodes) for nodes in (SMALL, LARGE)}
    large = found[LARGE]
    goals = (
        Goal("overview_p95_ms", large["p95"], 300, "the whole overview, 95th percentile"),
        Goal("page_bytes", large["bytes"], 1e6, "transferred for it, with styles and scripts"),
        Goal("page_update_cpu_ms", large["cpu"], 50, "CPU of one update"),
        Goal("page_update_bytes", large["update"], None, "transferred by one update"),
    )
    columns = ("nodes", "median ms", "p95 ms", "bytes", "unpacked", "update CPU ms", "update ms", "update bytes")
    keys = ("median", "p95", "bytes", "plain", "cpu", "update_ms", "update")
    rows = [(str(nodes), *(f"{each[key]:.0f}" for key in keys)) for nodes, each in found.items()]
    how = (__doc__ or "").partition("\n\n")[2].strip()
    plot = Plot(
        "The overview in a browser",
        "ms",
        [
            (what, [Bar(f"{nodes:,} nodes", each[key]) for nodes, each in found.items()])
            for what, key in (("whole page, 95th percentile", "p95"), ("an update, CPU", "cpu"))
        ],
    )
    return Report("page", "The page", how, goals, [("Overview", columns, rows)], plot)


def measure(directory: Path, nodes: int) -> dict[str, float]:
    """Serve a cluster of this many nodes and return a browser's figures."""
    write(directory, nodes)
    command = [sys.executable, "-m", "bench.page", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            return ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60), psutil.Process(process.pid))
        finally:
            process.kill()


def ask(connection: http.client.HTTPConnection, server: psutil.Process) -> dict[str, float]:
    """Load the page repeatedly, then keep one open."""
    for _ in range(WARM):
        get(connection, "/")
    took, sizes, page = [], [], b""
    for _ in range(PAGES):
        began = time.perf_counter()
        packed, page = get(connection, "/")
        took.append(1000 * (time.perf_counter() - began))
        sizes.append(len(packed))
    assets = re.findall(rb'(?:href|src)="(/static/[^"]+)"', page)
    shown = dict(re.findall(rb'<section id="(\w+)" data-v="(\w+)"', page))
    used, lengths, waits = cpu(server), [], []
    for _ in range(UPDATES):
        began = time.perf_counter()
        packed, changed = get(connection, "/?v=" + ",".join(f"{own.decode()}.{v.decode()}" for own, v in shown.items()))
        waits.append(1000 * (time.perf_counter() - began))
        lengths.append(len(packed))
        shown |= dict(re.findall(rb'<section id="(\w+)" data-v="(\w+)"', changed))
    return {
        "median": statistics.median(took),
        "p95": sorted(took)[int(len(took) * 0.95) - 1],
        "bytes": max(sizes) + sum(len(get(connection, asset.decode())[0]) for asset in assets),
        "plain": len(page),
        "cpu": 1000 * (cpu(server) - used) / UPDATES,
        "update_ms": statistics.median(waits),
        "update": statistics.mean(lengths),
    }


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def get(connection: http.client.HTTPConnection, path: str) -> tuple[bytes, bytes]:
    """A body as received and decompressed; RuntimeError without one."""
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path[:80]}: {answer.status}")
    return body, gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body


class Cluster:
    """A cluster that has changed at every read."""

    def __init__(self, views: list[ClusterView], found: tuple[Finding, ...]) -> None:
        self._views = cycle(views)
        self._found = found

    def view(self) -> ClusterView:
        return next(self._views)

    def overview(self) -> ClusterView:
        return self.view()

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...]:
        return localize_findings(self._found, lang)

    def why(self, names: Sequence[WantedName], lang: str) -> tuple[PodExplanation, ...]:
        raise NotImplementedError

    def fits(self, request: FitsRequest, lang: str) -> FitsAnswer:
        raise NotImplementedError


def views(first: ClusterView) -> list[ClusterView]:
    """Successive views, each with other figures for every GPU."""
    chance = random.Random(3)
    made = []
    for number in range(VIEWS):
        gpus = tuple(changed(gpu, chance) for gpu in first.gpus)
        made.append(msgspec.structs.replace(first, at=first.at + number, gpus=gpus))
    return made


def changed(gpu: GpuView, chance: random.Random) -> GpuView:
    load = None if gpu.utilization_ratio is None else min(1.0, max(0.0, gpu.utilization_ratio + chance.gauss(0, 0.03)))
    state = chance.choice(STATES) if chance.random() < CHANGED else gpu.state
    return msgspec.structs.replace(gpu, utilization_ratio=load, state=state)


def serve(directory: Path) -> None:
    """Serve the page of a cluster until killed."""
    facts: Facts = read(directory)
    world, view = worlds(facts)(NOW)
    found = detect(RULES, {}, RuleContext(world, NOW), DetectionHistory()).findings
    alerting = AlertingService(
        AlertsConfig(), str(directory), "http://127.0.0.1", AlertingInputs, now=lambda: NOW + BEAT
    )
    alerting.update(found)
    alerts = AlertQueries(alerting, now=lambda: NOW + BEAT)
    parts = PageData(agents=lambda: facts.inputs.agents, findings=lambda: found, alerts=alerting.dispatcher.snapshot)
    app = create_app(Cluster(views(view), found), alerts=alerts, page_data=parts)
    server = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    print(server.address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
