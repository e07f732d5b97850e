"""Each kind of fault once against the whole product: no lost or wrong alerts, no unplanned deletion."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.driver import Driver
from tests.chaos.faults import FAULTS
from tests.chaos.scene import scene
from tests.lab.lab import Lab


@pytest.mark.long
@pytest.mark.timeout(900)
def test_after_each_fault_all_was_told_and_all_is_well(lab: Lab, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with scene(lab, tmp_path) as made:
        course = Driver(made, seed, print).run(0.0, rounds=1)
    assert course.failures == []
    assert len(course.steps) == len(FAULTS)
    assert (course.verdict.told, course.verdict.ends) == (sum(course.troubles.values()),) * 2
    assert course.in_memory > 0
    assert course.images_removed > 0
    assert course.verdict.same_id > 0, "no answer got lost: nothing was shown of repetitions"
