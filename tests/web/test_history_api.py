"""GET /v1/history: ranges, alerts, the forecast, and wrong requests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from monitor.alert.model import Alert, Phase
from monitor.alert.notify import NotifyDecision
from monitor.alert.store import AlertStore
from monitor.facts import DiskFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import NodeView
from monitor.facts.findings import Finding, Severity
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text
from monitor.history.model import HistorySubject
from monitor.history.reader import MAX_RANGE_POINTS
from monitor.present.alerts import LocalizedAlertEvent
from monitor.queries.history import HistoryQueries, labels_of
from tests.history.builders import HOUR, MINUTE, START, Rig, busy
from tests.report.builders import view
from tests.web.cluster import Client, site

NOW = START + 20 * HOUR


def recorded(folder: Path) -> Iterator[Rig]:
    """A history of twenty hours, one GPU and one disk."""
    made = Rig(folder)
    for number in range(20 * 6):
        disk = DiskFact(
            mount="/data",
            device="d",
            fstype="ext4",
            used_bytes=10_000 + 50 * number,
            available_bytes=10_000 - 50 * number,
        )
        snapshot = NodeSnapshot(node="n1", at=made.clock.time(), agent_version="1", disk=(disk,))
        made.see(busy(0.5), after=10 * MINUTE, agents=(AgentFact(target="t", node="n1", snapshot=snapshot),))
    yield made
    made.recorder.close()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Only for reading."""
    yield from recorded(tmp_path_factory.mktemp("history"))


@pytest.fixture
def own_rig(tmp_path: Path) -> Iterator[Rig]:
    """For a test that continues the history."""
    yield from recorded(tmp_path)


def get(rig: Rig, query: str, events: tuple[LocalizedAlertEvent, ...] = ()) -> Any:
    wanted: list[Mapping[str, str]] = []

    def about(labels: Mapping[str, str], since: float, limit: int, lang: str) -> tuple[LocalizedAlertEvent, ...]:
        wanted.append(labels)
        return tuple(event for event in events if event.at >= since)[:limit]

    with site({}, history=HistoryQueries(rig.reader, about)) as url:
        answer = Client(url).get(f"/v1/history?{query}")
    return answer.status, answer.json, wanted


def test_a_range_has_means_maxima_and_units(rig: Rig) -> None:
    status, found, wanted = get(rig, "subject=gpu&name=n1/0&span=6h")
    assert status == 200
    assert found["step_seconds"] == MINUTE
    (series,) = found["series"]
    assert (series["metric"], series["unit"]) == ("utilization", "ratio")
    assert len(series["mean"]) == len(series["max"]) == 6 * HOUR // MINUTE
    assert {value for value in series["mean"] if value is not None} == {0.5}
    assert found["start"] + len(series["mean"]) * MINUTE >= NOW
    assert wanted == [{"node": "n1", "gpu": "0"}]
    assert "forecast" not in found


def test_an_end_in_the_past(rig: Rig) -> None:
    _, found, _ = get(rig, f"subject=gpu&name=n1/0&span=1h&until={int(START + 3 * HOUR)}")
    assert found["start"] == START + 2 * HOUR + MINUTE
    assert len(found["series"][0]["mean"]) == 60


def test_a_week_has_a_point_per_ten_minutes(rig: Rig) -> None:
    _, found, _ = get(rig, "subject=gpu&name=n1/0&span=7d")
    assert found["step_seconds"] == 600
    assert len(found["series"][0]["mean"]) <= MAX_RANGE_POINTS


def test_a_disk_has_a_forecast(rig: Rig) -> None:
    _, found, wanted = get(rig, "subject=disk&span=24h&name=" + quote("n1:/data"))
    forecast = found["forecast"]
    assert forecast["earliest_at"] <= forecast["full_at"]
    assert forecast["full_at"] - forecast["at"] == pytest.approx((1 - forecast["used"]) / forecast["rate"])
    assert wanted == [{"node": "n1", "mount": "/data"}]


def test_a_forecast_is_computed_once_a_minute(own_rig: Rig) -> None:
    queries = HistoryQueries(own_rig.reader)
    first = queries.forecast("n1:/data")
    assert first is not None
    assert queries.forecast("n1:/data") is first
    own_rig.clock.advance(MINUTE)
    assert queries.forecast("n1:/data") is not first
    assert queries.forecast("n1:/nothing") is None


