"""Every page of a daemon in a cluster of 1,000 nodes with 8 GPUs each and 10,000 pods, as served to a browser.

The daemon runs as in `make soak`: it polls a thousand agents, follows an API server with 50 changes a second, evaluates
all rules, and has cleanup policies. It starts with a week of usage records and of history of that cluster. An
administrator loads all pages in turn, each time another node, GPU, pod, user, queue and alert, and what the charts of
a page request. A time is that from the request to the last byte, compressed.

*p95* is that of one page; `page_p95_ms` is the largest of all pages, `page_data_p95_ms` that of what charts request.
"""

from __future__ import annotations

import http.client
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlencode

import msgspec

from bench import cluster_data
from bench.detect import NOW, Facts, read, worlds
from bench.history import repeat_hour
from bench.report import Goal, Report
from monitor.facts.cluster import ClusterView
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE as HISTORY_FILE
from monitor.history.store import HistoryStore
from monitor.report.buckets import FIGURES, Bucket, charge, new_sums
from monitor.report.store import FILE as USAGE_FILE
from monitor.report.store import UsageStore
from tests.soak.processes import begin_changes, cluster_process, configure, daemon_process, wait_for_evaluation
from tests.support import free_port
from tests.support.local_token import local_headers
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import LocalServer

NODES = int(os.environ.get("BENCH_PAGES_NODES", "1000"))
CHANGES_PER_SECOND = 50.0
ROUNDS, WARM_ROUNDS = 40, 2
HOUR_SECONDS, MINUTE_SECONDS = 3600, 60
USAGE_HOURS = 8 * 24
CLEANUP = """\
  cleanup:
    policies:
      - {kind: gpus, name: gpus, cron: "*/5 * * * *", zombie_after: 30m, idle_after: 4h, notice: 30m}
      - {kind: images, name: images, high: 80%, low: 70%}
      - {kind: pods, name: pods, cron: "30 3 * * *", finished_after: 3d}
"""
PLAN = "/cleanup/plan"
PAGE_P95_MS, DATA_P95_MS = 150.0, 150.0

Paths = dict[str, Callable[[], str]]  # by route
Times = dict[str, list[float]]


def run() -> Report:
    """Measure all pages, and return the report."""
    with TemporaryDirectory() as name:
        pages, charts = measure(Path(name))
        plans = charts.pop(PLAN)
    worst, slowest = max(pages, key=lambda path: p95(pages[path])), max(charts, key=lambda path: p95(charts[path]))
    goals = (
        Goal("page_p95_ms", p95(pages[worst]), PAGE_P95_MS, f"95th percentile of the slowest of {len(pages)} pages"),
        Goal("page_data_p95_ms", p95(charts[slowest]), DATA_P95_MS, "the same of what charts and search request"),
        Goal("page_plan_p95_ms", p95(plans), None, "a cleanup plan, which an open page requests separately"),
        Goal(
            "page_median_ms",
            statistics.median(each for took in pages.values() for each in took),
            None,
            "median of all pages",
        ),
    )
    columns = ("page", "median ms", "p95 ms", "slowest ms")
    how = (__doc__ or "").partition("\n\n")[2].strip()
    tables = [("Pages", columns, rows(pages)), ("Requested by pages", columns, rows(charts))]
    return Report("pages", "All pages", how, goals, tables)


def rows(found: Times) -> list[tuple[str, ...]]:
    return [
        (path, *(f"{value:.0f}" for value in (statistics.median(took), p95(took), max(took))))
        for path, took in found.items()
    ]


def p95(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.95) - 1]


def measure(folder: Path) -> tuple[Times, Times]:
    """Milliseconds of all pages, and of what they request."""
    cluster_data.write(folder / "data", NODES)
    fill(folder / "state", read(folder / "data"))
    with ExitStack() as stack:
        ports, cluster = stack.enter_context(cluster_process(folder / "data", CHANGES_PER_SECOND))
        hook, bot = stack.enter_context(LocalServer()), stack.enter_context(WeComBot())
        port = free_port()
        config = configure(folder, port, ports, f"{hook.base}/", bot.url)
        config.write_text(config.read_text() + CLEANUP)
        daemon = stack.enter_context(daemon_process(config, folder / "daemon.log"))
        wait_for_evaluation(daemon, port)
        begin_changes(cluster)
        client = Client(port, local_headers(folder / "state"))
        chosen = Choices(client)
        pages, charts = chosen.pages(), chosen.requests()
        for _ in range(WARM_ROUNDS):
            timed(client, pages | charts)
        found: Times = {path: [] for path in pages | charts}
        for _ in range(ROUNDS):
            for path, took in timed(client, pages | charts).items():
                found[path].append(took)
    return {path: found[path] for path in pages}, {path: found[path] for path in charts}


def timed(client: Client, paths: Paths) -> dict[str, float]:
    """Milliseconds of one request for each path."""
    times: dict[str, float] = {}
    for path, make in paths.items():
        while path not in times:  # a pod that was chosen may be gone
            wanted, began = make(), time.perf_counter()
            if client.get(wanted):
                times[path] = 1000 * (time.perf_counter() - began)
    return times


