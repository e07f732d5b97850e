"""Cores waiting for I/O, from the iowait counter."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.lib.io_wait import update_samples
from monitor.facts import HostFact
from tests.cluster.builders import NOW, agent


def reports(at: float, waited: float | None) -> dict[str, Any]:
    seconds = {} if waited is None else {"iowait": waited}
    host = HostFact(cpus=8, memory_total_bytes=1, memory_available_bytes=1, cpu_seconds_total=seconds)
    return {"n1": agent(at=at, host=host)}


CASES: tuple[tuple[str, Any, float | None, dict[str, float]], ...] = (
    ("for the first time", None, 100.0, {}),
    ("two cores over a minute", [NOW - 60, 0.0, NOW - 60, 0.0], 120.0, {"n1": 2.0}),
    ("too short a time to say", [NOW - 59, 0.0, NOW - 59, 0.0], 118.0, {}),
    ("rebooted", [NOW - 60, 500.0, NOW - 60, 500.0], 1.0, {}),
    ("the clock was set back", [NOW + 60, 0.0, NOW + 60, 0.0], 1.0, {}),
    ("the host does not say", [NOW - 60, 0.0, NOW - 60, 0.0], None, {}),
    ("garbage", {"x": 1}, 1.0, {}),
)


@pytest.mark.parametrize(("name", "mark", "waited", "expect"), CASES, ids=[case[0] for case in CASES])
def test_cores(name: str, mark: Any, waited: float | None, expect: dict[str, float]) -> None:
    assert update_samples({"n1": mark}, reports(NOW, waited))[1] == expect


def test_what_was_long_ago_is_forgotten() -> None:
    marks: Any = None
    cores: dict[str, float] = {}
    for step in range(0, 3600, 15):  # three cores for half an hour, then none
        marks, cores = update_samples(marks, reports(NOW + step, 3.0 * min(step, 1800)))
        assert len(marks) == 1
    assert cores == {"n1": 0.0}


def test_nodes_that_are_gone_are_forgotten() -> None:
    assert update_samples({"gone": [1.0, 2.0, 3.0, 4.0]}, {})[0] == {}
