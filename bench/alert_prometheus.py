"""Debian's Prometheus and Alertmanager on loopback: with their defaults, and tuned."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.alert_hook import ALERTS, Hook
from bench.kube_state_metrics import WAITING_REASON
from bench.process import running
from tests.support import free_port

SCRAPING, TELLING = "prometheus", "prometheus-alertmanager"
PROMETHEUS = """\
global: {{scrape_interval: {scrape}, evaluation_interval: {evaluation}}}
rule_files: [{rules}]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: kube-state-metrics
    honor_labels: true
    static_configs: [{{targets: ["{target}"]}}]
"""
# Without the reason label, which alternates between the two, so that one alert would resolve as the other fires. With a
# group wait of twice the evaluation interval, Alertmanager sometimes flushes right between the two, sees nothing
# firing, and flushes again 5 minutes later.
RULES = f"""\
groups:
  - name: pods
    rules:
      - alert: {ALERTS[1]}
        expr: max by (namespace, pod, container) ({WAITING_REASON}{{reason=~"ErrImagePull|ImagePullBackOff"}}) > 0
        for: 0s
"""
ALERTMANAGER = """\
route: {{receiver: hook, group_by: [alertname, namespace, pod], group_wait: {group_wait}}}
receivers: [{{name: hook, webhook_configs: [{{url: "{url}"}}]}}]
"""


@dataclass(frozen=True)
class Setup:
    """Scrape and evaluation intervals of Prometheus and group wait of Alertmanager."""

    who: str
    scrape: str
    evaluation: str
    group_wait: str


DEFAULT = Setup("prometheus", scrape="15s", evaluation="15s", group_wait="30s")
TUNED = Setup("prometheus-tuned", scrape="1s", evaluation="1s", group_wait="0s")


@dataclass(frozen=True)
class Prometheus:
    """A running instance."""

    address: str

    def is_ready(self) -> bool:
        """Whether it has scraped the exporter and knows its Alertmanager."""
        try:
            up = self._get("query?query=up")["result"]
            return bool(up and up[0]["value"][1] == "1" and self._get("alertmanagers")["activeAlertmanagers"])
        except OSError:
            return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(setup: Setup, exporter: str, hook: Hook, folder: Path) -> Iterator[Prometheus]:
    """Run both until the context exits: they scrape the exporter at this address and notify the hook."""
    for program in (SCRAPING, TELLING):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is needed (Debian package of that name)")
    folder.mkdir()
    rules, config, routes = folder / "rules.yml", folder / "prometheus.yml", folder / "alertmanager.yml"
    listen, alertmanager = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    rules.write_text(RULES)
    routes.write_text(ALERTMANAGER.format(group_wait=setup.group_wait, url=hook.address(setup.who)))
    config.write_text(
        PROMETHEUS.format(
            scrape=setup.scrape,
            evaluation=setup.evaluation,
            rules=rules,
            alertmanager=alertmanager,
            target=exporter,
        )
    )
    scraping = [
        SCRAPING,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={listen}",
    ]
    telling = [
        TELLING,
        f"--config.file={routes}",
        f"--storage.path={folder / 'alerts'}",
        f"--web.listen-address={alertmanager}",
        "--cluster.listen-address=",
    ]
    environ = dict(os.environ)
    with (
        running(telling, environ, folder / "alertmanager.log"),
        running(scraping, environ, folder / "prometheus.log"),
    ):
        yield Prometheus(listen)
