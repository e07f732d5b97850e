"""The dispatcher: one action at a time per kind, journaled before and after, and remembered for a while."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import msgspec
import pytest

from monitor.agent.actions import dispatcher as dispatcher_module
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
from tests.agent.actions.requests_sent import request
from tests.support import wait_until
from tests.support.clock import FakeClock

KILL = KillProcess(pid=1, started_at=0.0, gpu="GPU-1")
SCAN = ScanDatasets(root="/mnt/a", pattern="*")


class BlockingHandler:
    """A handler that blocks until it is released or stopped."""

    def __init__(self) -> None:
        self.started: list[Action] = []
        self.concurrent = 0
        self.most_concurrent = 0
        self.release = threading.Event()

    def __call__(self, action: Action, context: ActionContext) -> ActionOutcome:
        self.started.append(action)
        self.concurrent += 1
        self.most_concurrent = max(self.most_concurrent, self.concurrent)
        context.progress["seen"] = len(self.started)
        while not (self.release.is_set() or context.stop.is_set()):
            time.sleep(0.005)
        self.concurrent -= 1
        return done("stopped" if context.stop.is_set() else "removed", freed_bytes=7)


@pytest.fixture
def handler() -> BlockingHandler:
    return BlockingHandler()


@pytest.fixture
def journal(tmp_path: Path) -> ActionJournal:
    return ActionJournal(str(tmp_path / "journal"))


def make_dispatcher(journal: ActionJournal, handler: ActionHandler, clock: FakeClock | None = None) -> ActionDispatcher:
    handlers: dict[type[Action], ActionHandler] = dict.fromkeys((PruneBuildCache, KillProcess, ScanDatasets), handler)
    stoppable = frozenset({ScanDatasets})
    return (
        ActionDispatcher(handlers, stoppable, journal, clock)
        if clock
        else ActionDispatcher(handlers, stoppable, journal)
    )


def finished(dispatcher: ActionDispatcher, action_id: str) -> ActionFact:
    def fact() -> ActionFact:
        known = dispatcher.fact(action_id)
        assert known is not None
        return known

    wait_until(lambda: fact().state is not ActionState.RUNNING, 30, f"{action_id} has finished")
    return fact()


def test_an_action_from_beginning_to_end(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, handler)
    sent = request()
    first = dispatcher.submit(sent)
    assert (first.id, first.kind, first.state) == (sent.id, "prune-build-cache", ActionState.RUNNING)
    wait_until(lambda: handler.started, 30, "the action has started")
    running = dispatcher.fact(sent.id)
    assert running is not None
    assert (running.state, running.progress, dispatcher.counts()[2]) == (
        ActionState.RUNNING,
        {"seen": 1},
        (sent.id,),
    )
    assert [line.what["id"] for line in journal.open_intents()] == [sent.id]  # journaled before it starts
    handler.release.set()
    fact = finished(dispatcher, sent.id)
    assert (fact.state, fact.outcome, fact.freed_bytes) == (ActionState.DONE, "removed", 7)
    assert fact.finished_at is not None
    assert dispatcher.counts() == ({"prune-build-cache/removed": 1}, {}, ())
    intent, outcome = journal.lines()
    assert (intent.what["policy"], intent.what["plan"], outcome.outcome) == ("p", "plan-1", "removed")
    assert json.loads(str(intent.what["action"])) == {
        "kind": "prune-build-cache", "runtime": "docker", "unused_seconds": 0.0
    }  # fmt: skip


def test_one_at_a_time_of_a_kind_and_kinds_beside_each_other(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, handler)
    sent = [request() for _ in range(5)] + [request(KILL)]
    for item in sent:
        dispatcher.submit(item)
    wait_until(lambda: len(handler.started) == 2, 30, "one action of each kind has started")
    handler.release.set()
    for item in sent:
        finished(dispatcher, item.id)
    assert handler.most_concurrent == 2
    assert dispatcher.counts()[0] == {"prune-build-cache/removed": 5, "kill-process/removed": 1}


def test_only_what_can_be_stopped_is(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, handler)
    scan, prune = request(SCAN), request()
    for item in (scan, prune):
        dispatcher.submit(item)
    dispatcher.stop(scan.id)
    assert finished(dispatcher, scan.id).outcome == "stopped"
    for action_id in (prune.id, scan.id, "unknown"):
        with pytest.raises(NotStoppableError):
            dispatcher.stop(action_id)
    handler.release.set()
    assert finished(dispatcher, prune.id).outcome == "removed"


def test_what_was_interrupted_is_told_after_a_restart(handler: BlockingHandler, journal: ActionJournal) -> None:
    sent = request()
    make_dispatcher(journal, handler).submit(sent)
    wait_until(lambda: handler.started, 30, "the action has started")
    again = make_dispatcher(journal, handler)  # as if the agent had been killed
    fact = again.fact(sent.id)
    assert fact is not None
    assert (fact.state, fact.outcome, fact.kind) == (ActionState.FAILED, "interrupted", "prune-build-cache")
    assert journal.open_intents() == ()
    handler.release.set()


def test_a_handler_that_breaks_is_an_outcome(journal: ActionJournal) -> None:
    def breaks(_action: Action, _context: ActionContext) -> ActionOutcome:
        raise RuntimeError("oops")

    dispatcher = make_dispatcher(journal, breaks)
    for _ in range(2):  # the thread survives
        dispatcher.submit(sent := request())
        fact = finished(dispatcher, sent.id)
        assert (fact.state, fact.outcome, fact.message) == (ActionState.FAILED, "failed", "RuntimeError: oops")
    assert dispatcher.counts()[1] == {"prune-build-cache/failed": 2}


def test_what_cannot_be_written_down_is_not_done(handler: BlockingHandler, tmp_path: Path) -> None:
    dispatcher = make_dispatcher(ActionJournal(str(tmp_path / "no" / "journal")), handler)
    dispatcher.submit(sent := request())
    fact = finished(dispatcher, sent.id)
    assert (fact.state, fact.outcome, handler.started) == (ActionState.FAILED, "not-journaled", [])


def test_one_that_waited_for_too_long_is_not_done(handler: BlockingHandler, journal: ActionJournal) -> None:
    clock = FakeClock(time.time())
    dispatcher = make_dispatcher(journal, handler, clock)
    first, second = request(), request()
    for item in (first, second):
        dispatcher.submit(item)
    wait_until(lambda: handler.started, 30, "the first action has started")
    clock.advance(100)
    handler.release.set()
    assert finished(dispatcher, first.id).outcome == "removed"
    fact = finished(dispatcher, second.id)
    assert (fact.state, fact.outcome, len(handler.started)) == (ActionState.REFUSED, "expired", 1)


def test_more_than_can_wait_is_refused(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, handler)
    dispatcher.submit(request())
    wait_until(lambda: handler.started, 30, "the first action has started")
    for _ in range(MAX_QUEUED_PER_KIND):
        dispatcher.check_room(request().action)
        dispatcher.submit(request())
    with pytest.raises(ActionQueueFullError):
        dispatcher.check_room(request().action)
    dispatcher.check_room(KILL)
    handler.release.set()


def test_an_action_that_nobody_does(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = ActionDispatcher({}, frozenset(), journal)
    dispatcher.submit(sent := request())
    assert finished(dispatcher, sent.id).outcome == "unsupported"


def test_only_the_last_are_remembered(journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, lambda _action, _context: done("done"))
    sent = [request() for _ in range(MAX_REMEMBERED_ACTIONS + 5)]
    for number, item in enumerate(sent):
        dispatcher.submit(item)
        if number % 40 == 0:  # stay below the queue limit
            finished(dispatcher, item.id)
    finished(dispatcher, sent[-1].id)
    known = [dispatcher.fact(item.id) for item in sent]
    assert known[:5] == [None] * 5
    assert None not in known[5:]


def test_results_are_remembered_as_long_as_there_is_room(
    journal: ActionJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher_module, "MAX_RESULT_BYTES", 250)
    sizes = iter((100, 100, 100, 300, 0, 10))
    dispatcher = make_dispatcher(
        journal,
        lambda _action, _context: ActionOutcome(
            ActionState.DONE, "done", result={"scan": msgspec.Raw(b"1" * size)} if (size := next(sizes)) else {}
        ),
    )
    remembered = []
    sent = [request() for _ in range(6)]
    for item in sent:
        dispatcher.submit(item)
        finished(dispatcher, item.id)
        remembered.append([bool(fact and fact.result) for fact in map(dispatcher.fact, [item.id for item in sent])])
    yes, no = True, False
    assert remembered == [
        [yes, no, no, no, no, no],
        [yes, yes, no, no, no, no],
        [no, yes, yes, no, no, no],
        [no, no, no, yes, no, no],  # the newest stays, however large
        [no, no, no, no, no, no],
        [no, no, no, no, no, yes],
    ]


def test_what_comes_first_is_done_before_any_action_of_its_kinds(
    handler: BlockingHandler, journal: ActionJournal
) -> None:
    dispatcher = make_dispatcher(journal, handler)
    begun, release = threading.Event(), threading.Event()

    def task(_context: ActionContext) -> None:
        begun.set()
        release.wait(120)
        raise RuntimeError("oops")

    dispatcher.run_before(task, KillProcess, PruneBuildCache)
    assert begun.wait(60)
    for item in (sent := [request(KILL), request(), request(SCAN)]):
        dispatcher.submit(item)
    wait_until(lambda: handler.started, 30, "the action that need not wait has started")
    assert handler.started == [SCAN]
    release.set()
    handler.release.set()
    assert [finished(dispatcher, item.id).outcome for item in sent] == ["removed"] * 3


def test_what_comes_first_is_stopped_with_the_rest(handler: BlockingHandler, journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, handler)
    stopped = threading.Event()
    dispatcher.run_before(lambda context: stopped.set() if context.stop.wait(60) else None, KillProcess)
    dispatcher.stop_all()
    assert stopped.wait(60)


def test_a_refusal_counts_as_what_was_done(journal: ActionJournal) -> None:
    dispatcher = make_dispatcher(journal, lambda _action, _context: refused("in-use", "used by pid 7"))
    dispatcher.submit(sent := request())
    fact = finished(dispatcher, sent.id)
    assert (fact.state, fact.message) == (ActionState.REFUSED, "used by pid 7")
    assert dispatcher.counts()[0] == {"prune-build-cache/in-use": 1}
