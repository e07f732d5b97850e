"""What an Alertmanager says about our active alerts, and which of them is continued."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from monitor.alert.alertmanager.active import ActiveAlerts, active_query, continued, read_active

POD = {"namespace": "ml", "pod": "train-0"}
SHM = {"alertname": "ShmPressure", "severity": "warning", "cause": "nearly-full", "node": "n1", **POD}
LATER, EARLIER = "2026-11-19T03:48:20.028Z", "2026-11-19T03:47:20.028Z"


def active(starts: str = EARLIER, **labels: str) -> dict[str, Any]:
    """An alert in the API's response; a label "" is left out."""
    named = {name: value for name, value in (SHM | labels).items() if value}
    return {"labels": named, "annotations": {"summary": "x"}, "startsAt": starts, "endsAt": LATER, "fingerprint": "f"}


def read(*alerts: dict[str, Any], rules: tuple[str, ...] = ("disk-full", "shm-pressure")) -> ActiveAlerts:
    return read_active(json.dumps(alerts).encode(), rules)


@pytest.mark.parametrize(
    ("labels", "known"),
    [
        pytest.param({}, True, id="the same labels"),
        pytest.param({"queue": "batch", "user": "li", "node": "n2", "cause": "default-size"}, True, id="others"),
        pytest.param({"node": ""}, True, id="without an attribute"),
        pytest.param({"severity": "critical"}, True, id="worse"),
        pytest.param({"pod": "train-1"}, False, id="another pod"),
        pytest.param({"alertname": "DiskFull"}, False, id="another rule"),
        pytest.param({"alertname": ""}, False, id="no rule"),
        pytest.param({"cluster": "east"}, False, id="another cluster"),
        pytest.param({"instance": "n1:9836"}, False, id="of Prometheus"),
        pytest.param({"severity": "page"}, False, id="a severity of others"),
        pytest.param({"severity": ""}, False, id="no severity"),
        pytest.param({"cause": ""}, False, id="no cause"),
    ],
)
def test_which_alert_is_the_same(labels: dict[str, str], known: bool) -> None:
    found = read(active(**labels)).of("shm-pressure", SHM)
    assert [alert.labels for alert in found] == ([active(**labels)["labels"]] if known else [])


def test_rules_that_were_not_asked_for_are_not_known() -> None:
    assert not read(active(), rules=("disk-full",)).of("shm-pressure", SHM)


def test_an_empty_label_is_none() -> None:
    assert read(active(container="")).of("shm-pressure", SHM | {"container": ""})


@pytest.mark.parametrize(
    "alerts",
    [
        pytest.param([active(EARLIER, severity="critical", queue="b"), active(EARLIER)], id="the most severe"),
        pytest.param([active(LATER, severity="critical"), active(EARLIER, queue="b")], id="before the oldest"),
        pytest.param([active(EARLIER, queue="b"), active(LATER)], id="the oldest"),
        pytest.param([active(EARLIER, queue="a"), active(EARLIER, queue="b")], id="the same one for all"),
    ],
)
def test_which_of_several_is_continued(alerts: list[dict[str, Any]]) -> None:
    for given in (alerts, alerts[::-1]):
        found = read(*given).of("shm-pressure", SHM)
        assert [alert.labels for alert in found] == [alert["labels"] for alert in alerts]


@pytest.mark.parametrize(
    ("severity", "there", "expect"),
    [("critical", "warning", "critical"), ("warning", "critical", "critical"), ("info", "info", "info")],
)
def test_an_alert_is_sent_under_the_labels_that_it_has_there(severity: str, there: str, expect: str) -> None:
    known = {"pod": "p", "severity": there}
    assert continued({"pod": "p", "queue": "b", "severity": severity}, known) == {"pod": "p", "severity": expect}
    assert known["severity"] == there


def test_what_is_asked_for() -> None:
    assert parse_qsl(active_query(["shm-pressure", "disk-full"], None)) == [
        ("filter", 'alertname=~"DiskFull|ShmPressure"')
    ]
    named = parse_qsl(active_query(["disk-full"], 'the "east"'))
    assert named[1:] == [("filter", 'cluster="the \\"east\\""')]


@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b'[{"labels": {}}]', b'[{"labels": 1, "startsAt": "x"}]'])
def test_another_answer_is_an_error(body: bytes) -> None:
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        read_active(body, ("disk-full",))


def test_missing_annotations_and_links_are_none() -> None:
    (alert,) = read({"labels": SHM, "startsAt": EARLIER}).of("shm-pressure", SHM)
    assert (alert.annotations, alert.generatorURL) == ({}, "")


def test_the_rule_decides_what_its_subject_is() -> None:
    """A job of one pod stays the same when it has two."""
    there = active(alertname="GpuFragmented", job="train")
    found = read(there, rules=("gpu-fragmented",)).of("gpu-fragmented", {"namespace": "ml", "job": "train"})
    assert [alert.labels for alert in found] == [there["labels"]]
