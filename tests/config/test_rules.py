from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from monitor.config.file import load, variables
from monitor.config.root import Config
from monitor.config.rules import RulesSection, field_name, rules_config
from monitor.detect.base import (
    Bytes,
    Limits,
    Ratio,
    Rule,
    RuleResult,
    Seconds,
    SubjectKind,
    Threshold,
    ThresholdLimit,
)
from monitor.detect.rules import RULES

OFTEN = Threshold(3, 60.0)


@dataclass(frozen=True)
class Every:
    """One limit of every type."""

    after: Seconds = 600.0
    warning: Ratio = 0.8
    largest: Bytes = 1024
    count: int = 3
    sometimes: Seconds | None = None
    codes: tuple[int, ...] = (79,)
    often: ThresholdLimit = OFTEN
    by_code: dict[int, ThresholdLimit] = field(default_factory=dict)


RULE = Rule("disk-full", Every, (), lambda *_: RuleResult(), SubjectKind.CLUSTER)


def limits(given: dict[str, Any]) -> Limits[Any]:
    config = rules_config([RULE]).model_validate({"disk_full": given})
    return config.limits([RULE])["disk-full"]


def test_the_defaults_are_those_of_the_rules() -> None:
    found = Config().daemon.rules.limits()
    assert found == {rule.rule: Limits(rule.limits()) for rule in RULES}


def test_hours_are_in_the_time_zone_of_the_daemon_unless_the_rule_has_its_own() -> None:
    for given, expect in (({}, "Asia/Shanghai"), ({"gpu_idle": {"timezone": "UTC"}}, "UTC")):
        rules = Config.model_validate({"daemon": {"rules": given}}).daemon.rules
        assert rules.limits(timezone="Asia/Shanghai")["gpu-idle"].default.timezone == expect


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("30m", "after", 1800.0),
        (90, "after", 90.0),
        ("95%", "warning", 0.95),
        (0.5, "warning", 0.5),
        ("50GiB", "largest", 50 * 1024**3),
        (7, "count", 7),
        ("1h", "sometimes", 3600.0),
        ([13, 31], "codes", (13, 31)),
        ("5 in 10m", "often", Threshold(5, 600.0)),
        ({31: "5 in 1h", "94": "2 in 1d"}, "by_code", {31: Threshold(5, 3600.0), 94: Threshold(2, 86400.0)}),
    ],
)
def test_limits_are_written_as_people_write_them(written: object, name: str, value: object) -> None:
    assert getattr(limits({name: written}).default, name) == value


@pytest.mark.parametrize(
    "given",
    [
        {"often": "5"},
        {"often": 5},
        {"often": "0 in 1h"},
        {"often": "-1 in 1h"},
        {"often": "5 in soon"},
        {"often": "5 in "},
        {"often": "9999999999 in 1h"},
        {"by_code": {"x": "5 in 1h"}},
        {"by_code": {"31": "often"}},
        {"after": "soon"},
        {"warning": "150%"},
        {"largest": "-1"},
        {"count": "x"},
        {"aftr": "1m"},
        {"enabled": "perhaps"},
    ],
)
def test_what_is_not_a_limit(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        limits(given)


def test_an_exception_changes_what_it_names_and_the_first_that_matches_counts() -> None:
    found = limits(
        {
            "warning": "70%",
            "overrides": [
                {"match": {"mount": "/scratch*"}, "warning": "95%"},
                {"match": {"mount": "/scratch/a", "node": "n1"}, "warning": "50%"},
                {"match": {"node": "n1"}, "after": None, "count": 9},
            ],
        }
    )
    assert found.of({"mount": "/home"}) == Every(warning=0.7)
    assert found.of({"mount": "/scratch/a", "node": "n1"}) == Every(warning=0.95)
    assert found.of({"mount": "/data", "node": "n1"}) == Every(warning=0.7, count=9)


def test_a_rule_can_be_switched_off() -> None:
    assert limits({"enabled": False}).enabled is False
    assert limits({}).enabled is True


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_every_rule_has_a_section_with_all_its_limits(rule: Rule) -> None:
    section = type(Config().daemon.rules).model_fields[field_name(rule)].annotation
    assert section is not None
    assert set(section.model_fields) == {*rule.limits.__dataclass_fields__, "enabled", "overrides"}
    assert f"DAEMON__RULES__{field_name(rule).upper()}__ENABLED" in set(variables())


def test_a_variable_changes_a_limit() -> None:
    environ = {"GPUWARDEN_DAEMON__RULES__GPU_ZOMBIE__FINISHED_AFTER": "5m"}
    assert load(None, environ).daemon.rules.limits()["gpu-zombie"].default.finished_after == 300.0


def test_no_rules_are_a_configuration_too() -> None:
    assert rules_config([])().limits([]) == {}
    assert issubclass(rules_config([RULE]), RulesSection)
