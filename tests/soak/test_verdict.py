"""The verdict fails for a soak that leaks, slows down, loses a message or is late, and passes otherwise."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.soak.report import write
from tests.soak.retention import Kept
from tests.soak.run import Course, Plan
from tests.soak.samples import Canary, Sample, Scrape, Visit, read_metrics
from tests.soak.verdict import canary_bound, growth, judge, thirds, warm_up

SECONDS = 1800
KEPT = Kept(
    rows=10_000, rows_limit=10_000, full=10_000_000, refilled=10_100_000, pruned_in=0.5, record_left=0, record_year=1e8
)
Change = Callable[[Course], Course]


def calm() -> Course:
    """A successful soak of half an hour with typical noise."""
    chance = random.Random(1)
    course = Course(Plan(SECONDS / 60, 1000), exit_code=0, messages=400)
    course.samples = [
        Sample(
            at=at, rss=400 + chance.gauss(0, 4) + 60 * min(1.0, at / 120), anonymous=380 + chance.gauss(0, 4),
            fds=chance.randrange(35, 60), threads=69, cpu=at * 0.6, waited=at * 0.2, files={"findings.json": 900_000},
        )
        for at in range(0, SECONDS, 5)
    ]  # fmt: skip
    course.scrapes = [
        Scrape(at=at, took=0.5, series=9, look=chance.uniform(0.8, 1.2), view_age=0.1, outbox=chance.randrange(30))
        for at in range(0, SECONDS, 15)
    ]
    course.canaries = [Canary(at=at, name=f"c-{at}", told=3.0, over=12.0) for at in range(0, SECONDS, 10)]
    course.visits = [Visit(at=at, took=0.1) for at in range(0, SECONDS, 2)]
    return course


def leak(course: Course) -> Course:
    samples = [msgspec.structs.replace(each, rss=each.rss + each.at / 40) for each in course.samples]
    return replace(course, samples=samples)


def open_files(course: Course) -> Course:
    samples = [msgspec.structs.replace(each, fds=each.fds + int(each.at / 60)) for each in course.samples]
    return replace(course, samples=samples)


def slow_down(course: Course) -> Course:
    scrapes = [msgspec.structs.replace(each, look=0.8 + each.at / 1000) for each in course.scrapes]
    return replace(course, scrapes=scrapes)


def lose_one(course: Course) -> Course:
    return replace(course, canaries=[*course.canaries, Canary(at=700.0, name="lost")])


def never_end_one(course: Course) -> Course:
    return replace(course, canaries=[*course.canaries, Canary(at=700.0, name="open", told=3.0)])


def be_late(course: Course) -> Course:
    canaries = [msgspec.structs.replace(each, told=12.0 if each.at > 1500 else 3.0) for each in course.canaries]
    return replace(course, canaries=canaries)


def never_drain(course: Course) -> Course:
    return replace(course, scrapes=[msgspec.structs.replace(each, outbox=100 + each.at) for each in course.scrapes])


def missed(course: Course, kept: Kept = KEPT) -> list[str]:
    return [goal.key for goal in judge(course, kept) if not goal.met]


def test_a_calm_soak_is_passed() -> None:
    assert missed(calm()) == []


@pytest.mark.parametrize(
    ("change", "expect"),
    [
        (leak, "soak_memory_growth"),
        (open_files, "soak_fds_growth"),
        (slow_down, "soak_look_growth"),
        (lose_one, "soak_canaries_untold"),
        (never_end_one, "soak_canaries_not_over"),
        (be_late, "soak_canary_p99_s"),
        (never_drain, "soak_outbox_least"),
        (lambda course: replace(course, troubles=["level=error"]), "soak_troubles"),
        (lambda course: replace(course, exit_code=None), "soak_exit_code"),
    ],
)
def test_what_is_wrong_is_named(change: Change, expect: str) -> None:
    assert expect in missed(change(calm()))


def test_files_that_grow_for_ever_are_named() -> None:
    assert missed(calm(), replace(KEPT, rows=20_000)) == ["soak_alerts_rows_kept"]
    assert missed(calm(), replace(KEPT, refilled=20_000_000)) == ["soak_alerts_refill"]
    assert missed(calm(), replace(KEPT, pruned_in=60.0)) == ["soak_alerts_prune_s"]


def test_a_machine_that_others_use_more_and_more_is_no_fault_of_the_daemon() -> None:
    course = slow_down(calm())
    crowded = [msgspec.structs.replace(each, waited=each.at**2 / 1500) for each in course.samples]
    assert "soak_look_growth" not in missed(replace(course, samples=crowded))


def test_growth_is_not_bent_by_a_few_odd_samples() -> None:
    points = [(float(at), 1000.0 if at % 17 == 0 else 100.0) for at in range(200)]
    assert growth(points) == pytest.approx(0.0)
    assert growth([(at, value + at / 10) for at, value in points]) == pytest.approx(0.2, abs=0.01)


def test_a_short_soak_warms_up_for_as_long() -> None:
    assert (warm_up(300), warm_up(1800)) == (150, 450)
    parts = thirds([Visit(at=at, took=0.0) for at in range(300)], 300)
    assert [len(part) for part in parts] == [50, 50, 50]


def test_slow_looks_excuse_a_late_message_only_so_far() -> None:
    assert canary_bound(1.0) == 4.25
    assert canary_bound(0.1) == pytest.approx(2.45)
    assert canary_bound(100.0) == 30.0


def test_a_scrape_is_read() -> None:
    text = """# HELP gpuwarden_look_duration_seconds How long.
gpuwarden_look_duration_seconds 0.5
gpuwarden_outbox_messages{receiver="a",state="waiting"} 3.0
gpuwarden_outbox_messages{receiver="b",state="waiting"} 4.0
gpuwarden_outbox_messages{receiver="b",state="parked"} 5.0
"""
    assert read_metrics(text, 1.0, 0.2) == Scrape(at=1.0, took=0.2, series=4, look=0.5, outbox=7.0)


def test_it_is_written_down(tmp_path: Path) -> None:
    course = calm()
    write(course, judge(course, KEPT), tmp_path)
    assert "soak_memory_growth" in (tmp_path / "SOAK.md").read_text()
    plot = ElementTree.parse(tmp_path / "plots" / "soak.svg")
    assert len(plot.findall("{http://www.w3.org/2000/svg}circle")) == len(course.canaries)
