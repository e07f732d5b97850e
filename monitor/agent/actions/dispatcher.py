"""Takes actions and has them done: each kind on a thread of its own, one at a time, written down before and after.

The last ones are remembered until whoever asked has read what became of them.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from monitor.agent.actions.auth import ActionRefusedError, check_validity
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, failed, refused
from monitor.agent.journal import ActionJournal
from monitor.base.clock import Clock
from monitor.facts.actions import Action, ActionFact, ActionRequest, ActionState

log = logging.getLogger(__name__)
MAX_REMEMBERED_ACTIONS = 200
MAX_QUEUED_PER_KIND = 50  # of one kind
MAX_RESULT_BYTES = 64 << 20  # a scan may be large: the results of older actions are dropped
JOURNAL_ACTION = "action"

ActionHandler = Callable[[Any, ActionContext], ActionOutcome]
_Lane = queue.SimpleQueue[Callable[[], object]]


class ActionQueueFullError(Exception):
    """Too many actions of one kind are waiting."""


class NotStoppableError(Exception):
    """There is no such action that runs and can be stopped."""


class ActionDispatcher:
    """Where actions are done. `handlers` has one for each type of action; `stoppable` those that can be stopped."""

    def __init__(
        self,
        handlers: Mapping[type[Action], ActionHandler],
        stoppable: frozenset[type[Action]],
        journal: ActionJournal,
        clock: Clock = time,
    ) -> None:
        """Read what was begun before a restart and never ended. Raise OSError if the journal cannot be read."""
        self._handlers = handlers
        self._stoppable = stoppable
        self._journal = journal
        self._clock = clock
        self._facts: dict[str, ActionFact] = {}
        self._jobs: dict[str, ActionContext] = {}
        self._first: list[ActionContext] = []
        self._lanes: dict[str, _Lane] = {}
        self._lock = threading.Lock()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._note_interrupted()

    def submit(self, request: ActionRequest) -> ActionFact:
        """Given a request that was let in, return its fact; it is done on another thread."""
        kind = kind_of(request.action)
        job = ActionContext()
        with self._lock:
            lane = self._lane(kind)
            fact = ActionFact(id=request.id, kind=kind, state=ActionState.RUNNING, started_at=self._clock.time())
            self._remember(fact)
            self._jobs[request.id] = job
            lane.put(lambda: self._do(request, job))
        return fact

    def check_room(self, action: Action) -> None:
        """Raise BusyError if too many actions of this kind are waiting already."""
        kind = kind_of(action)
        with self._lock:
            if self._lane(kind).qsize() >= MAX_QUEUED_PER_KIND:
                raise ActionQueueFullError(f"{MAX_QUEUED_PER_KIND} actions of the kind {kind} are waiting")

    def first(self, task: Callable[[ActionContext], None], *kinds: type[Action]) -> None:
        """Have something done before any action of these kinds."""
        over, job = threading.Event(), ActionContext()

        def run() -> None:
            try:
                task(job)
            except Exception:  # what could not be done first is no reason to do nothing ever after
                log.exception("before the first action")
            finally:
                over.set()

        with self._lock:
            self._first.append(job)
            lane, *others = (self._lane(kind_of(kind)) for kind in kinds)
            lane.put(run)
            for other in others:
                other.put(over.wait)

    def fact(self, ident: str) -> ActionFact | None:
        """Return what is known of an action, or None if it is not remembered."""
        with self._lock:
            fact, job = self._facts.get(ident), self._jobs.get(ident)
            return msgspec.structs.replace(fact, progress=dict(job.progress)) if fact and job else fact

    def stop(self, ident: str) -> ActionFact:
        """Have an action end early. Raise NotStoppableError."""
        with self._lock:
            job, fact = self._jobs.get(ident), self._facts.get(ident)
            kinds = {kind_of(action) for action in self._stoppable}
            if job is None or fact is None or fact.kind not in kinds:
                raise NotStoppableError(f"{ident} does not run, or cannot be stopped")
            job.stop.set()
            return fact

    def stop_all(self) -> None:
        """Have everything that can be stopped end early."""
        with self._lock:
            for job in (*self._first, *self._jobs.values()):
                job.stop.set()

    def counts(self) -> tuple[dict[str, int], dict[str, int], tuple[str, ...]]:
        """Return what was done and what failed, as kind/outcome, and the ids of what runs."""
        with self._lock:
            return dict(self._done), dict(self._failed), tuple(self._jobs)

    def _lane(self, kind: str) -> _Lane:
        if kind not in self._lanes:
            lane: _Lane = queue.SimpleQueue()
            threading.Thread(target=_drive, args=(lane,), name=f"act-{kind}", daemon=True).start()
            self._lanes[kind] = lane
        return self._lanes[kind]

    def _do(self, request: ActionRequest, job: ActionContext) -> None:
        outcome = self._outcome(request, job)
        with self._lock:
            fact = self._facts[request.id]
            counter = self._failed if outcome.state is ActionState.FAILED else self._done
            counter[f"{fact.kind}/{outcome.word}"] += 1
            del self._jobs[request.id]
            self._remember(
                msgspec.structs.replace(
                    fact,
                    state=outcome.state,
                    finished_at=self._clock.time(),
                    outcome=outcome.word,
                    message=outcome.message,
                    freed_bytes=outcome.freed_bytes,
                    progress=dict(job.progress),
                    result=outcome.result,
                )
            )
        log.info("%s %s: %s %s", fact.kind, request.id, outcome.word, outcome.message or "")

    def _outcome(self, request: ActionRequest, job: ActionContext) -> ActionOutcome:
        """Do an action, written down before and after. Whatever goes wrong is an outcome."""
        handler = self._handlers.get(type(request.action))
        if handler is None:
            return refused("unsupported", "this agent does no such thing")
        try:
            check_validity(request, self._clock.time())  # it may have waited for long
            ident = self._journal.intend(JOURNAL_ACTION, _written(request))
        except ActionRefusedError as error:
            return refused(error.reason, str(error))
        except OSError as error:
            return failed("not-journaled", f"nothing was done, because the journal cannot be written: {error}")
        try:
            outcome = handler(request.action, job)
        except Exception as error:  # a broken action is an outcome, never the end of its lane
            log.exception("action %s", request.id)
            outcome = failed("failed", f"{type(error).__name__}: {error}")
        try:
            self._journal.done(ident, outcome.word, {"state": outcome.state, "freed_bytes": outcome.freed_bytes})
        except OSError as error:
            log.error("the outcome of %s cannot be written down: %s", request.id, error)
        return outcome

    def _note_interrupted(self) -> None:
        """Report what was begun before a restart as interrupted, and write that down."""
        for line in self._journal.open():
            if line.action != JOURNAL_ACTION:
                continue
            self._journal.done(line.id, "interrupted")
            message = "the agent was stopped while it did this"
            self._remember(
                ActionFact(
                    id=str(line.what["id"]), kind=str(line.what["kind"]), state=ActionState.FAILED, started_at=line.at,
                    finished_at=self._clock.time(), outcome="interrupted", message=message,
                )
            )  # fmt: skip

    def _remember(self, fact: ActionFact) -> None:
        """Keep a fact, and forget the oldest of those that ended."""
        self._facts.pop(fact.id, None)
        self._facts[fact.id] = fact
        ended = [ident for ident in self._facts if ident not in self._jobs and ident != fact.id]
        for ident in ended[: max(0, len(self._facts) - MAX_REMEMBERED_ACTIONS)]:
            del self._facts[ident]
        self._drop_results(fact.id)

    def _drop_results(self, newest: str) -> None:
        """Forget the oldest results if all of them together are too large."""
        sizes = {ident: sum(map(len, fact.result.values())) for ident, fact in self._facts.items() if fact.result}
        for ident, size in tuple(sizes.items()):
            if sum(sizes.values()) <= MAX_RESULT_BYTES or ident == newest:
                return
            self._facts[ident] = msgspec.structs.replace(self._facts[ident], result={})
            sizes[ident] -= size


def kind_of(action: Action | type[Action]) -> str:
    """Return the word for a type of action, as it is on the wire."""
    return str(action.__struct_config__.tag)


def _written(request: ActionRequest) -> dict[str, str]:
    return {
        "id": request.id,
        "kind": kind_of(request.action),
        "policy": request.policy,
        "plan": request.plan,
        "action": msgspec.json.encode(request.action).decode(),
    }


def _drive(lane: _Lane) -> None:
    while True:
        lane.get()()
