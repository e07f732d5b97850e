"""A real Prometheus with the documented scrape configuration, and proofs that each query returns data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CONTENT_TYPE_LATEST

from dashboards.expressions import expressions
from monitor.agent.metrics import AgentMetrics
from monitor.config.types import Listen
from monitor.sim.demo import settings
from monitor.sim.outages import OUTAGES
from monitor.sim.simulation import Simulation
from tests.alert_rules.rules import RULE_FILES, RuleText, cases, rules
from tests.alert_rules.test_rules import expected_alerts, is_same
from tests.dashboards.history import snapshot
from tests.docs.pages import ROOT, blocks
from tests.e2e.troubled import LIMITS, PAGE_TOKEN, RULES, daemon
from tests.support import free_port, need, wait_until
from tests.support.command import get, running

AGENTS_PORT = ":9835"
AGENT_LABEL, AGENT_IP = "__meta_kubernetes_pod_label_app_kubernetes_io_name", "__meta_kubernetes_pod_ip"
BEAT = 0.5
FULL_ADDRESS = "127.82.0.1"


@dataclass(frozen=True)
class Targets:
    """Scrape targets: agents, which share one port, daemons, and their token files."""

    agents: tuple[str, ...]
    daemons: tuple[str, ...]
    agents_token: Path
    daemons_token: Path


def configuration(targets: Targets) -> str:
    """The documented configuration with our addresses and tokens, an interval of two seconds and all rules.

    A scrape that takes longer than the interval fails, and a failed one begins the minute of an alert again.
    Debian's Prometheus has no Kubernetes service discovery: its labels of the agents' pods are supplied directly.
    """
    page = ROOT / "docs" / "ecosystem.md"
    (documented,) = [block.text for block in blocks(page) if block.kind == "yaml-prometheus"]
    assert AGENTS_PORT in documented
    (port,) = {agent.rpartition(":")[2] for agent in targets.agents}
    config = yaml.safe_load(documented.replace(AGENTS_PORT, f":{port}"))
    agents, daemons = config["scrape_configs"]
    for job, token in ((agents, targets.agents_token), (daemons, targets.daemons_token)):
        assert job["authorization"].keys() == {"credentials_file"}
        job["authorization"]["credentials_file"] = str(token)
    assert agents.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    agents["static_configs"] = [_pod(agent.rpartition(":")[0]) for agent in targets.agents]
    daemons["static_configs"] = [{"targets": list(targets.daemons)}]
    config["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"}
    config["rule_files"] = list(map(str, RULE_FILES))
    return yaml.safe_dump(config)


def _pod(address: str) -> dict[str, Any]:
    """The target that service discovery would produce for an agent's pod."""
    return {"targets": [address], "labels": {AGENT_LABEL: "gpuwarden-agent", AGENT_IP: address}}


