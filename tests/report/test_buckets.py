"""GPU-seconds: to which figure and owner they count, and that each is counted exactly once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder
from monitor.report.buckets import DAY, FIGURES, HOUR, Bucket, GpuTimeTotals, charge, hours, new_sums
from tests.report.builders import HOUR0, figures, gpu, holder, rounded, view

CYCLE = 10.0
ENDED, UNSURE = holder(live=False), holder(live=None)

GPUS: list[tuple[str, GpuView, dict[tuple[str | None, str | None], dict[str, float]]]] = [
    ("free", gpu(GpuState.FREE), {(None, None): {"free": 1}}),
    ("unknown", gpu(GpuState.UNKNOWN), {(None, None): {"unknown": 1}}),
    ("busy", gpu(GpuState.BUSY, holder(), load=0.75),
     {("zhang", "nlp"): {"allocated": 1, "measured": 1, "used": 0.75}}),
    ("busy, with unknown utilisation", gpu(GpuState.BUSY, holder()), {("zhang", "nlp"): {"allocated": 1}}),
    ("of a pod while Kubernetes is out of reach", gpu(GpuState.BUSY, UNSURE, load=1.0),
     {("zhang", "nlp"): {"allocated": 1, "measured": 1, "used": 1}}),
    ("held and idle", gpu(GpuState.IDLE_HELD, holder(), load=0.0),
     {("zhang", "nlp"): {"allocated": 1, "measured": 1, "idle": 1}}),
    ("two pods share it", gpu(GpuState.BUSY, holder(), holder("li", "cv"), load=0.5),
     {("zhang", "nlp"): {"allocated": 0.5, "measured": 0.5, "used": 0.25},
      ("li", "cv"): {"allocated": 0.5, "measured": 0.5, "used": 0.25}}),
    ("two pods of one user", gpu(GpuState.BUSY, holder(), holder(), load=0.5),
     {("zhang", "nlp"): {"allocated": 1, "measured": 1, "used": 0.5}}),
    ("owner unknown", gpu(GpuState.BUSY, holder(None, None)), {(None, None): {"allocated": 1}}),
    ("a zombie counts for its user", gpu(GpuState.ZOMBIE, ENDED, load=0.9), {("zhang", "nlp"): {"zombie": 1}}),
    ("a zombie on a shared GPU", gpu(GpuState.ZOMBIE, holder("li", "cv"), ENDED), {("zhang", "nlp"): {"zombie": 1}}),
    ("an orphan has no owner", gpu(GpuState.ORPHAN), {(None, None): {"zombie": 1}}),
    ("a ghost has no owner", gpu(GpuState.GHOST), {(None, None): {"zombie": 1}}),
    ("wedged by a live pod", gpu(GpuState.WEDGED, holder()), {("zhang", "nlp"): {"zombie": 1}}),
    ("a phantom", gpu(GpuState.PHANTOM, ENDED), {("zhang", "nlp"): {"zombie": 1}}),
    ("faulty", gpu(GpuState.FAULTY), {(None, None): {"faulty": 1}}),
    ("faulty and held", gpu(GpuState.FAULTY, holder(), load=0.5),
     {("zhang", "nlp"): {"allocated": 1, "measured": 1, "used": 0.5}}),
    ("faulty, and its pod has ended", gpu(GpuState.FAULTY, ENDED), {(None, None): {"faulty": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "gpu_view", "expect"), GPUS, ids=[row[0] for row in GPUS])
def test_what_a_second_counts_for(
    name: str, gpu_view: GpuView, expect: dict[tuple[str | None, str | None], dict[str, float]]
) -> None:
    sums = new_sums()
    charge([gpu_view], 0, 1.0, sums)
    found = {
        (user, queue): rounded(dict(zip(FIGURES, each, strict=True))) for (_, _, user, queue, _), each in sums.items()
    }
    assert found == expect


A100 = "NVIDIA A100-SXM4-80GB"


def part(user: str, ratio: float | None) -> Holder:
    return Holder(pod_uid=f"uid-{user}", user=user, live=True, device_ratio=ratio)


SHARES: list[tuple[str, list[Holder], dict[str | None, tuple[str | None, float]]]] = [
    ("a whole GPU", [part("zhang", 1.0)], {"zhang": (A100, 1.0)}),
    ("divided evenly between pods that hold all of it", [part("zhang", 1.0), part("li", 1.0)],
     {"zhang": (A100, 1.0), "li": (A100, 1.0)}),
    ("one slice: the rest is free for others", [part("zhang", 1 / 7)], {"zhang": (A100, 0.143)}),
    ("two slices: each pays for its own", [part("zhang", 1 / 7), part("li", 3 / 7)],
     {"zhang": (A100, 0.286), "li": (A100, 0.857)}),
    ("a share of unknown size has no price", [part("zhang", None), part("li", 0.5)],
     {"zhang": (None, 1.0), "li": (A100, 1.0)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "held_by", "expect"), SHARES, ids=[row[0] for row in SHARES])
def test_which_part_of_a_gpu_a_second_costs(
    name: str, held_by: list[Holder], expect: dict[str | None, tuple[str | None, float]]
) -> None:
    sums = new_sums()
    charge([GpuView(node="n1", state=GpuState.BUSY, index=0, model=A100, holders=tuple(held_by))], 0, 1.0, sums)
    assert {user: priced for _, _, user, _, priced in sums} == expect


HOURS: list[tuple[str, float, float, list[tuple[int, float]]]] = [
    ("within one", 100.0, 160.0, [(0, 60.0)]),
    ("over the hour", 3590.0, 3605.0, [(0, 10.0), (3600, 5.0)]),
    ("up to the hour", 3590.0, 3600.0, [(0, 10.0)]),
    ("a whole one and more", 3600.0, 7201.0, [(3600, 3600.0), (7200, 1.0)]),
    ("nothing", 5.0, 5.0, []),
]


@pytest.mark.parametrize(("name", "start", "end", "expect"), HOURS, ids=[row[0] for row in HOURS])
def test_hours(name: str, start: float, end: float, expect: list[tuple[int, float]]) -> None:
    assert list(hours(start, end)) == expect


BUSY = view(gpu(GpuState.BUSY, holder(), load=1.0))
FREE = view(gpu(GpuState.FREE))


def totals(*views: tuple[ClusterView, float, float]) -> GpuTimeTotals:
    """Totals after views, each with the readings of both clocks."""
    accumulated = GpuTimeTotals(CYCLE)
    for current, wall, monotonic in views:
        accumulated.add(current, HOUR0 + wall, 5000.0 + monotonic)
    return accumulated


def by_hour(accumulated: GpuTimeTotals) -> dict[int, dict[str, float]]:
    """Figures by hour, counted from the first, over all owners."""
    sums: dict[int, dict[str, float]] = {}
    for bucket in accumulated.buckets():
        line = sums.setdefault(int(bucket.hour - HOUR0) // HOUR, {})
        for name, value in figures(bucket, [*FIGURES[:1], *FIGURES[3:]]).items():
            line[name] = line.get(name, 0.0) + value
    return sums


TIMES: list[tuple[str, list[tuple[ClusterView, float, float]], dict[int, dict[str, float]], float]] = [
    ("one view", [(BUSY, 0, 0)], {}, 0),
    ("a view holds until the next", [(BUSY, 0, 0), (FREE, 10, 10)], {0: {"allocated": 10}}, 10),
    ("each its own", [(BUSY, 0, 0), (FREE, 10, 10), (BUSY, 15, 15)], {0: {"allocated": 10, "free": 5}}, 15),
    ("the same view again", [(BUSY, 0, 0), (BUSY, 10, 10), (BUSY, 20, 20)], {0: {"allocated": 20}}, 20),
    ("over the hour", [(BUSY, 3590, 0), (FREE, 3602, 12)], {0: {"allocated": 10}, 1: {"allocated": 2}}, 12),
    ("just late", [(BUSY, 0, 0), (FREE, 30, 30)], {0: {"allocated": 30}}, 30),
    ("a gap", [(BUSY, 0, 0), (FREE, 31, 31)], {0: {"unknown": 31}}, 0),
    ("views stop", [(BUSY, 0, 0), (BUSY, 25, 25), (BUSY, 35, 35)],
     {0: {"allocated": 25, "unknown": 10}}, 25),
    ("views stop and resume", [(BUSY, 0, 0), (BUSY, 35, 35), (FREE, 45, 45), (BUSY, 55, 55)],
     {0: {"unknown": 45, "free": 10}}, 10),
    ("the clock is set ahead by a day", [(BUSY, 0, 0), (FREE, 86410, 10)], {24: {"allocated": 10}}, 10),
    ("the clock is set back", [(BUSY, 3600, 0), (FREE, 20, 10)], {0: {"allocated": 10}}, 10),
    ("asleep for a week", [(BUSY, 0, 0), (FREE, 7 * DAY, 7 * DAY)],
     {hour: {"unknown": HOUR} for hour in range(144, 168)}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "views", "expect", "watched"), TIMES, ids=[row[0] for row in TIMES])
def test_time_is_counted_once(
    name: str, views: list[tuple[ClusterView, float, float]], expect: dict[int, dict[str, float]], watched: float
) -> None:
    accumulated = totals(*views)
    assert by_hour(accumulated) == expect
    assert sum(accumulated.watched.values()) == pytest.approx(watched)


def test_what_was_written_down_is_forgotten_and_time_goes_on() -> None:
    accumulated = totals((BUSY, 0, 0), (BUSY, 10, 10))
    accumulated.forget()
    assert (accumulated.buckets(), dict(accumulated.watched)) == ((), {})
    accumulated.add(FREE, HOUR0 + 14, 5014.0)
    assert by_hour(accumulated) == {0: {"allocated": 4}}


holders = st.builds(
    holder, st.sampled_from(["zhang", "li", None]), st.sampled_from(["nlp", None]), st.sampled_from([True, False, None])
)
cards = st.builds(
    GpuView,
    node=st.sampled_from(["n1", "n2"]),
    state=st.sampled_from(GpuState),
    index=st.integers(0, 7),
    holders=st.lists(holders, max_size=3).map(tuple[Holder, ...]),
    utilization_ratio=st.none() | st.floats(0, 1),
)
views = st.lists(st.tuples(st.lists(cards, max_size=6), st.floats(0.0, 5000.0), st.floats(-1e5, 1e5)), min_size=2)


@settings(max_examples=40)
@given(views)
def test_every_second_of_every_card_is_in_exactly_one_place(
    given_views: list[tuple[list[GpuView], float, float]],
) -> None:
    accumulated, wall, monotonic = GpuTimeTotals(CYCLE), HOUR0, 0.0
    for seen, later, jump in given_views:
        wall, monotonic = wall + later + jump, monotonic + later
        accumulated.add(view(*seen), wall, monotonic)
    expect = sum(len(before[0]) * after[1] for before, after in pairwise(given_views))
    buckets = accumulated.buckets()
    assert sum(map(_seconds, buckets)) == pytest.approx(expect, abs=1e-3)  # resolution of the clock
    for bucket in buckets:
        assert 0 <= bucket.used <= bucket.measured + 1e-6
        assert 0 <= bucket.idle <= bucket.allocated + 1e-6
        assert bucket.measured <= bucket.allocated + 1e-6


def _seconds(bucket: Bucket) -> float:
    return bucket.allocated + bucket.zombie + bucket.faulty + bucket.free + bucket.unknown
