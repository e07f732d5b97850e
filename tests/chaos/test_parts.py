"""Parts of a chaos run that need no lab: schedule, forged agent data, log parsing."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import msgspec
import pytest

from monitor.facts import NodeSnapshot
from tests.chaos.driver import Course, Step, schedule, tracebacks
from tests.chaos.faults import FAULTS
from tests.chaos.ledger import Verdict
from tests.chaos.lies import empty, garbage, lies, other_name, truncated
from tests.chaos.programs import Figures, grown
from tests.chaos.report import write
from tests.support.snapshots import full_snapshot

BODY = msgspec.json.encode(full_snapshot())


def test_the_seed_decides_the_order_and_each_round_has_every_fault() -> None:
    one, same, other = ([*itertools.islice(schedule(random.Random(seed)), 2 * len(FAULTS))] for seed in (1, 1, 2))
    assert one == same != other
    for turn in (one[: len(FAULTS)], one[len(FAULTS) :]):
        assert sorted(name for name, _ in turn) == sorted(FAULTS)


@pytest.mark.parametrize("forge", [truncated, garbage, empty])
def test_what_is_corrupted_is_no_snapshot(forge: object) -> None:
    assert callable(forge)
    with pytest.raises((msgspec.MsgspecError, UnicodeError)):
        msgspec.json.decode(forge(BODY), type=NodeSnapshot)


def test_lies_can_be_understood_or_they_would_prove_nothing() -> None:
    told = msgspec.json.decode(lies(["GPU-1"], ["uid-1"])(BODY), type=NodeSnapshot)
    assert told.gpu is not None
    assert [card.uuid for card in told.gpu.gpus] == ["GPU-1"]
    assert {process.pod_uid for process in told.gpu_processes or ()} == {"uid-1", None}
    assert msgspec.json.decode(other_name("gpu-09")(BODY), type=NodeSnapshot).node == "gpu-09"


def test_growth_is_that_of_the_last_life_after_its_warm_up() -> None:
    before = [Figures(1, 90, 90)]
    assert grown([], 2, 2) is None
    assert grown([*before, Figures(2, 10, 20), Figures(2, 12, 22), Figures(2, 11, 21)], 2, 2) is None
    assert grown([*before, Figures(2, 10, 20), Figures(2, 12, 22), Figures(2, 13, 20)], 2, 2) is not None
    assert grown([*before, Figures(2, 10, 20), Figures(2, 12, 22), Figures(2, 10, 23)], 2, 2) is not None


def test_a_traceback_is_found_with_what_it_was_about() -> None:
    said = "12:00 looking\nTraceback (most recent call last):\n  File x\n    y()\nValueError: odd\n12:01 fine\n"
    assert tracebacks(said) == ["12:00 looking ... ValueError: odd"]
    assert tracebacks("all is well") == []


def test_the_report_says_what_went_wrong(tmp_path: Path) -> None:
    course = Course(7, 60.0, [Step("daemon killed", 5.0, "pull", None)], Verdict(lost=("a pull",)))
    write(course, tmp_path)
    page = (tmp_path / "CHAOS.md").read_text()
    assert "- lost: a pull" in page
    assert "- not well within 45 s: daemon killed" in page
    assert json.loads((tmp_path / "chaos.json").read_text())["lost"] == 1
