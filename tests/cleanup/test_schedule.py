"""Runs that are due for full disks, and when a policy may act."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import Item, Mode, Risk
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, ImagePolicy, PodPolicy, When
from monitor.cleanup.schedule import (
    PASSING_REFUSALS,
    REPEAT_AFTER_SECONDS,
    SKIP_PASSING_SECONDS,
    SKIP_REFUSED_SECONDS,
    Permission,
    PreviousRuns,
    due_runs,
    is_ready,
    pause_seconds,
    permission,
    previous_runs,
    refused_lately,
    was_hindered,
)
from monitor.facts.actions import PurgeTrash
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import KubeletFact
from monitor.facts.text import Text
from tests.cleanup.builders import DAY, NOW, disk, snapshot

ZONES = ("Asia/Shanghai", "Europe/Berlin")
IMAGES = ImagePolicy(name="images", when=When(high=0.80, low=0.70), nodes=("n*",))
DATA = DatasetPolicy(name="data", root="/mnt/share/x", node="n2", when=When(high=0.90, low=0.80))
KEY = ("images", "n1")


def node(used: float, name: str = "n1", nas: float = 10.0, at: float = NOW) -> NodeSnapshot:
    disks = (disk(used=used), disk(used=nas, mount="/mnt/share", roles=("nas",)))
    return msgspec.structs.replace(snapshot(disk=disks), node=name, at=at)


def fired(policies: tuple[CleanupPolicy, ...], *nodes: NodeSnapshot, now: float = NOW) -> list[tuple[str, str]]:
    return [(run.policy, run.node) for run in due_runs(policies, {}, {n.node: n for n in nodes}, now).due]


def test_a_disk_that_is_above_the_mark() -> None:
    nodes = (node(79.9), node(80, "n2"), node(95, "n3"), node(99, "x1"))
    assert fired((IMAGES,), *nodes) == [("images", "n3"), ("images", "n2")]  # the fullest first
    assert fired((replace(IMAGES, when=When(cron="0 3 * * *")),), *nodes) == []
    assert fired((PodPolicy(name="pods"),), *nodes) == []


def test_a_default_mark_is_ahead_of_the_kubelet() -> None:
    early = msgspec.structs.replace(node(66), kubelet=KubeletFact(image_gc_high_ratio=0.70))
    ours = ImagePolicy(name="images")
    assert fired((ours,), early) == [("images", "n1")]
    assert fired((ours,), node(66)) == []
    assert fired((IMAGES,), early) == []
    between = msgspec.structs.replace(
        early, disk=(disk(used=60),)
    )  # below the usual mark, not below the one that holds
    found = due_runs((ours,), {KEY: NOW - 10}, {"n1": between}, NOW)
    assert (found.due, found.fired) == ((), {KEY: NOW - 10})


def test_the_disk_of_the_root_on_the_node_that_it_is_on() -> None:
    assert fired((DATA,), node(99, "n1", nas=99), node(50, "n2", nas=91)) == [("data", "n2")]
    assert fired((DATA,), node(99, "n2", nas=89)) == []


def test_once_until_below_the_low_mark_or_half_an_hour_later() -> None:
    seen: list[tuple[float, float, bool]] = [
        (0, 85, True),
        (10, 86, False),
        (20, 75, False),  # between the marks
        (30, 85, False),
        (40, 69, False),  # below
        (50, 81, True),
        (60 + REPEAT_AFTER_SECONDS, 82, True),
        (70 + REPEAT_AFTER_SECONDS, 82, False),
    ]
    memory: dict[tuple[str, str], float] = {}
    for seconds, used, expect in seen:
        found = due_runs((IMAGES,), memory, {"n1": node(used, at=NOW + seconds)}, NOW + seconds)
        memory = dict(found.fired)
        assert bool(found.due) is expect, seconds


def test_a_run_that_was_kept_from_its_work_is_due_again_sooner_and_ever_less_so() -> None:
    assert [pause_seconds(times) for times in range(8)] == [1800, 60, 120, 240, 480, 960, 1800, 1800]
    for hindered, ago, expect in ((1, 59, False), (1, 60, True), (3, 239, False), (3, 240, True), (0, 240, False)):
        found = due_runs((IMAGES,), {KEY: NOW - ago}, {"n1": node(85)}, NOW, {KEY: PreviousRuns(hindered=hindered)})
        assert bool(found.due) is expect, (hindered, ago)
        assert found.fired == {KEY: NOW if expect else NOW - ago}


def test_a_run_that_a_clock_which_was_ahead_began_holds_up_no_other() -> None:
    found = due_runs((IMAGES,), {KEY: NOW + 7200}, {"n1": node(85)}, NOW)
    assert (len(found.due), found.fired) == (1, {KEY: NOW})


HINDERED: list[tuple[str, str | None, int, tuple[ItemState, ...], bool]] = [
    ("there was no plan", "refused", 0, (), True),
    ("the agent took nothing", "errors", 0, (ItemState.FAILED, ItemState.PLANNED), True),
    ("its only item failed", "done", 0, (ItemState.FAILED,), True),
    ("pods were starting", "done", 0, (ItemState.REFUSED, ItemState.LATER), True),
    ("the disk could not be read", "unmeasured", 0, (), True),
    ("nothing was left to do", "done", 0, (), False),
    ("all was in use", "done", 0, (ItemState.REFUSED,), False),
    ("it freed some", "errors", 5, (ItemState.DONE, ItemState.FAILED), False),
    ("a dry run", "dry-run", 0, (), False),
    ("it is under way", None, 0, (ItemState.FAILED,), False),
]


@pytest.mark.parametrize(("name", "end", "freed", "states", "expect"), HINDERED, ids=[row[0] for row in HINDERED])
def test_which_runs_were_kept_from_their_work(
    name: str, end: str | None, freed: int, states: tuple[ItemState, ...], expect: bool
) -> None:
    run = CleanupRun(
        id="r", policy="p", kind="images", mode="enforce", trigger="high-water", started_at=NOW,
        state=RunState.ENDED, end=end, freed_bytes=freed,
    )  # fmt: skip
    item = Item(id="i", name="i", why=Text(key="k"), risk=Risk.LOW, act=PurgeTrash(root="/x", older_than_seconds=1.0))
    entries = [JournalEntry(item=item, place=place, state=state) for place, state in enumerate(states)]
    assert was_hindered(run, entries) is expect


def refusal(name: str, code: str, ago: float) -> JournalEntry:
    item = Item(id=name, name=name, why=Text(key="k"), risk=Risk.LOW, act=PurgeTrash(root="/x", older_than_seconds=1.0))
    return JournalEntry(item=item, place=0, state=ItemState.REFUSED, outcome=code, ended_at=NOW - ago)


def test_what_may_have_passed_is_tried_again_within_minutes() -> None:
    codes = {"needed": True, "in-use": True, "too-young": True, "pinned": False, "local-only": False, "other": False}
    assert {code for code, passes in codes.items() if passes} <= PASSING_REFUSALS
    late = [refusal(code, code, SKIP_PASSING_SECONDS) for code in codes]
    assert refused_lately(late, NOW) == {code for code, passes in codes.items() if not passes}
    early = [refusal(code, code, SKIP_PASSING_SECONDS - 1) for code in codes]
    assert refused_lately(early, NOW) == set(codes), "or the plan would begin with them again"


def test_the_next_run_after_a_full_one_tries_again_what_may_have_passed() -> None:
    assert SKIP_PASSING_SECONDS < REPEAT_AFTER_SECONDS < SKIP_REFUSED_SECONDS


def test_a_run_that_reached_the_low_mark_makes_room_for_the_next() -> None:
    """Even if the disk was above the mark again before the next check."""
    found = due_runs((IMAGES,), {KEY: NOW - 60}, {"n1": node(75)}, NOW, {KEY: PreviousRuns(reached_low=True)})
    assert (found.due, found.fired) == ((), {})
    found = due_runs((IMAGES,), {KEY: NOW - 60}, {"n1": node(85)}, NOW, {KEY: PreviousRuns(reached_low=True)})
    assert (len(found.due), found.fired) == (1, {KEY: NOW})


def ran(end: str | None, at: float = NOW) -> tuple[CleanupRun, tuple[JournalEntry, ...]]:
    run = CleanupRun(
        id="r", policy="p", kind="images", mode="enforce", trigger="high-water", started_at=at, end=end,
        state=RunState.ENDED, ended_at=at + 10,
    )  # fmt: skip
    return run, ()


@pytest.mark.parametrize(
    ("runs", "expect"),
    [
        ((), PreviousRuns()),
        ((ran("low-water"),), PreviousRuns(reached_low=True)),
        ((ran("low-water", NOW - 1),), PreviousRuns()),  # of an earlier crossing
        ((ran("done"), ran("low-water")), PreviousRuns()),
        ((ran("errors"), ran("refused"), ran("done"), ran("errors")), PreviousRuns(hindered=2)),
        ((ran(None), ran("errors")), PreviousRuns()),
    ],
)
def test_what_became_of_the_run_that_was_due(
    runs: tuple[tuple[CleanupRun, tuple[JournalEntry, ...]], ...], expect: PreviousRuns
) -> None:
    assert previous_runs(runs, NOW, NOW + 70) == expect


def test_what_a_node_says_may_be_from_before_the_run() -> None:
    assert previous_runs((ran("low-water"),), NOW, NOW + 69) == PreviousRuns()


def test_what_is_not_known_changes_nothing() -> None:
    blind = msgspec.structs.replace(node(95), disk=None)
    empty = msgspec.structs.replace(node(95), disk=(disk(used_bytes=None),))
    for silent in (blind, empty, node(95, at=NOW - 700)):
        found = due_runs((IMAGES,), {KEY: NOW - 10}, {"n1": silent}, NOW)
        assert (found.due, found.fired) == ((), {KEY: NOW - 10})


@pytest.mark.parametrize(
    ("mode", "announce", "announced_at", "expect"),
    [
        (Mode.DRY_RUN, DAY, NOW - 9 * DAY, Permission.DRY_RUN),
        (Mode.ENFORCE, DAY, None, Permission.ANNOUNCE),
        (Mode.ENFORCE, DAY, NOW - DAY + 1, Permission.WAIT),
        (Mode.ENFORCE, DAY, NOW - DAY, Permission.ACT),
        (Mode.ENFORCE, 0.0, None, Permission.ACT),
    ],
)
def test_the_first_enforcement_is_announced(
    mode: Mode, announce: float, announced_at: float | None, expect: Permission
) -> None:
    assert permission(replace(IMAGES, mode=mode, announce=announce), announced_at, NOW) is expect


def test_a_policy_that_would_touch_something_else_is_another_one() -> None:
    same = replace(IMAGES, mode=Mode.ENFORCE, announce=0.0, receivers=("ops",))
    assert same.fingerprint == IMAGES.fingerprint
    others = [replace(IMAGES, min_age=1.0), replace(IMAGES, pins=("a",)), replace(IMAGES, when=When(low=0.1))]
    assert len({policy.fingerprint for policy in (IMAGES, *others)}) == 4


def test_only_a_zone_of_its_own_makes_another_policy() -> None:
    inherited = [replace(IMAGES, when=When(cron="0 3 * * *", timezone=zone, own_timezone=False)) for zone in ZONES]
    own = [replace(IMAGES, when=When(cron="0 3 * * *", timezone=zone)) for zone in ZONES]
    assert len({policy.fingerprint for policy in inherited}) == 1
    assert len({policy.fingerprint for policy in own}) == len(ZONES)


def test_only_what_was_told_long_enough_ago() -> None:
    act = PurgeTrash(root="/x", older_than_seconds=1.0)
    cases = {None: False, NOW + 1: False, NOW: True, NOW - 1: True}
    for not_before, expect in cases.items():
        item = Item(id="i", name="i", why=Text(key="k"), risk=Risk.LOW, not_before=not_before, act=act)
        assert is_ready(item, NOW) is expect
