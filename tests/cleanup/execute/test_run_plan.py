"""Runs: what is done, what is not, and where they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.cleanup.execute.disk_level import Level, Reading
from monitor.cleanup.execute.run_plan import Done, Executor, StoppedError
from monitor.cleanup.journal import ItemState, Journal, RunState
from monitor.cleanup.model import Item, Mode, Risk
from monitor.cleanup.policy import Caps
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.facts.text import Text
from tests.cleanup.support import GIB, NOW, Hands, item, plan, run


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(str(tmp_path / "cleanup.db"))
    yield journal
    journal.close()


def executor(journal: Journal, hands: Hands, stopping: threading.Event | None = None) -> Executor:
    return Executor(journal, hands, stopping or threading.Event(), lambda: NOW, rest=0.01)


def items(count: int) -> list[Item]:
    return [item(number) for number in range(count)]


def test_what_may_be_done_is_done_in_order_and_written_down(journal: Journal) -> None:
    hands = Hands()
    later = replace(item(7), not_before=NOW + 1)
    untold = replace(item(8), not_before=None)
    done = executor(journal, hands).run(run(), plan(item(1), later, untold, item(2)), Caps(), None)
    assert hands.done == ["lab/i1:1", "lab/i2:1"]
    assert (done.state, done.end, done.freed_bytes) == (RunState.ENDED, "done", 2 * GIB)
    assert [(entry.item.name, entry.state, entry.outcome) for entry in journal.entries("run-1")] == [
        ("lab/i1:1", ItemState.DONE, "removed"),
        ("lab/i2:1", ItemState.DONE, "removed"),
    ]


def test_a_dry_run_asks_nobody(journal: Journal) -> None:
    hands = Hands()
    noted = executor(journal, hands).note(run(mode="dry-run"), plan(item(1), mode=Mode.DRY_RUN), "dry-run")
    assert (hands.done, hands.asked) == ([], [])
    assert (noted.state, noted.end) == (RunState.PLANNED, "dry-run")
    assert journal.entries("run-1") == ()
    assert journal.plan("run-1") is not None
    assert journal.open_runs() == ()


def fail_from(number: int) -> Callable[[Item], Done]:
    def answer(one: Item) -> Done:
        failing = int(one.id.rpartition("/")[2]) >= number
        return Done(ItemState.FAILED, "failed", "no") if failing else Done(ItemState.DONE, "removed", freed_bytes=GIB)

    return answer


@pytest.mark.parametrize(
    ("name", "hands", "caps", "done", "end"),
    [
        ("all of it", Hands(), Caps(), 10, "done"),
        ("the byte limit", Hands(), Caps(bytes=3 * GIB), 3, "bytes"),
        ("its time is over", Hands(), Caps(minutes=0), 0, "minutes"),
        ("each one fails", Hands(fail_from(0)), Caps(error_share=0.2), 3, "errors"),
        ("the last two fail", Hands(fail_from(8)), Caps(error_share=0.2), 10, "done"),
        ("not a single one may fail", Hands(fail_from(4)), Caps(error_share=0), 5, "errors"),
        (
            "what is refused is no error",
            Hands(lambda _: Done(ItemState.REFUSED, "in-use")),
            Caps(error_share=0),
            10,
            "done",
        ),
    ],
)
def test_where_it_ends(journal: Journal, name: str, hands: Hands, caps: Caps, done: int, end: str) -> None:
    ended = executor(journal, hands).run(run(), plan(*items(10)), caps, None)
    assert (len(hands.done), ended.end) == (done, end)
    states = [entry.state for entry in journal.entries("run-1")]
    assert states.count(ItemState.PLANNED) == 10 - done


class Disk:
    """A disk whose agent reads it now and then. What is freed is freed, whatever anybody said that it would be."""

    def __init__(self, needed: int, frees: int, told: int | None, readings: int = 1) -> None:
        self.needed = needed
        self.frees, self.told, self.readings = frees, told, readings
        self._seen = (needed, NOW - 1)
        self._looks = 0
        self.now = NOW

    def read(self) -> Reading:
        self._looks += 1
        self.now += 0.001
        if self._looks % self.readings == 0:
            self._seen = (self.needed, self.now)
        return Reading(self._seen[0], 0.5, self._seen[1])

    def remove(self, _item: Item) -> Done:
        self.needed -= self.frees
        self.now += 1
        return Done(ItemState.DONE, "removed", freed_bytes=self.told)

    def clock(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize("readings", [1, 3, 7])
@pytest.mark.parametrize(
    ("name", "needed", "frees", "told", "done"),
    [
        ("as planned", 3 * GIB, GIB, GIB, 3),
        ("a run that needs nothing", 0, GIB, GIB, 0),
        ("each frees more than was planned: it stops early", 3 * GIB, 3 * GIB, 3 * GIB, 1),
        ("each frees less than was planned: it goes on", 3 * GIB, GIB // 2, GIB // 2, 6),
        ("the agent overstates: the disk decides", 3 * GIB, GIB // 2, 9 * GIB, 6),
        ("the agent understates: at most one too many", 3 * GIB, GIB, GIB // 4, 3),
        ("nobody knows what was freed: the disk decides", 3 * GIB, GIB, None, 3),
    ],
)
def test_it_stops_at_the_mark_as_measured(
    journal: Journal, name: str, needed: int, frees: int, told: int | None, done: int, readings: int
) -> None:
    disk, stopping = Disk(needed, frees, told, readings), _Impatient()
    hands = Hands(disk.remove)
    level = Level(disk.read, stopping, now=disk.clock, patience=5)
    work = Executor(journal, hands, stopping, lambda: NOW)
    ended = work.run(run(), plan(*items(10)), Caps(), level)
    slow = readings > 1 and told is not None and told < frees  # an old reading, and an agent that says too little
    assert done <= len(hands.done) <= done + (readings if slow else 0)
    assert ended.end == "low-water"
    assert disk.needed <= 0


class _Impatient(threading.Event):
    """Waits for nothing, so that time passes by looking only."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


