"""Every query runs against a real Prometheus that holds every metric, and returns data."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.expressions import Expression, expressions
from tests.dashboards.history import openmetrics
from tests.support.prometheus import prometheus_with
from tests.support.snapshots import AT


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Prometheus that holds the history."""
    with prometheus_with(tmp_path_factory.mktemp("prometheus"), openmetrics()) as address:
        yield address


def _ask(address: str, expr: str) -> Any:
    body = urllib.parse.urlencode({"query": expr, "time": AT}).encode()
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query", body, timeout=60) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]


def test_every_query_finds_something(prometheus: str) -> None:
    asked = {query: _ask(prometheus, query.expr) for query in expressions()}
    refused = {_shown(query): found for query, found in asked.items() if isinstance(found, str)}
    assert refused == {}
    assert [_shown(query) for query, found in asked.items() if not found] == []


def test_replicas_of_the_daemon_do_not_double_the_figures(prometheus: str) -> None:
    (gpus,) = (query for query in expressions() if (query.dashboard, query.panel) == ("gpuwarden-cluster", "GPUs"))
    assert _ask(prometheus, gpus.expr)[0]["value"][1] == "1"


def test_choosing_another_node_or_user_leaves_them_out(prometheus: str) -> None:
    everything = dict.fromkeys(("node", "gpu", "user", "queue", "namespace", "mount", "receiver"), ".*")
    everything |= {"__rate_interval": "1m", "__range": "6h", "__interval": "15s"}

    def found(panel: str = "Utilisation", **choice: str) -> list[dict[str, str]]:
        (query,) = (q for q in expressions(everything | choice) if (q.dashboard, q.panel) == ("gpuwarden-gpus", panel))
        return [series["metric"] for series in _ask(prometheus, query.expr)]

    assert found(user="li.lei", node="gpu-01") == [{"node": "gpu-01", "gpu": "0", "pod": "bert-0"}]
    assert found("Utilisation heat map", node="gpu-01") == [{"node": "gpu-01", "gpu": "0"}]
    assert found(user="han.meimei") == []
    assert found(node="gpu-02") == []  # the daemon reports no GPU there


def _shown(query: Expression) -> str:
    return f"{query.dashboard}: {query.panel} {query.ref}"
