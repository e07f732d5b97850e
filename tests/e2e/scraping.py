"""A real Prometheus that scrapes as the documentation says, and what proves each query to give data."""

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
    """What is scraped: agents, of which all have one port, and daemons; and the files with the tokens for them."""

    agents: tuple[str, ...]
    daemons: tuple[str, ...]
    agents_token: Path
    daemons_token: Path


def configuration(targets: Targets) -> str:
    """Return the documented configuration with our addresses and tokens in it, every second, and with all rules.

    Debian's Prometheus is built without Kubernetes: what it would say of the agents' pods is given to it.
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
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = list(map(str, RULE_FILES))
    return yaml.safe_dump(config)


def _pod(address: str) -> dict[str, Any]:
    """Return the target that Kubernetes would make of the pod of an agent."""
    return {"targets": [address], "labels": {AGENT_LABEL: "gpuwarden-agent", AGENT_IP: address}}


class Prometheus:
    """A Prometheus that runs, as whoever looks at it sees it."""

    def __init__(self, url: str, process: subprocess.Popen[str], config: Path) -> None:
        self._url = url
        self._process = process
        self.config = config

    def scrape(self, targets: Targets) -> None:
        """Have it scrape these from now on."""
        self.config.write_text(configuration(targets), encoding="utf-8")
        self._process.send_signal(signal.SIGHUP)

    def get(self, path: str, **asked: str | float) -> Any:
        """Return the answer to a question. Fail the test if it is an error."""
        url = f"{self._url}/api/v1/{path}"
        body = urllib.parse.urlencode(asked).encode() if asked else None
        try:
            with urllib.request.urlopen(url, body, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                pytest.fail(f"{asked or path}: {json.load(error)['error']}")

    def series(self, expr: str, since: float) -> list[dict[str, str]]:
        """Return the labels of all that a query gave at some moment since then."""
        found = self.get("query_range", query=expr, start=since, end=time.time(), step=1)["result"]
        return [each["metric"] for each in found]

    def now(self, expr: str) -> list[dict[str, str]]:
        """Return the labels of all that a query gives now."""
        return [each["metric"] for each in self.get("query", query=expr)["result"]]

    def expect(self, expr: str, label: str, wanted: Collection[str], within: float) -> None:
        """Wait until a query has given a label all these values. Fail the test, naming those that did not come."""
        missing, deadline = {*wanted}, time.monotonic() + within
        while missing := missing - {each.get(label) for each in self.now(expr)}:
            if time.monotonic() > deadline:
                pytest.fail(f"not within {within} s: {sorted(missing)} of {expr}")
            time.sleep(BEAT)

    def up(self) -> set[str]:
        """Return the addresses that answered their last scrape."""
        return {each["instance"] for each in self.now("up == 1")}

    def rules(self) -> list[dict[str, Any]]:
        """Return what it says of each rule."""
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


@contextmanager
def scraping(folder: Path, targets: Targets) -> Iterator[Prometheus]:
    """Run a Prometheus with all rules that scrapes these."""
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


# Who is scraped beside the lab


@contextmanager
def simulated(story: Simulation, directory: Path) -> Iterator[str]:
    """Run a daemon that holds a lease on a simulated cluster, and give the address of its page."""
    config = settings(story, directory, Listen(host="127.0.0.1", port=0), "en")["daemon"]
    del config["listen"], config["state"]
    config |= {"cycle": "1s", "gpu": LIMITS, "rules": RULES, "token": PAGE_TOKEN, "lease": {"duration": "3s"}}
    config["alerts"] = {"cluster": "simulated"}
    config["agents"]["interval"] = "1s"
    with daemon(directory, config) as (address, _):
        yield address


def begin_outages(story: Simulation) -> None:
    """Have everything go wrong that can go wrong in the simulated cluster."""
    for outage in OUTAGES:
        story.call(outage.begin)


@contextmanager
def full_agent(port: int) -> Iterator[str]:
    """Serve the metrics of a node on which everything is known, and give the address."""
    text = AgentMetrics().render(snapshot("gpu-99"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((FULL_ADDRESS, port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"{FULL_ADDRESS}:{port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# What is proven, and by what


@dataclass(frozen=True)
class Query:
    """A query and who asks it: a panel, or a rule of a file."""

    asker: str
    expr: str
    rule: RuleText | None = field(default=None, compare=False)


def queries() -> list[Query]:
    """Return every query of the dashboards and every rule's expression."""
    panels = [Query(f"{each.dashboard}: {each.panel} {each.ref}".rstrip(), each.expr) for each in expressions()]
    return panels + [Query(f"{rule.file}: {rule.name}", rule.expr, rule) for rule in rules()]


def is_cased(rule: RuleText) -> bool:
    """Say whether promtool is given a case in which the rule fires, or records a value."""
    if rule.is_alert:
        fired = (labels for files, labels in expected_alerts() if rule.file in files and is_same(rule, labels))
        return any(labels["alertstate"] == "firing" for labels in fired)
    questions = (question for _, case in cases() for question in case["promql_expr_test"])
    return any(each["labels"].partition("{")[0] == rule.name for asked in questions for each in asked["exp_samples"])


@dataclass
class Proofs:
    """By what each query was proven to give data, in the order in which that was tried."""

    prometheus: Prometheus
    by: dict[Query, str] = field(default_factory=dict)
    asked: list[Query] = field(default_factory=queries)

    def open(self) -> list[Query]:
        """Return what nothing has proven yet."""
        return [query for query in self.asked if query not in self.by]

    def gather(self, means: str, since: float, within: float, enough: int | None = None) -> int:
        """Ask what is open, again and again, until so many are proven by this means; return how many really are.

        Without a number that is until no panel is open any more: only rules have cases beside that.
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
        """Take the cases of promtool for the rules that are open: what they need takes hours, or rare values."""
        self.by |= {query: means for query in self.open() if query.rule is not None and is_cased(query.rule)}

    def count(self) -> Mapping[str, int]:
        """Return how many are proven by each means."""
        means = list(self.by.values())
        return {each: means.count(each) for each in dict.fromkeys(means)}

    def write(self, file: Path) -> None:
        """Write the table: who asks what, and what proves it."""
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
    """Return who asks these."""
    return [query.asker for query in found]