STARTING = Done(ItemState.LATER, "starting", "pod lab/a is starting and may name it")


def test_pods_that_are_starting_are_waited_for(journal: Journal) -> None:
    """What passes within a minute must not cost half an hour, or the night until the next run by crontab."""
    answers = iter([STARTING, STARTING])
    hands = Hands(lambda _: next(answers, Done(ItemState.DONE, "removed", freed_bytes=GIB)))
    ended = executor(journal, hands).run(run(), plan(*items(2)), Caps(), None)
    assert hands.done == ["lab/i0:1"] * 3 + ["lab/i1:1"]
    assert len(set(hands.requests)) == 4  # an id is used once
    assert [entry.state for entry in journal.entries("run-1")] == [ItemState.DONE] * 2
    assert ended.freed_bytes == 2 * GIB


def test_pods_that_start_all_the_time_are_not_waited_for_for_ever(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.cleanup.execute.run_plan.PATIENCE", 0.05)
    hands = Hands(lambda _: STARTING)
    ended = executor(journal, hands).run(run(), plan(*items(3)), Caps(), None)
    assert (ended.end, ended.freed_bytes) == ("done", 0)
    assert hands.done[-2:] == ["lab/i1:1", "lab/i2:1"]  # the patience is the run's, not each item's
    assert {entry.state for entry in journal.entries("run-1")} == {ItemState.LATER}
    assert journal.refused_since(0.0) == frozenset()  # the next plan has them again


def test_stopped_while_it_waits_for_a_pod_it_stays_open(journal: Journal) -> None:
    stopping = threading.Event()

    def answer(_: Item) -> Done:
        stopping.set()
        return STARTING

    with pytest.raises(StoppedError):
        executor(journal, Hands(answer), stopping).run(run(), plan(item(1)), Caps(), None)
    assert [entry.state for entry in journal.entries("run-1")] == [ItemState.INTENDED]


def test_a_disk_that_cannot_be_read_any_more_ends_the_run(journal: Journal) -> None:
    readings = iter([Reading(GIB, 0.9, NOW - 1)])
    hands = Hands(lambda _: Done(ItemState.DONE, "removed", freed_bytes=None))
    level = Level(lambda: next(readings, None), threading.Event(), now=lambda: NOW, patience=0.05)
    ended = executor(journal, hands).run(run(), plan(*items(5)), Caps(), level)
    assert (ended.end, len(hands.done)) == ("unmeasured", 1)  # the first was measured to be needed


def test_what_goes_into_the_trash_counts_though_it_is_not_free_yet(journal: Journal) -> None:
    disk = Disk(3 * GIB, 0, None)
    trash = TrashUnit(root="/r", path="a", device=1, inode=1, newest=1.0, policy="p")
    hands = Hands(lambda one: Done(ItemState.DONE, "trashed", trash=f"t-{one.name}"))
    units = [replace(each, act=trash) for each in items(10)]
    level = Level(disk.read, threading.Event(), waiting=GIB, now=disk.clock, patience=1)
    ended = executor(journal, hands).run(run(), plan(*units), Caps(), level)
    assert (ended.end, len(hands.done), ended.freed_bytes) == ("low-water", 2, 2 * GIB)


def test_a_purge_and_what_is_over_quota_are_due_however_full_the_disk_is(journal: Journal) -> None:
    purge = replace(item(1), act=PurgeTrash(root="/r", older_than_seconds=1.0))
    quota = replace(item(2), why=Text(key="cleanup.why.dataset-over-quota"))
    hands, disk = Hands(), Disk(0, 0, 0)
    level = Level(disk.read, threading.Event(), now=disk.clock, patience=1)
    ended = executor(journal, hands).run(run(), plan(purge, quota, item(3)), Caps(), level)
    assert (hands.done, ended.end) == (["lab/i1:1", "lab/i2:1"], "low-water")


def test_stopped_between_two_items_it_stays_open(journal: Journal) -> None:
    stopping = threading.Event()

    def answer(_item: Item) -> Done:
        stopping.set()
        return Done(ItemState.DONE, "removed", freed_bytes=GIB)

    hands = Hands(answer)
    with pytest.raises(StoppedError):
        executor(journal, hands, stopping).run(run(), plan(*items(3)), Caps(), None)
    assert len(hands.done) == 1
    assert [each.id for each in journal.open_runs()] == ["run-1"]
    after = Hands()
    (closed,) = executor(journal, after).recover()
    assert (closed.end, closed.freed_bytes, after.asked, after.done) == ("interrupted", GIB, [], [])


def test_what_cannot_be_written_down_is_done_only_if_it_can_be_had_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "trouble", "the disk is full")
    hands = Hands()
    risky = replace(item(2), risk=Risk.MEDIUM)
    executor(journal, hands).run(run(), plan(item(1), risky), Caps(error_share=1), None)
    assert hands.done == ["lab/i1:1"]
    assert journal.entries("run-1")[1].outcome == "not-journaled"


