"""Execution of plans: which items are executed, and where a run stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.cleanup.execute.disk_level import DiskLevel, DiskReading
from monitor.cleanup.execute.run_plan import ItemOutcome, PlanRunner, ShutdownError
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.journal_records import ItemState, RunState
from monitor.cleanup.model import Item, Mode, Risk
from monitor.cleanup.policy import Caps
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.facts.text import Text
from tests.cleanup.support import GIB, NOW, FakeExecutor, item, plan, run


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CleanupJournal]:
    journal = CleanupJournal(str(tmp_path / "cleanup.db"))
    yield journal
    journal.close()


def runner(journal: CleanupJournal, executor: FakeExecutor, stopping: threading.Event | None = None) -> PlanRunner:
    return PlanRunner(journal, executor, stopping or threading.Event(), lambda: NOW, retry=0.01)


def items(count: int) -> list[Item]:
    return [item(number) for number in range(count)]


def test_what_may_be_done_is_done_in_order_and_written_down(journal: CleanupJournal) -> None:
    executor = FakeExecutor()
    later = replace(item(7), not_before=NOW + 1)
    untold = replace(item(8), not_before=None)
    done = runner(journal, executor).run(run(), plan(item(1), later, untold, item(2)), Caps(), None)
    assert executor.executed == ["lab/i1:1", "lab/i2:1"]
    assert (done.state, done.end, done.freed_bytes) == (RunState.ENDED, "done", 2 * GIB)
    assert [(entry.item.name, entry.state, entry.outcome) for entry in journal.entries("run-1")] == [
        ("lab/i1:1", ItemState.DONE, "removed"),
        ("lab/i2:1", ItemState.DONE, "removed"),
    ]


def test_a_dry_run_asks_nobody(journal: CleanupJournal) -> None:
    executor = FakeExecutor()
    recorded = runner(journal, executor).record(run(mode="dry-run"), plan(item(1), mode=Mode.DRY_RUN), "dry-run")
    assert (executor.executed, executor.recovered) == ([], [])
    assert (recorded.state, recorded.end) == (RunState.PLANNED, "dry-run")
    assert journal.entries("run-1") == ()
    assert journal.plan("run-1") is not None
    assert journal.open_runs() == ()


def fail_from(number: int) -> Callable[[Item], ItemOutcome]:
    def answer(one: Item) -> ItemOutcome:
        failing = int(one.id.rpartition("/")[2]) >= number
        return (
            ItemOutcome(ItemState.FAILED, "failed", "no")
            if failing
            else ItemOutcome(ItemState.DONE, "removed", freed_bytes=GIB)
        )

    return answer


@pytest.mark.parametrize(
    ("name", "executor", "caps", "done", "end"),
    [
        ("all of it", FakeExecutor(), Caps(), 10, "done"),
        ("the byte limit", FakeExecutor(), Caps(bytes=3 * GIB), 3, "bytes"),
        ("its time is over", FakeExecutor(), Caps(minutes=0), 0, "minutes"),
        ("each one fails", FakeExecutor(fail_from(0)), Caps(error_share=0.2), 3, "errors"),
        ("the last two fail", FakeExecutor(fail_from(8)), Caps(error_share=0.2), 10, "done"),
        ("not a single one may fail", FakeExecutor(fail_from(4)), Caps(error_share=0), 5, "errors"),
        (
            "what is refused is no error",
            FakeExecutor(lambda _: ItemOutcome(ItemState.REFUSED, "in-use")),
            Caps(error_share=0),
            10,
            "done",
        ),
    ],
)
def test_where_it_ends(
    journal: CleanupJournal, name: str, executor: FakeExecutor, caps: Caps, done: int, end: str
) -> None:
    ended = runner(journal, executor).run(run(), plan(*items(10)), caps, None)
    assert (len(executor.executed), ended.end) == (done, end)
    states = [entry.state for entry in journal.entries("run-1")]
    assert states.count(ItemState.PLANNED) == 10 - done


class Disk:
    """A disk that is read on every `readings`-th call; items free `frees` bytes and report `reported` bytes."""

    def __init__(self, needed: int, frees: int, reported: int | None, readings: int = 1) -> None:
        self.needed = needed
        self.frees, self.reported, self.readings = frees, reported, readings
        self._seen = (needed, NOW - 1)
        self._reads = 0
        self.now = NOW

    def read(self) -> DiskReading:
        self._reads += 1
        self.now += 0.001
        if self._reads % self.readings == 0:
            self._seen = (self.needed, self.now)
        return DiskReading(self._seen[0], 0.5, self._seen[1])

    def remove(self, _item: Item) -> ItemOutcome:
        self.needed -= self.frees
        self.now += 1
        return ItemOutcome(ItemState.DONE, "removed", freed_bytes=self.reported)

    def clock(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize("readings", [1, 3, 7])
@pytest.mark.parametrize(
    ("name", "needed", "frees", "reported", "done"),
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
    journal: CleanupJournal, name: str, needed: int, frees: int, reported: int | None, done: int, readings: int
) -> None:
    disk, stopping = Disk(needed, frees, reported, readings), _NeverWaits()
    executor = FakeExecutor(disk.remove)
    level = DiskLevel(disk.read, stopping, now=disk.clock, timeout=60)
    work = PlanRunner(journal, executor, stopping, lambda: NOW)
    ended = work.run(run(), plan(*items(10)), Caps(), level)
    slow = (
        readings > 1 and reported is not None and reported < frees
    )  # a stale reading, and an agent that reports too little
    assert done <= len(executor.executed) <= done + (readings if slow else 0)
    assert ended.end == "low-water"
    assert disk.needed <= 0


class _NeverWaits(threading.Event):
    """Returns from wait() at once, so that time passes by readings only."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


