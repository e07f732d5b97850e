"""The daemon's metrics over HTTP: authorization, and the metrics of a daemon on a simulated cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import monitor
from monitor.daemon.metrics import catalogue
from monitor.detect.rules import RULES
from tests.daemon.metrics.support import assert_promtool_is_content, sampled
from tests.support import wait_until
from tests.web.cluster import ACCESS, TOKENS, Client, DaemonSite, daemon_on, site

PATH = "/metrics"
CLOSED = {"anonymous": "none", "users": ACCESS["users"], "tokens": ACCESS["tokens"]}
VIEWER = {"Authorization": f"Bearer {TOKENS['viewer']}"}
WHO: list[tuple[str, dict[str, Any], dict[str, str], int]] = [
    ("here", {}, {}, 200),
    ("by another name", {}, {"Host": "evil.example"}, 403),
    ("passed on by a proxy", {}, {"X_Forwarded_For": "10.0.0.9"}, 403),
    ("anyone may read", {"anonymous": "viewer"}, {"Host": "gpu.lab", "X_Forwarded_For": "10.0.0.9"}, 200),
    ("anonymous", CLOSED, {}, 401),
    ("a viewer", CLOSED, VIEWER, 200),
    ("a wrong token", CLOSED, {"Authorization": "Bearer x"}, 401),
]


@pytest.mark.parametrize(("access", "headers", "status"), [row[1:] for row in WHO], ids=[row[0] for row in WHO])
def test_who_may_have_them(access: dict[str, Any], headers: dict[str, str], status: int) -> None:
    """The same as for the view; other clients get an error instead of a redirect to the login."""
    with site(access, metrics=lambda: b"up 1\n") as address:
        answer = Client(address).get(PATH, **headers)
        assert answer.status == Client(address).get("/v1/view", **headers).status == status
    if status == 200:
        assert answer.body == "up 1\n"
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
    else:
        assert "up 1" not in answer.body
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_page_without_metrics_has_none() -> None:
    with site({}) as address:
        assert Client(address).get(PATH).status == 404


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonSite]:
    with daemon_on(tmp_path_factory.mktemp("daemon"), ACCESS) as made:
        made.submit("bert-0", "zhang", 2, "gpu01")
        wait_until(lambda: len(made.gpus_of("bert-0")) == 2, 30, "it has its GPUs")
        yield made


def scrape(daemon: DaemonSite) -> str:
    answer = daemon.client("viewer").get(PATH)
    assert answer.status == 200, answer.body
    return answer.body


SERIES = [
    rf'gpuwarden_daemon_info\{{version="{re.escape(monitor.__version__)}"\}} 1.0',
    r'gpuwarden_source_up\{source="pods"\} 1.0',
    r'gpuwarden_gpus\{model="[^"]+",node="gpu01",state="free"\} \d.0',
    r'gpuwarden_gpu_state\{.*namespace="lab",node="gpu01",pod="bert-0",queue="vc-zhang".*user="zhang".*\} 1.0',
    r'gpuwarden_node_ready\{node="gpu02"\} 1.0',
    r'gpuwarden_node_requested_gpus\{node="gpu01"\} [2-8].0',
    r'gpuwarden_pod_requested_gpus\{.*node="gpu01",phase="Running",pod="bert-0".*\} 2.0',
    r'gpuwarden_user_gpus\{user="zhang"\} \d+.0',
    r'gpuwarden_findings\{rule="node-down",severity="critical"\} 0.0',
    r'gpuwarden_findings\{rule="monitor-blind",severity="critical"\} \d.0',
    r'gpuwarden_alerts\{severity="critical",state="firing"\} \d.0',
    r'gpuwarden_deliveries_total\{outcome="failed",receiver="[^"]+"\} \d.0',
    r"gpuwarden_pods_not_explained 0.0",
    r"gpuwarden_look_duration_seconds .*",
    r"gpuwarden_view_age_seconds .*",
    r"process_resident_memory_bytes .*",
]


def missing(daemon: DaemonSite) -> list[str]:
    found = sampled(scrape(daemon))
    return [pattern for pattern in SERIES if not any(re.fullmatch(pattern, line) for line in found)]


def test_a_real_daemon_tells_everything(daemon: DaemonSite) -> None:
    wait_until(lambda: missing(daemon) == [], 30, f"all metrics are exposed; missing: {missing(daemon)}")


def test_prometheus_likes_it_and_the_catalogue_knows_it(daemon: DaemonSite) -> None:
    text = scrape(daemon)
    assert_promtool_is_content(text)
    found = sampled(text)
    series = [line.rpartition(" ")[0] for line in found]
    assert len(series) == len(set(series))
    known = {each.name: set(each.labels) for each in catalogue()}
    for line in found:
        name = re.split(r"[{ ]", line, maxsplit=1)[0]
        if not name.startswith("process_"):
            assert set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', line)) <= known[name], line
    assert not [line for line in found if "gpuwarden_exposition_failures_total" in line and not line.endswith(" 0.0")]


def test_every_rule_is_counted_also_when_there_is_nothing(daemon: DaemonSite) -> None:
    found = set(re.findall(r'gpuwarden_findings\{rule="([^"]+)"', scrape(daemon)))
    assert {rule.rule for rule in RULES} | {"monitor-blind", "receiver-failing"} == found