def test_who_asks_while_a_run_says_its_last_words_is_heard(journal: Journal) -> None:
    subject = executor(journal, Hands())
    assert subject.claim("images", "gpu-1")
    threading.Timer(0.2, subject.release, ("images", "gpu-1")).start()
    assert not subject.claim("images", "gpu-1")
    assert subject.claim("images", "gpu-1", patience=10.0)
    assert not subject.claim("images", "gpu-1", patience=0.05)


def test_one_run_at_a_time_for_each_policy_and_node(journal: Journal) -> None:
    work = executor(journal, Hands())
    assert work.claim("p", "n1")
    assert not work.claim("p", "n1")
    assert work.claim("p", "n2")
    assert work.claim("q", "n1")
    work.release("p", "n1")
    assert work.claim("p", "n1")


def test_a_run_that_begins_after_the_start_is_not_taken_for_an_old_one(journal: Journal) -> None:
    work = executor(journal, Hands())
    journal.begin(run(), plan(item()), [item()])
    assert work.recover() == ()


def test_level_does_not_wait_for_ever() -> None:
    level = Level(lambda: Reading(5, 0.9, NOW - 10), threading.Event(), now=lambda: NOW, patience=0.1)
    level.freed(7)
    began = time.monotonic()
    assert level.reached() is None
    assert time.monotonic() - began < 1.5
