"""Labels of an alert change while it fires: it stays one alert, announced once and under the same labels."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert.announced import announced_labels, changed_labels
from monitor.alert.lifecycle import advance
from monitor.alert.matchers import parse_matcher
from monitor.alert.model import AlertState, Phase, subject_of
from monitor.alert.mute import alert_views
from monitor.alert.routes import Route
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import CRITICAL, INFO, NOON, WARNING, Scenario, finding, policy, silence

FIRST = finding(rule="shm-pressure", cause="nearly-full", namespace="ml", pod="train-0")
QUEUED = replace(FIRST, labels=FIRST.labels | {"job": "train", "queue": "batch"})
MOVED = replace(QUEUED, labels=QUEUED.labels | {"node": "n2"})
TIMES: dict[str, Any] = {"group_wait": 0.0, "group_interval": 0.0, "repeat": 1e9}
OPS = Route(("ops",), **TIMES, continue_matching=True)
BATCH = Route(("batch",), (parse_matcher("queue=batch"),), **TIMES)
OTHERS = Route(("others",), (parse_matcher("queue!=batch"),), **TIMES)


def told(scenario: Scenario, *findings: Finding, after: float = 1.0) -> list[tuple[str, str]]:
    return [(each.receiver, each.reason.value) for each in scenario.evaluate(*findings, after=after)]


def announced(scenario: Scenario, cluster: str | None = None) -> dict[str, str]:
    (alert,) = scenario.alerts.values()
    return announced_labels(subject_of(alert, alert.phase, fresh=False), cluster)


def test_labels_that_appear_later_update_the_alert() -> None:
    scenario = Scenario(policy(OPS))
    assert told(scenario, FIRST) == [("ops", "new")]
    (before,) = scenario.alerts.values()
    assert told(scenario, QUEUED) == []
    (after,) = scenario.alerts.values()
    assert after.finding.labels["queue"] == "batch"
    assert (after.fingerprint, after.fired_at, after.phase) == (before.fingerprint, before.fired_at, Phase.FIRING)
    assert told(scenario, after=60.0) == []
    assert told(scenario, after=60.0) == [("ops", "resolved")]


def test_only_labels_that_differ_from_the_present_ones_are_stored() -> None:
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    for found in (FIRST, QUEUED, FIRST):
        told(scenario, found)
        (alert,) = scenario.alerts.values()
        assert (bool(alert.announced), alert.routed) == (found is QUEUED, FIRST.labels if found is QUEUED else {})


def test_it_stays_announced_under_its_first_labels() -> None:
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    first = announced(scenario, "east")
    assert "cluster" not in announced(scenario)
    assert first == FIRST.labels | {
        "alertname": "ShmPressure", "severity": "warning", "cause": "nearly-full", "cluster": "east"
    }  # fmt: skip
    for changed in (QUEUED, MOVED, FIRST, replace(MOVED, cause="default-size"), QUEUED):
        told(scenario, changed)
        assert announced(scenario, "east") == first
        assert "cluster" not in announced(scenario)
        scenario.restart()
        assert announced(scenario, "east") == first


def test_what_has_changed_since_is_known() -> None:
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    told(scenario, replace(MOVED, cause="default-size"))
    (alert,) = scenario.alerts.values()
    subject = subject_of(alert, alert.phase, fresh=False)
    changed = {"node": "n2", "job": "train", "queue": "batch", "cause": "default-size"}
    assert changed_labels(subject, announced(scenario)) == changed


@pytest.mark.parametrize(
    ("severities", "expect"),
    [
        pytest.param((WARNING, CRITICAL), "critical", id="a worse one is announced"),
        pytest.param((CRITICAL, WARNING), "critical", id="a better one is not"),
        pytest.param((INFO, CRITICAL, WARNING, INFO), "critical", id="the worst one stays"),
        pytest.param((INFO, WARNING), "warning", id="step by step"),
    ],
)
def test_only_a_worse_severity_is_announced_again(severities: tuple[Severity, ...], expect: str) -> None:
    scenario = Scenario(policy(OPS))
    for severity in severities:
        told(scenario, replace(FIRST, severity=severity))
    assert announced(scenario)["severity"] == expect


def test_labels_are_those_of_the_first_notification_and_not_of_the_first_sight() -> None:
    scenario = Scenario(policy(OPS, silences=(silence("node=n1", until=NOON + 100.0),)))
    assert told(scenario, FIRST) == []
    assert told(scenario, QUEUED) == []
    assert told(scenario, QUEUED, after=200.0) == [("ops", "new")]
    told(scenario, FIRST)
    assert announced(scenario)["queue"] == "batch"


def test_the_next_episode_is_announced_anew() -> None:
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    told(scenario, QUEUED)
    told(scenario, after=60.0)
    told(scenario, after=60.0)
    assert told(scenario, QUEUED) == [("ops", "new")]
    assert announced(scenario)["queue"] == "batch"
    (alert,) = scenario.alerts.values()
    assert (alert.announced, alert.routed) == ({}, {})


def test_the_next_episode_is_routed_anew() -> None:
    scenario = Scenario(policy(BATCH, OTHERS))
    assert told(scenario, FIRST) == [("others", "new")]
    told(scenario, QUEUED)
    told(scenario, after=60.0)
    assert told(scenario, after=60.0) == [("others", "resolved")]
    assert told(scenario, QUEUED) == [("batch", "new")]


def test_an_episode_begins_without_the_labels_of_the_previous_one() -> None:
    """Also if its end was not sent."""
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    told(scenario, QUEUED)
    (alert,) = scenario.alerts.values()
    over = replace(alert, phase=Phase.RESOLVED, resolved_at=scenario.now)
    alerts = advance({alert.fingerprint: over}, [QUEUED], scenario.timings, scenario.group_by, scenario.now + 1.0)
    assert [(each.phase, each.announced, each.routed) for each in alerts.values()] == [(Phase.FIRING, {}, {})]


def test_a_changed_label_is_routed_with_the_next_notification() -> None:
    scenario = Scenario(policy(OPS, BATCH, OTHERS))
    assert told(scenario, FIRST) == [("ops", "new"), ("others", "new")]
    assert told(scenario, QUEUED) == []
    scenario.restart()
    assert told(scenario, QUEUED) == []
    worse = replace(QUEUED, severity=CRITICAL)
    assert told(scenario, worse) == [("ops", "worse"), ("others", "worse")]
    assert told(scenario, worse) == [("batch", "new")]
    assert told(scenario, worse) == []
    told(scenario, after=60.0)
    assert sorted(told(scenario, after=60.0)) == [(name, "resolved") for name in ("batch", "ops", "others")]


def test_a_silence_matches_the_labels_of_now() -> None:
    scenario = Scenario(policy(OPS, silences=(silence("queue=batch", until=NOON + 1e6),)))
    told(scenario, FIRST)
    told(scenario, QUEUED)
    (view,) = alert_views(AlertState(scenario.alerts, scenario.log), scenario.policy, scenario.now)
    assert view.silenced_by == "s"


def test_an_upgraded_alert_keeps_its_fingerprint() -> None:
    scenario = Scenario(policy(OPS))
    told(scenario, FIRST)
    (alert,) = scenario.alerts.values()
    scenario.alerts = {"former": replace(alert, fingerprint="former")}
    scenario.log = {key: replace(entry, firing={"former": WARNING}) for key, entry in scenario.log.items()}
    assert told(scenario, QUEUED) == []
    assert scenario.alerts.keys() == {"former"}
    told(scenario, after=60.0)
    assert told(scenario, after=60.0) == [("ops", "resolved")]
