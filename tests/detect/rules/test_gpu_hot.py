"""gpu-hot: throttled GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.gpu_hot import RULE
from tests.cluster.builders import NOW, agent, card
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said
from tests.detect.running import lasting_since

SINCE = {"n1 0": lasting_since("thermal", NOW - 601)}
BRAKED = {"n1 0": lasting_since("power-brake", NOW - 601)}

CASES: tuple[tuple[str, tuple[str, ...] | None, Any, list[str]], ...] = (
    ("too hot, says the card", ("hw_slowdown", "hw_thermal_slowdown"), SINCE, ["thermal"]),
    ("too hot, says the driver", ("sw_thermal_slowdown",), SINCE, ["thermal"]),
    ("the power supply brakes", ("hw_slowdown", "hw_power_brake_slowdown"), BRAKED, ["power-brake"]),
    ("both", ("hw_power_brake_slowdown", "hw_thermal_slowdown"), SINCE, ["thermal"]),
    ("for less than ten minutes", ("sw_thermal_slowdown",), {"n1 0": lasting_since("thermal", NOW - 599)}, []),
    ("for another reason", ("sw_thermal_slowdown",), BRAKED, []),
    ("for the first time", ("sw_thermal_slowdown",), None, []),
    ("at its power limit, as it should be", ("sw_power_cap",), SINCE, []),
    ("for a reason that is not said", ("hw_slowdown",), SINCE, []),
    ("nothing", (), SINCE, []),
    ("not known", None, SINCE, []),
)


@pytest.mark.parametrize(("name", "reasons", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_hot(name: str, reasons: tuple[str, ...] | None, memory: Any, expect: list[str]) -> None:
    found = run(RULE, rule_context(agent(card(throttle_reasons=reasons))), memory)
    assert [cause for _, cause in causes(found)] == expect


HOT = agent(
    card(
        throttle_reasons=("hw_thermal_slowdown",),
        temperature_celsius=91.0,
        power_watts=200.4,
        power_limit_watts=400.0,
        sm_clock_hertz=900_000_000,
    )
)


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(HOT), SINCE).findings
    for part in ("GPU 0 on n1 is too hot", "10 min 1 s", "91 degrees", "200 W of 400 W", "900 MHz"):
        assert part in said(finding)
    assert "过热" in said(finding, "zh")


def test_a_break_begins_anew() -> None:
    cooled = run(RULE, rule_context(agent(card(throttle_reasons=()))), SINCE).memory
    assert causes(run(RULE, rule_context(HOT), cooled)) == []


@pytest.mark.parametrize("blind", [agent(card(), received_at=NOW - 90), agent(card(throttle_reasons=None))])
def test_held_while_nothing_is_known(blind: Any) -> None:
    (finding,) = after_silence(RULE, rule_context(HOT), rule_context(blind), SINCE)
    assert finding.held


def test_words() -> None:
    assert catalog_problems(RULE) == []
