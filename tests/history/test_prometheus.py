"""Ranges from a Prometheus server: the expressions as promtool evaluates them, and servers that fail."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError
from monitor.history.model import METRICS, HistoryMetric, HistorySubject, HistoryUnit
from monitor.history.prometheus import PrometheusHistory, PrometheusSettings
from monitor.history.promql import expressions
from monitor.history.reader import HistoryReader
from tests.history.builders import HOUR, MINUTE, START, Rig, busy
from tests.support import need
from tests.support.prometheus import prometheus_with
from tests.support.receivers.http_server import Asked, Handler, LocalServer

ENTITIES = {
    HistorySubject.CLUSTER: "cluster",
    HistorySubject.NODE: "n1",
    HistorySubject.GPU: "n1/0",
    HistorySubject.DISK: 'n1:/da"ta',
    HistorySubject.POD: "lab/bert-0",
    HistorySubject.JOB: "lab/bert",
    HistorySubject.USER: "zhang",
    HistorySubject.QUEUE: "nlp",
}
HOLDER = 'namespace="lab", pod="bert-0", user="zhang", workload="bert", queue="nlp"'
# Two replicas of the daemon, two agents, and another cluster on the same server.
SERIES = {
    'gpuwarden_agent_info{instance="a:1", node="n1"}': 1,
    'gpuwarden_agent_info{instance="b:1", node="n2"}': 1,
    'gpuwarden_gpu_utilization_ratio{instance="a:1", gpu="0", uuid="A"}': 0.8,
    'gpuwarden_gpu_utilization_ratio{instance="a:1", gpu="1", uuid="B"}': 0.4,
    'gpuwarden_gpu_utilization_ratio{instance="b:1", gpu="0", uuid="C"}': 0.0,
    'gpuwarden_gpu_memory_used_bytes{instance="a:1", gpu="0", uuid="A"}': 20,
    'gpuwarden_gpu_memory_total_bytes{instance="a:1", gpu="0", uuid="A"}': 80,
    'gpuwarden_gpu_power_watts{instance="a:1", gpu="0", uuid="A"}': 300,
    'gpuwarden_gpu_temperature_celsius{instance="a:1", gpu="0", uuid="A"}': 64,
    'gpuwarden_host_memory_total_bytes{instance="a:1"}': 100,
    'gpuwarden_host_memory_available_bytes{instance="a:1"}': 40,
    'gpuwarden_shm_used_bytes{instance="a:1", device="1"}': 5,
    'gpuwarden_shm_used_bytes{instance="a:1", device="2", container_id="x"}': 7,
    'gpuwarden_shm_used_bytes{instance="a:1", device="2", container_id="y"}': 7,
    'gpuwarden_disk_used_bytes{instance="a:1", mount="/da\\"ta"}': 30,
    'gpuwarden_disk_available_bytes{instance="a:1", mount="/da\\"ta"}': 70,
    'gpuwarden_node_free_gpus{instance="d:1", node="n1"}': 6,
    'gpuwarden_node_free_gpus{instance="d:2", node="n1"}': 6,
    'gpuwarden_gpus{instance="d:1", node="n1", model="A100", state="busy"}': 1,
    'gpuwarden_gpus{instance="d:1", node="n1", model="A100", state="free"}': 6,
    f'gpuwarden_gpu_state{{instance="d:1", node="n1", gpu="0", uuid="A", state="busy", {HOLDER}}}': 1,
    f'gpuwarden_gpu_state{{instance="d:2", node="n1", gpu="0", uuid="A", state="busy", {HOLDER}}}': 1,
    f'gpuwarden_pod_requested_gpus{{instance="d:1", node="n1", {HOLDER}}}': 2,
    'gpuwarden_pod_requested_gpus{instance="d:1", node="", namespace="lab", pod="bert-1", workload="bert"}': 8,
    'gpuwarden_user_gpus{instance="d:1", user="zhang"}': 2,
    'gpuwarden_user_gpu_utilization_ratio{instance="d:1", user="zhang"}': 0.8,
    'gpuwarden_queue_used_gpus{instance="d:1", queue="nlp"}': 2,
    'gpuwarden_queue_waiting_gpus{instance="d:1", queue="nlp"}': 8,
}
EXPECT: dict[tuple[HistorySubject, HistoryMetric], float] = {
    (HistorySubject.CLUSTER, HistoryMetric.UTILIZATION): 0.4,
    (HistorySubject.CLUSTER, HistoryMetric.GPUS): 1,
    (HistorySubject.CLUSTER, HistoryMetric.FREE): 6,
    (HistorySubject.CLUSTER, HistoryMetric.WAITING): 8,
    (HistorySubject.NODE, HistoryMetric.UTILIZATION): 0.6,
    (HistorySubject.NODE, HistoryMetric.FREE): 6,
    (HistorySubject.NODE, HistoryMetric.CPU): 0.25,
    (HistorySubject.NODE, HistoryMetric.MEMORY): 0.6,
    (HistorySubject.NODE, HistoryMetric.SHM): 12,
    (HistorySubject.NODE, HistoryMetric.RECEIVED): 5000,
    (HistorySubject.NODE, HistoryMetric.TRANSMITTED): 250,
    (HistorySubject.GPU, HistoryMetric.UTILIZATION): 0.8,
    (HistorySubject.GPU, HistoryMetric.MEMORY): 0.25,
    (HistorySubject.GPU, HistoryMetric.POWER): 300,
    (HistorySubject.GPU, HistoryMetric.TEMPERATURE): 64,
    (HistorySubject.DISK, HistoryMetric.USED): 0.3,
    (HistorySubject.POD, HistoryMetric.UTILIZATION): 0.8,
    (HistorySubject.POD, HistoryMetric.GPUS): 2,
    (HistorySubject.JOB, HistoryMetric.UTILIZATION): 0.8,
    (HistorySubject.JOB, HistoryMetric.GPUS): 2,
    (HistorySubject.USER, HistoryMetric.UTILIZATION): 0.8,
    (HistorySubject.USER, HistoryMetric.GPUS): 2,
    (HistorySubject.QUEUE, HistoryMetric.UTILIZATION): 0.8,
    (HistorySubject.QUEUE, HistoryMetric.GPUS): 2,
    (HistorySubject.QUEUE, HistoryMetric.WAITING): 8,
}


def labelled(series: str, cluster: str) -> str:
    return series[:-1] + f', cluster="{cluster}"}}'


def test_expressions_are_what_the_daemon_records(tmp_path: Path) -> None:
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    found = {
        (subject, metric): expression
        for subject, name in ENTITIES.items()
        for metric, expression in expressions(subject, name, {"cluster": "east"}).items()
    }
    assert found.keys() == EXPECT.keys()
    given = [{"series": labelled(name, "east"), "values": f"{value}+0x10"} for name, value in SERIES.items()]
    given += [{"series": labelled(name, "west"), "values": f"{9 * value}+0x10"} for name, value in SERIES.items()]
    for mode, rate in (("user", 15), ("idle", 30), ("iowait", 15)):
        series = f'gpuwarden_host_cpu_seconds_total{{instance="a:1", mode="{mode}", cluster="east"}}'
        given.append({"series": series, "values": f"0+{rate}x10"})
    for direction, rate in (("received", 300_000), ("transmitted", 15_000)):
        for node, factor in (("a:1", 1), ("b:1", 7)):
            series = f'gpuwarden_host_network_{direction}_bytes_total{{instance="{node}", cluster="east"}}'
            given.append({"series": series, "values": f"0+{factor * rate}x10"})
    checks = [
        {"expr": f"round({found[key]}, 0.001)", "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": value}]}
        for key, value in EXPECT.items()
    ]
    tests = {"tests": [{"interval": "1m", "input_series": given, "promql_expr_test": checks}]}
    (tmp_path / "test.yml").write_text(json.dumps(tests))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yml")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def counter_samples(labels: str, rate: float) -> Iterator[str]:
    """Half an hour of a counter, in OpenMetrics, with a restart of the node in the middle."""
    for second in range(0, HOUR // 2, 15):
        yield f"{labels} {rate * (second % (HOUR // 4))} {START + second}"


def test_a_real_server_has_the_traffic_of_one_node(tmp_path: Path) -> None:
    lines = ["# TYPE gpuwarden_agent_info gauge"]
    for node in ("n1", "n2"):
        info = f'gpuwarden_agent_info{{instance="{node}:9835",node="{node}"}}'
        lines += [f"{info} 1 {START + second}" for second in range(0, HOUR // 2, 15)]
    for direction, rate in (("received", 2e6), ("transmitted", 5e5)):
        name = f"gpuwarden_host_network_{direction}_bytes"
        lines.append(f"# TYPE {name} counter")
        for node, factor in (("n1", 1), ("n2", 9)):
            lines += counter_samples(f'{name}_total{{instance="{node}:9835"}}', factor * rate)
    with prometheus_with(tmp_path, "\n".join([*lines, "# EOF\n"])) as address:
        source = PrometheusHistory(PrometheusSettings(Endpoint(f"http://{address}", timeout=60.0)))
        found = source.read(HistorySubject.NODE, "n1", int(START), 5 * MINUTE, 12)
    series = {each.metric: each for each in found.series}
    assert set(series) == {HistoryMetric.RECEIVED, HistoryMetric.TRANSMITTED}
    for metric, rate in ((HistoryMetric.RECEIVED, 2e6), (HistoryMetric.TRANSMITTED, 5e5)):
        assert series[metric].unit is HistoryUnit.BYTES_PER_SECOND
        assert series[metric].mean[1:6] == pytest.approx((rate,) * 5, rel=0.05)
        assert set(series[metric].mean[7:]) == {None}  # after the last sample, nothing is known


class Prometheus(LocalServer):
    """Answers with 0.5 as mean and 0.75 as maximum, but for the second value."""

    def answer(self, asked: Asked) -> tuple[int, Any]:
        first, last, step = (int(asked.query[name]) for name in ("start", "end", "step"))
        value = "0.75" if asked.query["query"].startswith("max") else "0.5"
        values = [[at, "NaN" if at == first + step else value] for at in range(first, last + 1, step)]
        series = [] if "power" in asked.query["query"] else [{"metric": {}, "values": values}]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": series}}


@pytest.fixture
def server() -> Iterator[Prometheus]:
    with Prometheus() as started:
        yield started


def history(server: LocalServer, timeout: float = 60.0, token: str | None = None) -> PrometheusHistory:
    return PrometheusHistory(PrometheusSettings(Endpoint(server.base + "/", timeout=timeout), token))


def test_a_range_is_that_of_the_server(server: Prometheus) -> None:
    found = history(server, token="secret-token").read(HistorySubject.GPU, "n1/0", int(START), MINUTE, 4)
    metrics = [series.metric for series in found.series]
    assert metrics == [metric for metric in METRICS[HistorySubject.GPU] if metric is not HistoryMetric.POWER]
    assert found.series[0].mean == (0.5, None, 0.5, 0.5)
    assert found.series[0].max == (0.75, None, 0.75, 0.75)
    assert {asked.path for asked in server.asked} == {"/api/v1/query_range"}
    assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer secret-token"}
    assert (server.asked[0].query["start"], server.asked[0].query["step"]) == (str(int(START) + MINUTE), "60")


def said(status: int, body: Any) -> Callable[[Handler], None]:
    return lambda handler: handler.say(status, body)


FAILURES: dict[str, Callable[[Handler], None]] = {
    "no Prometheus": said(200, b"<html>"),
    "another JSON": said(200, {"data": []}),
    "no number": said(200, {"data": {"result": [{"values": [[1, "x"]]}]}}),
    "a wrong query": said(400, {"error": "parse error"}),
    "an overloaded server": said(503, b"busy"),
    "a redirect": said(302, b""),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_failure_is_an_error_and_is_not_asked_for_again_at_once(what: str) -> None:
    with LocalServer(FAILURES[what]) as failing:
        reading = history(failing)
        for _ in range(3):
            with pytest.raises(RequestError):
                reading.read(HistorySubject.USER, "zhang", int(START), MINUTE, 4)
        assert len(failing.asked) <= 4


def test_a_server_that_drips_is_given_up() -> None:
    with LocalServer(lambda handler: handler.drip(b"HTTP/1.1 200 OK\r\n")) as dripping, pytest.raises(RequestError):
        history(dripping, timeout=0.3).read(HistorySubject.USER, "zhang", int(START), MINUTE, 4)


def test_while_the_server_fails_the_own_history_is_shown(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.see(busy(0.25))
    with LocalServer(said(500, b"")) as failing:
        reader = HistoryReader(rig.recorder, history(failing), rig.clock.time)
        found = reader.read(HistorySubject.GPU, "n1/0", HOUR)
    assert found.points(HistoryMetric.UTILIZATION) == ((START, 0.25),)
    rig.recorder.close()
