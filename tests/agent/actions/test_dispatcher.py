"""Actions at work: one at a time per kind, written down before and after, remembered for a while."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import msgspec
import pytest

from monitor.agent.actions import dispatcher as desk_module
from monitor.agent.actions.dispatcher import (
    MAX_QUEUED_PER_KIND,
    MAX_REMEMBERED_ACTIONS,
    ActionDispatcher,
    ActionHandler,
    ActionQueueFullError,
    NotStoppableError,
)
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, done, refused
from monitor.agent.journal import ActionJournal
from monitor.facts.actions import Action, ActionFact, ActionState, KillProcess, PruneBuildCache, ScanDatasets
from tests.agent.actions.requests_made import request
from tests.support import wait_until
from tests.support.clock import FakeClock

KILL = KillProcess(pid=1, started_at=0.0, gpu="GPU-1")
SCAN = ScanDatasets(root="/mnt/a", pattern="*")


class Works:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.began: list[Action] = []
        self.at_once = 0
        self.most_at_once = 0
        self.release = threading.Event()

    def __call__(self, action: Action, job: ActionContext) -> ActionOutcome:
        self.began.append(action)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        job.progress["seen"] = len(self.began)
        while not (self.release.is_set() or job.stop.is_set()):
            time.sleep(0.005)
        self.at_once -= 1
        return done("stopped" if job.stop.is_set() else "removed", freed_bytes=7)


@pytest.fixture
def works() -> Works:
    return Works()


@pytest.fixture
def journal(tmp_path: Path) -> ActionJournal:
    return ActionJournal(str(tmp_path / "journal"))


def desk(journal: ActionJournal, handler: ActionHandler, clock: FakeClock | None = None) -> ActionDispatcher:
    handlers: dict[type[Action], ActionHandler] = dict.fromkeys((PruneBuildCache, KillProcess, ScanDatasets), handler)
    stoppable = frozenset({ScanDatasets})
    return (
        ActionDispatcher(handlers, stoppable, journal, clock)
        if clock
        else ActionDispatcher(handlers, stoppable, journal)
    )


def ended(desk: ActionDispatcher, ident: str) -> ActionFact:
    wait_until(lambda: (fact := desk.fact(ident)) and fact.state is not ActionState.RUNNING, 5, f"{ident} ended")
    fact = desk.fact(ident)
    assert fact is not None
    return fact


def test_an_action_from_beginning_to_end(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    asked = request()
    first = table.submit(asked)
    assert (first.id, first.kind, first.state) == (asked.id, "prune-build-cache", ActionState.RUNNING)
    wait_until(lambda: works.began, 5, "it began")
    running = table.fact(asked.id)
    assert running is not None
    assert (running.state, running.progress, table.counts()[2]) == (ActionState.RUNNING, {"seen": 1}, (asked.id,))
    assert [line.what["id"] for line in journal.open()] == [asked.id]  # written down before it was begun
    works.release.set()
    fact = ended(table, asked.id)
    assert (fact.state, fact.outcome, fact.freed_bytes) == (ActionState.DONE, "removed", 7)
    assert fact.finished_at is not None
    assert table.counts() == ({"prune-build-cache/removed": 1}, {}, ())
    intent, outcome = journal.lines()
    assert (intent.what["policy"], intent.what["plan"], outcome.outcome) == ("p", "plan-1", "removed")
    assert json.loads(str(intent.what["action"])) == {
        "kind": "prune-build-cache", "runtime": "docker", "unused_seconds": 0.0
    }  # fmt: skip


def test_one_at_a_time_of_a_kind_and_kinds_beside_each_other(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    asked = [request() for _ in range(5)] + [request(KILL)]
    for one in asked:
        table.submit(one)
    wait_until(lambda: len(works.began) == 2, 5, "one of each kind began")
    works.release.set()
    for one in asked:
        ended(table, one.id)
    assert works.most_at_once == 2
    assert table.counts()[0] == {"prune-build-cache/removed": 5, "kill-process/removed": 1}


def test_only_what_can_be_stopped_is(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    scan, prune = request(SCAN), request()
    for one in (scan, prune):
        table.submit(one)
    table.stop(scan.id)
    assert ended(table, scan.id).outcome == "stopped"
    for ident in (prune.id, scan.id, "nobody"):
        with pytest.raises(NotStoppableError):
            table.stop(ident)
    works.release.set()
    assert ended(table, prune.id).outcome == "removed"


def test_what_was_interrupted_is_told_after_a_restart(works: Works, journal: ActionJournal) -> None:
    asked = request()
    desk(journal, works).submit(asked)
    wait_until(lambda: works.began, 5, "it began")
    again = desk(journal, works)  # as if the agent had died there
    fact = again.fact(asked.id)
    assert fact is not None
    assert (fact.state, fact.outcome, fact.kind) == (ActionState.FAILED, "interrupted", "prune-build-cache")
    assert journal.open() == ()
    works.release.set()


def test_a_handler_that_breaks_is_an_outcome(journal: ActionJournal) -> None:
    def breaks(_action: Action, _job: ActionContext) -> ActionOutcome:
        raise RuntimeError("oops")

    table = desk(journal, breaks)
    for _ in range(2):  # and not the end of its lane
        table.submit(asked := request())
        fact = ended(table, asked.id)
        assert (fact.state, fact.outcome, fact.message) == (ActionState.FAILED, "failed", "RuntimeError: oops")
    assert table.counts()[1] == {"prune-build-cache/failed": 2}


def test_what_cannot_be_written_down_is_not_done(works: Works, tmp_path: Path) -> None:
    table = desk(ActionJournal(str(tmp_path / "no" / "journal")), works)
    table.submit(asked := request())
    fact = ended(table, asked.id)
    assert (fact.state, fact.outcome, works.began) == (ActionState.FAILED, "not-journaled", [])


def test_one_that_waited_for_too_long_is_not_done(works: Works, journal: ActionJournal) -> None:
    clock = FakeClock(time.time())
    table = desk(journal, works, clock)
    first, second = request(), request()
    for one in (first, second):
        table.submit(one)
    wait_until(lambda: works.began, 5, "the first began")
    clock.advance(100)
    works.release.set()
    assert ended(table, first.id).outcome == "removed"
    fact = ended(table, second.id)
    assert (fact.state, fact.outcome, len(works.began)) == (ActionState.REFUSED, "expired", 1)


def test_more_than_can_wait_is_refused(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    table.submit(request())
    wait_until(lambda: works.began, 5, "the first began")
    for _ in range(MAX_QUEUED_PER_KIND):
        table.check_room(request().action)
        table.submit(request())
    with pytest.raises(ActionQueueFullError):
        table.check_room(request().action)
    table.check_room(KILL)
    works.release.set()


def test_an_action_that_nobody_does(works: Works, journal: ActionJournal) -> None:
    table = ActionDispatcher({}, frozenset(), journal)
    table.submit(asked := request())
    assert ended(table, asked.id).outcome == "unsupported"


def test_only_the_last_are_remembered(journal: ActionJournal) -> None:
    table = desk(journal, lambda _action, _job: done("done"))
    asked = [request() for _ in range(MAX_REMEMBERED_ACTIONS + 5)]
    for number, one in enumerate(asked):
        table.submit(one)
        if number % 40 == 0:  # no more than may wait
            ended(table, one.id)
    ended(table, asked[-1].id)
    known = [table.fact(one.id) for one in asked]
    assert known[:5] == [None] * 5
    assert None not in known[5:]


def test_results_are_remembered_as_long_as_there_is_room(
    journal: ActionJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "MAX_RESULT_BYTES", 250)
    sizes = iter((100, 100, 100, 300, 0, 10))
    table = desk(
        journal,
        lambda _action, _job: ActionOutcome(
            ActionState.DONE, "done", result={"scan": msgspec.Raw(b"1" * size)} if (size := next(sizes)) else {}
        ),
    )
    kept = []
    asked = [request() for _ in range(6)]
    for one in asked:
        table.submit(one)
        ended(table, one.id)
        kept.append([bool(fact and fact.result) for fact in map(table.fact, [each.id for each in asked])])
    yes, no = True, False
    assert kept == [
        [yes, no, no, no, no, no],
        [yes, yes, no, no, no, no],
        [no, yes, yes, no, no, no],
        [no, no, no, yes, no, no],  # the newest stays, however large
        [no, no, no, no, no, no],
        [no, no, no, no, no, yes],
    ]


def test_what_comes_first_is_done_before_any_action_of_its_kinds(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    begun, release = threading.Event(), threading.Event()

    def task(_job: ActionContext) -> None:
        begun.set()
        release.wait(10)
        raise RuntimeError("oops")

    table.first(task, KillProcess, PruneBuildCache)
    assert begun.wait(5)
    for one in (asked := [request(KILL), request(), request(SCAN)]):
        table.submit(one)
    wait_until(lambda: works.began, 5, "what does not wait began")
    assert works.began == [SCAN]
    release.set()
    works.release.set()
    assert [ended(table, one.id).outcome for one in asked] == ["removed"] * 3


def test_what_comes_first_is_stopped_with_the_rest(works: Works, journal: ActionJournal) -> None:
    table = desk(journal, works)
    stopped = threading.Event()
    table.first(lambda job: stopped.set() if job.stop.wait(10) else None, KillProcess)
    table.stop_all()
    assert stopped.wait(5)


def test_a_refusal_counts_as_what_was_done(journal: ActionJournal) -> None:
    table = desk(journal, lambda _action, _job: refused("in-use", "somebody has it"))
    table.submit(asked := request())
    fact = ended(table, asked.id)
    assert (fact.state, fact.message) == (ActionState.REFUSED, "somebody has it")
    assert table.counts()[0] == {"prune-build-cache/in-use": 1}
