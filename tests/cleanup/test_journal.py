"""The journal, also after kill -9 at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.base.sqlite import DatabaseError
from monitor.cleanup.execute.run_plan import PlanRunner
from monitor.cleanup.journal import MAX_PLAN_BYTES, CleanupJournal, new_id
from monitor.cleanup.journal_records import ItemState, JournalEntry, RunState
from monitor.cleanup.relay import POSITION_KEY, Relay
from tests.alert.delivery.sender_support import notification
from tests.cleanup.support import NOW, FakeExecutor, Outbox, item, plan, run
from tests.support import wait_until


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CleanupJournal]:
    journal = CleanupJournal(str(tmp_path / "cleanup.db"))
    yield journal
    journal.close()


def test_a_run_from_beginning_to_end(journal: CleanupJournal) -> None:
    entries = journal.begin(run(), plan(item(1), item(2)), [item(1)])
    assert [(entry.place, entry.state) for entry in entries] == [(0, ItemState.PLANNED)]
    assert [one.id for one in journal.open_runs()] == ["run-1"]
    intended_entry = replace(entries[0], state=ItemState.INTENDED, request="act-1", intended_at=NOW)
    journal.write(run(), intended_entry)
    assert journal.entries("run-1") == (intended_entry,)
    done = replace(intended_entry, state=ItemState.DONE, ended_at=NOW + 5, outcome="trashed", trash="t-1")
    journal.write(run(freed_bytes=7), done)
    journal.end(run(freed_bytes=7, state=RunState.ENDED, end="done"))
    assert journal.open_runs() == ()
    assert [(one.id, one.end, one.freed_bytes) for one in journal.runs(5)] == [("run-1", "done", 7)]
    stored = journal.plan("run-1")
    assert stored is not None
    assert [one.name for one in stored.items] == ["lab/i1:1", "lab/i2:1"]
    assert journal.trashed("t-1") == done
    assert journal.trashed("t-2") is None
    assert journal.ended_since(NOW + 6) == ()
    assert journal.ended_since(NOW) == (done,)


def test_the_older_half_of_ended_runs_is_given_up_but_no_open_run_and_nothing_in_the_trash(
    journal: CleanupJournal,
) -> None:
    for number in range(1, 5):
        one = replace(run(), id=f"run-{number}", state=RunState.RUNNING if number == 1 else RunState.ENDED)
        (entry,) = journal.begin(one, plan(item()), [item()])
        journal.write(one, replace(entry, ended_at=NOW, trash="t-2" if number == 2 else None))
    assert journal.shrink()
    assert {one.id for one in journal.runs(9)} == {"run-1", "run-4"}
    assert journal.trashed("t-2") is not None
    assert journal.entries("run-3") == ()


def test_a_plan_that_is_too_large_is_stored_without_its_lists(journal: CleanupJournal) -> None:
    large = replace(item(), name="x" * MAX_PLAN_BYTES)
    journal.begin(run(), plan(large), [item()])
    stored = journal.plan("run-1")
    assert stored is not None
    assert (stored.policy, stored.items) == (plan(large).policy, ())


def test_what_was_refused_lately(journal: CleanupJournal) -> None:
    (entry,) = journal.begin(run(), plan(item()), [item()])
    journal.write(run(), replace(entry, state=ItemState.REFUSED, ended_at=NOW))
    assert [each.item for each in journal.refused_since(NOW - 1)] == [item()]
    assert journal.refused_since(NOW + 1) == ()


def test_runs_of_one_policy_and_the_latest_first(journal: CleanupJournal) -> None:
    for number in range(5):
        journal.begin(run(f"run-{number}", policy=f"p{number % 2}"), plan())
    assert [one.id for one in journal.runs(2)] == ["run-4", "run-3"]
    assert [one.id for one in journal.runs(9, "p1")] == ["run-3", "run-1"]


def test_runs_of_one_policy_on_one_node(journal: CleanupJournal) -> None:
    for number in range(5):
        journal.begin(run(f"run-{number}", policy=f"p{number % 2}", node="n1" if number < 3 else "n2"), plan())
    assert [one.id for one in journal.runs(9, "p0", "n1")] == ["run-2", "run-0"]
    assert [one.id for one in journal.runs(9, node="n2")] == ["run-4", "run-3"]


def test_from_when_on_runs_are_kept(journal: CleanupJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.cleanup.journal.MAX_RUNS", 3)
    kept: list[float | None] = [journal.kept_since()]
    for number in range(5):
        journal.begin(run(f"run-{number}", started_at=NOW + number), plan())
        kept.append(journal.kept_since())
    assert kept == [None, None, None, None, NOW + 1, NOW + 2]
    assert [one.started_at for one in journal.runs(9)] == [NOW + 4, NOW + 3, NOW + 2]


def test_notices_announcements_and_attempts(journal: CleanupJournal) -> None:
    journal.record_notices("p", {"a": "zhang", "b": None}, [notification()], NOW)
    journal.record_notices("p", {"a": "zhang"}, [], NOW + 9)
    journal.record_notices("q", {"a": "li"}, [], NOW + 1)
    assert len(journal.messages(0)) == 1
    assert journal.notices("p") == {"a": NOW + 9, "b": NOW}
    assert journal.announced_at("p", "f1") is None
    journal.announce("p", "f1", [], NOW)
    journal.announce("p", "f1", [notification()], NOW + 50)  # the first time counts
    assert len(journal.messages(0)) == 1
    assert journal.announced_at("p", "f1") == NOW
    assert journal.announced_at("p", "f2") is None
    journal.record_eviction("x", NOW)
    journal.record_eviction("x", NOW + 50)
    assert journal.first_evictions() == {"x": NOW}


def test_the_same_is_told_once(journal: CleanupJournal) -> None:
    for body in ("a", "a", "b", "a"):
        journal.send_if_changed("told p", body, [notification()])
    assert len(journal.messages(0)) == 3


def test_messages_arrive_in_the_outbox_exactly_once(journal: CleanupJournal) -> None:
    outbox = Outbox()
    relay = Relay(journal, outbox)
    journal.record_notices("p", {"a": "zhang"}, [notification("one"), notification("two")], NOW)
    outbox.broken = DatabaseError("disk full")
    relay.forward()
    assert outbox.sent == []
    outbox.broken = None
    relay.forward()
    relay.forward()
    assert [message.group for message in outbox.sent] == ["one", "two"]
    assert journal.messages(0) == ()
    journal.record_notices("p", {}, [notification("three")], NOW)
    relay.forward()
    assert [message.group for message in outbox.sent] == ["one", "two", "three"]


def test_killed_between_the_outbox_and_the_journal_nothing_is_told_twice(journal: CleanupJournal) -> None:
    outbox = Outbox()
    journal.record_notices("p", {}, [notification("one")], NOW)
    number, message = journal.messages(0)[0]
    outbox.send([message], {POSITION_KEY: f"{journal.metadata('journal')} {number}".encode()})  # then killed
    Relay(journal, outbox).forward()
    assert [message.group for message in outbox.sent] == ["one"]
    assert journal.messages(0) == ()


def test_a_new_journal_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    outbox = Outbox()
    for name in ("old", "new"):
        journal = CleanupJournal(str(tmp_path / name))
        journal.record_notices("p", {}, [notification(name)], NOW)
        Relay(journal, outbox).forward()
    assert [message.group for message in outbox.sent] == ["old", "new"]


CHILD = """
import sys, threading, time
from monitor.cleanup.execute.run_plan import ItemOutcome, PlanRunner
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.journal_records import ItemState
from monitor.cleanup.policy import Caps
from tests.cleanup.support import item, plan, run

