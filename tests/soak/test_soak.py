"""Five minutes of the soak test at full size; `make soak` takes half an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.retention import wind_forward
from tests.soak.run import Plan, run
from tests.soak.verdict import judge

MINUTES, NODES = 5, 1000


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_grows_and_nothing_is_late(tmp_path: Path) -> None:
    course = run(Plan(MINUTES, NODES), tmp_path)
    goals = judge(course, wind_forward(tmp_path / "state", tmp_path))
    missed = {goal.key: (goal.value, goal.at_least, goal.at_most) for goal in goals if not goal.met}
    assert not missed, (missed, course.troubles[:5])
