"""A week with every outage at known times: each is reported in time with the right cause, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.detect.base import ANY_CAUSE, Delay, Limits
from monitor.detect.rules import RULES, disk_full, gpu_idle
from tests.scorecard.allowed import BY_NAME as RULES_BY_NAME
from tests.scorecard.allowed import DELAY_SECONDS, limit_seconds
from tests.scorecard.judge import Score, judge
from tests.scorecard.play import play
from tests.scorecard.product import READ
from tests.scorecard.report import ELSEWHERE, IDS, report
from tests.scorecard.week import SHAPES, plan

BY_NAME = {shape.name: shape for shape in SHAPES}


@pytest.mark.e2e
@pytest.mark.timeout(900)  # about half a minute of CPU time on a shared machine
def test_a_week() -> None:
    occurrences = plan(1)
    record = play(occurrences, 1)
    score = judge(occurrences, record.episodes)
    assert score.well, report([(1, score)], record.looks, record.messages)
    fired = {episode.rule for episode in record.episodes if episode.told_at is not None}
    assert {rule.rule for rule in RULES} <= fired


def test_every_outage_and_every_rule_has_its_shapes() -> None:
    tells = [tell for shape in SHAPES for tell in shape.tells]
    assert {rule.rule for rule in RULES} <= {tell.rule for tell in tells}
    assert {name for shape in SHAPES for name in shape.ids} | ELSEWHERE.keys() == set(IDS)
    assert len(BY_NAME) == len(SHAPES)


def test_every_latency_is_for_a_cause_and_names_limits_and_collectors() -> None:
    assert DELAY_SECONDS.keys() == {None, *Delay}
    for rule in RULES_BY_NAME.values():
        assert rule.latencies.keys() <= {ANY_CAUSE, *rule.causes}, rule.rule
        for latency in rule.latencies.values():
            assert latency.collector is None or latency.collector in READ, rule.rule
            assert limit_seconds(rule.rule, latency.limit) >= 0.0
            assert limit_seconds(rule.rule, latency.resolve_limit) >= 0.0


HOURS = 5 * 3600.0
SMALL = ("data disk full", "notebook that nobody uses", "portal answers 502")


def small(spoiled: dict[str, Limits[Any]] | None = None, without: str = "") -> Score:
    occurrences = plan(1, [BY_NAME[name] for name in SMALL], HOURS)
    rules = [rule for rule in RULES if rule.rule != without]
    return judge(occurrences, play(occurrences, 1, length=HOURS, rules=rules, limits=spoiled).episodes)


def outcomes(score: Score) -> dict[str, str]:
    return {verdict.tell.rule: verdict.outcome for verdict in score.verdicts}


def test_a_few_hours_are_told_well() -> None:
    assert small().well


def test_a_rule_that_is_missing_is_noticed() -> None:
    score = small(without="disk-full")
    assert outcomes(score) == {"disk-full": "missed", "gpu-idle": "detected", "service-down": "detected"}
    assert "missed, told never" in report([(1, score)], 0, 0)


def test_a_limit_that_is_too_low_is_noticed_by_its_false_alarms() -> None:
    score = small({"disk-full": Limits(disk_full.Limits(warning=0.3))})
    assert {episode.rule for episode in score.false} == {"disk-full"}
    assert not score.well


def test_a_limit_that_is_too_high_is_noticed_by_what_is_late() -> None:
    limits = replace(gpu_idle.Limits(), notebook_warning_after=1800.0 + 200)
    score = small({"gpu-idle": Limits(limits)})
    assert outcomes(score) == {"disk-full": "detected", "gpu-idle": "late", "service-down": "detected"}