class Slow:
    def execute(self, run, item, request):
        with open(sys.argv[2], "a") as out:
            print(request, item.name, file=out, flush=True)
        time.sleep(float(sys.argv[3]))
        return ItemOutcome(ItemState.DONE, "removed", freed_bytes=1)
    def recover(self, entry):
        raise AssertionError

stopping = threading.Event()
runner = PlanRunner(CleanupJournal(sys.argv[1]), Slow(), stopping)
runner.run(run(), plan(*map(item, range(200))), Caps(items=200, error_share=1), None)
"""


@pytest.mark.parametrize("pause", [0.0, 0.003, 0.05])
def test_kill_9_at_any_moment_does_nothing_twice(tmp_path: Path, pause: float) -> None:
    """Killed between or during items: started items are journaled, and only those are recovered."""
    path, record = tmp_path / "cleanup.db", tmp_path / "done"
    command = [sys.executable, "-c", CHILD, str(path), str(record), str(pause)]
    child = subprocess.Popen(command, cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "."})
    try:
        wait_until(lambda: record.exists() and len(record.read_text().splitlines()) >= 5, 60, "five items were started")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(60)
    started = dict(line.split()[:2] for line in record.read_text().splitlines())
    journal = CleanupJournal(str(path))
    (left,) = journal.open_runs()
    before = journal.entries(left.id)
    open_items = [entry for entry in before if entry.state is ItemState.INTENDED]
    assert len(open_items) <= 1
    intended = {entry.request for entry in open_items}
    written = {entry.request for entry in before if entry.request is not None}
    assert set(started) <= written  # every executed item is journaled
    assert len(set(started.values())) == len(started)  # and executed once
    executor = FakeExecutor()
    (closed,) = PlanRunner(journal, executor, threading.Event()).recover()
    assert set(executor.recovered) == intended
    assert executor.executed == []
    assert (closed.state, closed.end) == (RunState.ENDED, "interrupted")
    assert [entry for entry in journal.entries(left.id) if entry.state is ItemState.INTENDED] == []
    journal.end(closed)
    assert journal.open_runs() == ()


def test_ids_are_unlike() -> None:
    assert len({new_id("act") for _ in range(1000)}) == 1000


def test_entries_are_what_was_written(journal: CleanupJournal) -> None:
    (entry,) = journal.begin(run(), plan(item()), [item()])
    assert isinstance(entry, JournalEntry)
    assert journal.entries("run-1")[0].item == item()