class Prometheus:
    """A Prometheus that runs, as whoever looks at it sees it."""

    def __init__(self, url: str, process: subprocess.Popen[str], config: Path) -> None:
        self._url = url
        self._process = process
        self.config = config

    def scrape(self, targets: Targets) -> None:
        """Replace the scrape targets."""
        self.config.write_text(configuration(targets), encoding="utf-8")
        self._process.send_signal(signal.SIGHUP)

    def get(self, path: str, **asked: str | float) -> Any:
        """Result of an API request; fails the test on an error."""
        url = f"{self._url}/api/v1/{path}"
        body = urllib.parse.urlencode(asked).encode() if asked else None
        try:
            with urllib.request.urlopen(url, body, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                pytest.fail(f"{asked or path}: {json.load(error)['error']}")

    def series(self, expr: str, since: float) -> list[dict[str, str]]:
        """Labels of all results of a query at any time since then."""
        found = self.get("query_range", query=expr, start=since, end=time.time(), step=1)["result"]
        return [each["metric"] for each in found]

    def now(self, expr: str) -> list[dict[str, str]]:
        """Labels of all current results of a query."""
        return [each["metric"] for each in self.get("query", query=expr)["result"]]

    def expect(self, expr: str, label: str, wanted: Collection[str], within: float) -> None:
        """Wait until a query has returned all these values of a label; fail with the missing ones."""
        missing, deadline = {*wanted}, time.monotonic() + within
        while missing := missing - {each.get(label) for each in self.now(expr)}:
            if time.monotonic() > deadline:
                pytest.fail(f"not within {within} s: {sorted(missing)} of {expr}")
            time.sleep(BEAT)

    def up(self) -> set[str]:
        """Addresses with a successful last scrape."""
        return {each["instance"] for each in self.now("up == 1")}

    def rules(self) -> list[dict[str, Any]]:
        """State of each rule."""
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


@contextmanager
def scraping(folder: Path, targets: Targets) -> Iterator[Prometheus]:
    """Run a Prometheus with all rules and these targets."""
    need(shutil.which("prometheus") is not None, "Prometheus (Debian package prometheus)")
    folder.mkdir()
    config, address = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    config.write_text(configuration(targets), encoding="utf-8")
    line = ["prometheus", f"--config.file={config}", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with running([*line, "--log.level=error"], os.environ, folder, subprocess.DEVNULL) as process:
        wait_until(lambda: _is_ready(process, address), 20, "Prometheus is ready")
        yield Prometheus(f"http://{address}", process, config)


def _is_ready(process: subprocess.Popen[str], address: str) -> bool:
    assert process.poll() is None, process.stderr and process.stderr.read()
    with suppress(OSError):
        return get(f"http://{address}/-/ready")[0] == 200
    return False


# Targets outside the lab


@contextmanager
def simulated(story: Simulation, directory: Path) -> Iterator[str]:
    """Run a daemon with a lease on a simulated cluster; yields the address of its page."""
    config = settings(story, directory, Listen(host="127.0.0.1", port=0), "en")["daemon"]
    del config["listen"], config["state"]
    config |= {"cycle": "1s", "gpu": LIMITS, "rules": RULES, "token": PAGE_TOKEN, "lease": {"duration": "3s"}}
    config["alerts"] = {"cluster": "simulated"}
    config["agents"]["interval"] = "1s"
    with daemon(directory, config) as (address, _):
        yield address


def begin_outages(story: Simulation) -> None:
    """Start every outage of the simulated cluster."""
    for outage in OUTAGES:
        story.call(outage.begin)


@contextmanager
def full_agent(port: int) -> Iterator[str]:
    """Serve the metrics of a node with every fact known; yields the address."""
    text = AgentMetrics().render(snapshot("gpu-99"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Silence the request log."""

    server = ThreadingHTTPServer((FULL_ADDRESS, port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"{FULL_ADDRESS}:{port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# Proofs


@dataclass(frozen=True)
class Query:
    """A query and its origin: a panel, or a rule of a file."""

    asker: str
    expr: str
    rule: RuleText | None = field(default=None, compare=False)


def queries() -> list[Query]:
    """Every dashboard query and rule expression."""
    panels = [Query(f"{each.dashboard}: {each.panel} {each.ref}".rstrip(), each.expr) for each in expressions()]
    return panels + [Query(f"{rule.file}: {rule.name}", rule.expr, rule) for rule in rules()]


def is_cased(rule: RuleText) -> bool:
    """Whether a promtool case makes the rule fire or record a value."""
    if rule.is_alert:
        fired = (labels for files, labels in expected_alerts() if rule.file in files and is_same(rule, labels))
        return any(labels["alertstate"] == "firing" for labels in fired)
    questions = (question for _, case in cases() for question in case["promql_expr_test"])
    return any(each["labels"].partition("{")[0] == rule.name for asked in questions for each in asked["exp_samples"])


@dataclass
class Proofs:
    """Which means proved each query to return data, in order of attempt."""

    prometheus: Prometheus
    by: dict[Query, str] = field(default_factory=dict)
    asked: list[Query] = field(default_factory=queries)

    def open(self) -> list[Query]:
        """Unproven queries."""
        return [query for query in self.asked if query not in self.by]

    def gather(self, means: str, since: float, within: float, enough: int | None = None) -> int:
        """Run unproven queries until this many are proven by this means; return the actual number.

        Without a number, until no panel is unproven: only rules have cases in addition.
        """
        deadline = time.monotonic() + within
        while True:
            self._ask(means, since)
            proven = self.count().get(means, 0)
            done = all(query.rule for query in self.open()) if enough is None else proven >= enough
            if done or time.monotonic() > deadline:
                return proven
            time.sleep(BEAT)

    def _ask(self, means: str, since: float) -> None:
        texts = sorted({query.expr for query in self.open()})
        with ThreadPoolExecutor(2) as pool:
            found = dict(zip(texts, pool.map(lambda expr: self.prometheus.series(expr, since), texts), strict=True))
        self.by |= {query: means for query in self.open() if found[query.expr]}

    def fall_back_on_cases(self, means: str) -> None:
        """Accept promtool cases for unproven rules, which need hours or rare values."""
        self.by |= {query: means for query in self.open() if query.rule is not None and is_cased(query.rule)}

    def count(self) -> Mapping[str, int]:
        """Number of queries proven by each means."""
        means = list(self.by.values())
        return {each: means.count(each) for each in dict.fromkeys(means)}

    def write(self, file: Path) -> None:
        """Write a table of queries, origins and proofs."""
        rows = [
            f"| {query.asker} | {self.by.get(query, '**nothing**')} | {_code(query.expr)} |" for query in self.asked
        ]
        counts = ", ".join(f"{count} by {means}" for means, count in self.count().items())
        head = ["# Queries and what proves that they give data", "", f"{len(self.asked)} in all: {counts}.", ""]
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join([*head, "| who asks | proven by | query |", "|---|---|---|", *rows, ""]))


def _code(expr: str) -> str:
    plain = " ".join(expr.split()).replace("|", "\\|")
    return f"`{plain}`"


def askers(found: Iterable[Query]) -> Sequence[str]:
    """Origins of these queries."""
    return [query.asker for query in found]