class Client:
    """An administrator's browser."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Accept-Encoding": "gzip", **headers}

    def get(self, path: str) -> bool:
        """Whether there is such a page. RuntimeError unless the answer is 200 or 404."""
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError):  # it was idle for too long
            self._connection.close()
            return self.get(path)
        answer.read()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            raise RuntimeError(f"{path[:80]}: {answer.status}")
        return answer.status == HTTPStatus.OK

    def json(self, path: str, form: type | object) -> object:
        self._connection.request("GET", path, headers={**self._headers, "Accept-Encoding": "identity"})
        return msgspec.json.decode(self._connection.getresponse().read(), type=form)


class Choices:
    """Paths of all pages, with other subjects each time."""

    def __init__(self, client: Client) -> None:
        self._chance = random.Random(5)
        self._view: ClusterView = client.json("/v1/view", ClusterView)  # type: ignore[assignment]
        alerts: list[dict[str, object]] = client.json("/v1/alerts", list[dict[str, object]])  # type: ignore[assignment]
        self._alerts = [str(alert["fingerprint"]) for alert in alerts]
        self._pods = [pod for pod in self._view.pods if pod.requested_gpus]

    def pages(self) -> Paths:
        """All pages by their route; a report by each dimension."""
        return {
            "/": lambda: "/",
            "/nodes": lambda: "/nodes",
            "/nodes/{name}": lambda: f"/nodes/{self._node()}",
            "/nodes/{name}/disk": lambda: f"/nodes/{self._node()}/disk?mount=%2F",
            "/gpus/{node}/{index}": lambda: f"/gpus/{self._node()}/{self._chance.randrange(8)}",
            "/pods": lambda: "/pods",
            "/pods/{namespace}/{name}": lambda: self._pod("pods"),
            "/jobs/{namespace}/{name}": lambda: self._pod("jobs"),
            "/users": lambda: "/users",
            "/users/{name}": lambda: f"/users/{quote(self._chance.choice(list(self._view.users)), safe='')}",
            "/queues": lambda: "/queues",
            "/queues/{name}": lambda: f"/queues/{quote(self._chance.choice(self._view.queues).name, safe='')}",
            "/why": lambda: f"/why?q={self._part()}",
            "/fits": lambda: f"/fits?gpus={self._chance.randrange(1, 65) * 8}&per_node=8",
            "/alerts": lambda: "/alerts",
            "/alerts/{fingerprint}": lambda: f"/alerts/{self._chance.choice(self._alerts)}",
            "/cleanup": lambda: "/cleanup",
            "/report": lambda: "/report",
            "/report?by=queue": lambda: "/report?by=queue",
            "/report?by=node": lambda: "/report?by=node",
            "/audit": lambda: "/audit",
        }

    def requests(self) -> Paths:
        """What pages request while they are open."""
        charts = {f"/v1/history?span={span}": partial(self._chart, span) for span in ("1h", "24h", "7d")}
        maps = {f"/v1/history/nodes?span={span}": partial(self._heat_map, span) for span in ("1h", "6h", "24h", "7d")}
        plan, suggest = (lambda: "/cleanup/plan?policy=images"), (lambda: f"/suggest?q={self._part()}")
        return {**charts, **maps, PLAN: plan, "/suggest": suggest}

    def _node(self) -> str:
        return quote(self._chance.choice(self._view.nodes).name, safe="")

    def _part(self) -> str:
        """A part of the names of several pods."""
        return quote(self._chance.choice(self._pods).name[:8])

    def _chart(self, span: str) -> str:
        name = f"{self._chance.choice(self._view.nodes).name}/3"
        return f"/v1/history?{urlencode({'subject': 'gpu', 'name': name, 'span': span})}"

    def _heat_map(self, span: str) -> str:
        """All nodes but a few, so that the answer is not the one of this minute."""
        return f"/v1/history/nodes?span={span}&first=gpu-{self._chance.randrange(NODES // 10):04d}"

    def _pod(self, kind: str) -> str:
        jobs = [pod for pod in self._pods if kind == "pods" or pod.identity.job is not None]
        pod = self._chance.choice(jobs)
        name = pod.name if kind == "pods" else pod.identity.job or ""
        return f"/{kind}/{quote(pod.namespace, safe='')}/{quote(name, safe='')}"


def fill(state: Path, facts: Facts) -> None:
    """A week of usage records and of history: one hour is recorded and repeated."""
    state.mkdir(parents=True, exist_ok=True)
    _, view = worlds(facts)(NOW)
    hour = int(time.time()) // HOUR_SECONDS * HOUR_SECONDS
    usage = UsageStore(str(state / USAGE_FILE))
    usage.add(list(buckets(view, hour)), {hour - n * HOUR_SECONDS: float(HOUR_SECONDS) for n in range(1, USAGE_HOURS)})
    usage.close()
    last = hour - HOUR_SECONDS
    clock = [float(last)]
    recorder = HistoryRecorder(HistoryStore(str(state / HISTORY_FILE)), lambda: clock[0], lambda: clock[0])
    for minute in range(60):
        clock[0] = float(last + minute * MINUTE_SECONDS)
        recorder.record(view, facts.inputs.agents)
    clock[0] = float(hour)
    recorder.record(view, facts.inputs.agents)
    recorder.save()
    recorder.close()
    repeat_hour(state / HISTORY_FILE, last)


def buckets(view: ClusterView, hour: int) -> Iterator[Bucket]:
    """The usage of the view in each hour."""
    sums = new_sums()
    charge(view.gpus, 0, HOUR_SECONDS, sums)
    for (_, node, user, queue, (model, _)), values in sums.items():
        named = dict(zip(FIGURES, values, strict=True))
        for number in range(1, USAGE_HOURS):
            yield Bucket(hour=hour - number * HOUR_SECONDS, node=node, user=user, queue=queue, model=model, **named)