STARTING = ItemOutcome(ItemState.LATER, "starting", "pod lab/a is starting and may name it")


def test_pods_that_are_starting_are_waited_for(journal: CleanupJournal) -> None:
    """A pod starts within a minute; waiting for the next run would take half an hour, or until the next cron run."""
    answers = iter([STARTING, STARTING])
    executor = FakeExecutor(lambda _: next(answers, ItemOutcome(ItemState.DONE, "removed", freed_bytes=GIB)))
    ended = runner(journal, executor).run(run(), plan(*items(2)), Caps(), None)
    assert executor.executed == ["lab/i0:1"] * 3 + ["lab/i1:1"]
    assert len(set(executor.requests)) == 4  # an id is used once
    assert [entry.state for entry in journal.entries("run-1")] == [ItemState.DONE] * 2
    assert ended.freed_bytes == 2 * GIB


def test_pods_that_start_all_the_time_are_not_waited_for_for_ever(
    journal: CleanupJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.cleanup.execute.run_plan.MAX_STARTING_WAIT_SECONDS", 0.05)
    executor = FakeExecutor(lambda _: STARTING)
    ended = runner(journal, executor).run(run(), plan(*items(3)), Caps(), None)
    assert (ended.end, ended.freed_bytes) == ("done", 0)
    assert executor.executed[-2:] == ["lab/i1:1", "lab/i2:1"]  # the wait is limited per run, not per item
    assert {entry.state for entry in journal.entries("run-1")} == {ItemState.LATER}
    assert journal.refused_since(0.0) == ()  # the next plan contains them again


def test_stopped_while_it_waits_for_a_pod_it_stays_open(journal: CleanupJournal) -> None:
    stopping = threading.Event()

    def answer(_: Item) -> ItemOutcome:
        stopping.set()
        return STARTING

    with pytest.raises(ShutdownError):
        runner(journal, FakeExecutor(answer), stopping).run(run(), plan(item(1)), Caps(), None)
    assert [entry.state for entry in journal.entries("run-1")] == [ItemState.INTENDED]


def test_a_disk_that_cannot_be_read_any_more_ends_the_run(journal: CleanupJournal) -> None:
    readings = iter([DiskReading(GIB, 0.9, NOW - 1)])
    executor = FakeExecutor(lambda _: ItemOutcome(ItemState.DONE, "removed", freed_bytes=None))
    level = DiskLevel(lambda: next(readings, None), threading.Event(), now=lambda: NOW, timeout=0.05)
    ended = runner(journal, executor).run(run(), plan(*items(5)), Caps(), level)
    assert (ended.end, len(executor.executed)) == ("unmeasured", 1)  # the first was measured to be needed


def test_what_goes_into_the_trash_counts_though_it_is_not_free_yet(journal: CleanupJournal) -> None:
    disk = Disk(3 * GIB, 0, None)
    trash = TrashUnit(root="/r", path="a", device=1, inode=1, newest=1.0, policy="p")
    executor = FakeExecutor(lambda one: ItemOutcome(ItemState.DONE, "trashed", trash=f"t-{one.name}"))
    units = [replace(one, act=trash) for one in items(10)]
    level = DiskLevel(disk.read, threading.Event(), trash_bytes=GIB, now=disk.clock, timeout=1)
    ended = runner(journal, executor).run(run(), plan(*units), Caps(), level)
    assert (ended.end, len(executor.executed), ended.freed_bytes) == ("low-water", 2, 2 * GIB)


def test_a_purge_and_what_is_over_quota_are_due_however_full_the_disk_is(journal: CleanupJournal) -> None:
    purge = replace(item(1), act=PurgeTrash(root="/r", older_than_seconds=1.0))
    quota = replace(item(2), why=Text(key="cleanup.why.dataset-over-quota"))
    executor, disk = FakeExecutor(), Disk(0, 0, 0)
    level = DiskLevel(disk.read, threading.Event(), now=disk.clock, timeout=1)
    ended = runner(journal, executor).run(run(), plan(purge, quota, item(3)), Caps(), level)
    assert (executor.executed, ended.end) == (["lab/i1:1", "lab/i2:1"], "low-water")


def test_stopped_between_two_items_it_stays_open(journal: CleanupJournal) -> None:
    stopping = threading.Event()

    def answer(_item: Item) -> ItemOutcome:
        stopping.set()
        return ItemOutcome(ItemState.DONE, "removed", freed_bytes=GIB)

    executor = FakeExecutor(answer)
    with pytest.raises(ShutdownError):
        runner(journal, executor, stopping).run(run(), plan(*items(3)), Caps(), None)
    assert len(executor.executed) == 1
    assert [open_run.id for open_run in journal.open_runs()] == ["run-1"]
    after = FakeExecutor()
    (closed,) = runner(journal, after).recover()
    assert (closed.end, closed.freed_bytes, after.recovered, after.executed) == ("interrupted", GIB, [], [])


def test_what_cannot_be_written_down_is_done_only_if_it_can_be_had_again(
    journal: CleanupJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CleanupJournal, "trouble", "the disk is full")
    executor = FakeExecutor()
    risky = replace(item(2), risk=Risk.MEDIUM)
    runner(journal, executor).run(run(), plan(item(1), risky), Caps(error_share=1), None)
    assert executor.executed == ["lab/i1:1"]
    assert journal.entries("run-1")[1].outcome == "not-journaled"


def test_who_asks_while_a_run_says_its_last_words_is_heard(journal: CleanupJournal) -> None:
    subject = runner(journal, FakeExecutor())
    assert subject.claim("images", "gpu-1")
    threading.Timer(0.2, subject.release, ("images", "gpu-1")).start()
    assert not subject.claim("images", "gpu-1")
    assert subject.claim("images", "gpu-1", timeout=60.0)
    assert not subject.claim("images", "gpu-1", timeout=0.05)


def test_one_run_at_a_time_for_each_policy_and_node(journal: CleanupJournal) -> None:
    work = runner(journal, FakeExecutor())
    assert work.claim("p", "n1")
    assert not work.claim("p", "n1")
    assert work.claim("p", "n2")
    assert work.claim("q", "n1")
    work.release("p", "n1")
    assert work.claim("p", "n1")


def test_a_run_that_begins_after_the_start_is_not_taken_for_an_old_one(journal: CleanupJournal) -> None:
    work = runner(journal, FakeExecutor())
    journal.begin(run(), plan(item()), [item()])
    assert work.recover() == ()


def test_level_does_not_wait_for_ever() -> None:
    level = DiskLevel(lambda: DiskReading(5, 0.9, NOW - 10), threading.Event(), now=lambda: NOW, timeout=0.1)
    level.record_freed(7)
    assert level.reached() is None