def test_alerts_are_in_their_order_with_title_and_headline(rig: Rig) -> None:
    events = tuple(
        LocalizedAlertEvent(
            at=NOW - ago, what=what, fingerprint="f", rule=rule, severity=Severity.WARNING, labels={}, headline="hot"
        )
        for ago, what, rule in ((60.0, "resolved", "gpu-hot"), (600.0, "fired", "no-such-rule"))
    )
    _, found, _ = get(rig, "subject=gpu&name=n1/0&span=6h", events)
    assert [(each["what"], each["title"]) for each in found["alerts"]] == [
        ("fired", "no-such-rule"), ("resolved", "GPU throttled by heat or power"),
    ]  # fmt: skip


def test_what_nothing_is_known_of_has_no_series(rig: Rig) -> None:
    status, found, _ = get(rig, "subject=user&name=nobody&span=1h")
    assert (status, found.get("series")) == (200, None)
    status, found, wanted = get(rig, "subject=cluster")
    assert (status, [each["metric"] for each in found["series"]]) == (200, ["utilization", "gpus", "free", "waiting"])
    assert wanted == []


WRONG = [
    "", "subject=card&name=x", "subject=gpu", "subject=gpu&name=", f"subject=gpu&name={'x' * 600}",
    "subject=gpu&name=n1/0&span=8d", "subject=gpu&name=n1/0&span=1s", "subject=gpu&name=n1/0&span=soon",
    "subject=gpu&name=n1/0&until=0", "subject=gpu&name=n1/0&until=x", f"subject=gpu&name=n1/0&until={'9' * 300}",
    "subject=gpu&name=n1/0&lang=fr",
]  # fmt: skip


@pytest.mark.parametrize("query", WRONG)
def test_wrong_requests_say_what_is_right(rig: Rig, query: str) -> None:
    status, found, _ = get(rig, query)
    assert (status, list(found)) == (400, ["error"])


def nodes(rig: Rig, query: str) -> Any:
    with site({}, history=HistoryQueries(rig.reader)) as url:
        answer = Client(url).get(f"/v1/history/nodes?{query}")
    return answer.status, answer.json


def test_all_nodes_over_time(own_rig: Rig) -> None:
    own_rig.see_view(view(busy(0.5), busy(0.25, node="n2"), nodes=(NodeView(name="n1"), NodeView(name="n2"))))
    status, found = nodes(own_rig, "span=24h")
    assert (status, found["step_seconds"], found["nodes"]) == (200, 1200, 2)
    assert [(row["first"], row["last"], row["nodes"], row["mean"][-1]) for row in found["rows"]] == [
        ("n1", "n1", 1, 0.5), ("n2", "n2", 1, 0.25),
    ]  # fmt: skip
    assert set(found["rows"][1]["mean"][:-1]) == {None}
    _, found = nodes(own_rig, "first=n2&last=n2")
    assert [row["first"] for row in found["rows"]] == ["n2"]


@pytest.mark.parametrize("query", ["span=8d", "span=x", "until=0", "first=", f"last={'x' * 600}"])
def test_wrong_requests_for_nodes_say_what_is_right(rig: Rig, query: str) -> None:
    status, found = nodes(rig, query)
    assert (status, list(found)) == (400, ["error"])


def test_labels_of_alerts() -> None:
    assert labels_of(HistorySubject.POD, "lab/bert-0") == {"namespace": "lab", "pod": "bert-0"}
    assert labels_of(HistorySubject.JOB, "lab/bert") == {"namespace": "lab", "job": "bert"}
    assert labels_of(HistorySubject.QUEUE, "vc-nlp") == {"queue": "vc-nlp"}
    assert labels_of(HistorySubject.CLUSTER, "cluster") == {}


def test_events_about_something_are_found_among_others(tmp_path: Path) -> None:
    store, now = AlertStore(str(tmp_path / "alerts.db")), time.time()

    def alert(node: str) -> Alert:
        finding = Finding(
            rule="node-down", severity=Severity.CRITICAL, cause="x", labels={"node": node}, headline=Text(key="x")
        )
        return Alert(fingerprint=node, finding=finding, phase=Phase.FIRING, first_seen_at=now, seen_at=now)

    store.record({node: alert(node) for node in ("n1", "n10", 'n"2')}, NotifyDecision(), now)
    for about, expect in (("n10", {"n10"}), ('n"2', {'n"2'}), ("n1", {"n1", "n10"}), ("", {"n1", "n10", 'n"2'})):
        assert {event.alert.fingerprint for event in store.history(0.0, about=about)} == expect
    store.close()
