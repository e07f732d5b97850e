"""Runs actions: one thread per kind of action, one action at a time on each, with a journal line before and after.

The latest actions are kept in memory, so that the client can read their outcome.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from monitor.agent.actions.auth import ActionRefusedError, check_validity
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, failed, refused
from monitor.agent.journal import ActionJournal
from monitor.base.clock import Clock
from monitor.base.text import MAX_TEXT_CHARS, shorten
from monitor.base.threads import spawn
from monitor.facts.actions import Action, ActionFact, ActionRequest, ActionState

log = logging.getLogger(__name__)
MAX_REMEMBERED_ACTIONS = 200
MAX_QUEUED_PER_KIND = 50
MAX_RESULT_BYTES = 64 << 20  # a scan result may be large: beyond this, results of older actions are dropped
JOURNAL_ACTION = "action"

ActionHandler = Callable[[Any, ActionContext], ActionOutcome]
_TaskQueue = queue.SimpleQueue[Callable[[], object]]


class ActionQueueFullError(Exception):
    """Too many actions of one kind are queued."""


class NotStoppableError(Exception):
    """The action is not running or cannot be stopped."""


class ActionDispatcher:
    """Queues and runs actions. `stoppable` are the kinds whose handlers react to the stop signal."""

    def __init__(
        self,
        handlers: Mapping[type[Action], ActionHandler],
        stoppable: frozenset[type[Action]],
        journal: ActionJournal,
        clock: Clock = time,
    ) -> None:
        """Mark actions that a restart interrupted. Raise OSError if the journal cannot be read."""
        self._handlers = handlers
        self._stoppable = stoppable
        self._journal = journal
        self._clock = clock
        self._facts: dict[str, ActionFact] = {}
        self._contexts: dict[str, ActionContext] = {}  # of queued and running actions
        self._startup_contexts: list[ActionContext] = []
        self._queues: dict[str, _TaskQueue] = {}
        self._lock = threading.Lock()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._mark_interrupted()

    def submit(self, request: ActionRequest) -> ActionFact:
        kind = kind_of(request.action)
        context = ActionContext()
        with self._lock:
            fact = ActionFact(id=request.id, kind=kind, state=ActionState.RUNNING, started_at=self._clock.time())
            self._remember(fact)
            self._contexts[request.id] = context
            self._queue(kind).put(lambda: self._run(request, context))
        return fact

    def check_room(self, action: Action) -> None:
        """Raise ActionQueueFullError if too many actions of this kind are queued."""
        kind = kind_of(action)
        with self._lock:
            if self._queue(kind).qsize() >= MAX_QUEUED_PER_KIND:
                raise ActionQueueFullError(f"{MAX_QUEUED_PER_KIND} actions of kind {kind} are queued")

    def run_before(self, task: Callable[[ActionContext], None], *kinds: type[Action]) -> None:
        """Run `task` before any action of these kinds."""
        finished, context = threading.Event(), ActionContext()

        def run() -> None:
            try:
                task(context)
            except Exception:  # a failed start-up task must not block all later actions
                log.exception("start-up task of actions failed")
            finally:
                finished.set()

        with self._lock:
            self._startup_contexts.append(context)
            first, *others = (self._queue(kind_of(kind)) for kind in kinds)
            first.put(run)
            for other in others:
                other.put(finished.wait)

    def fact(self, action_id: str) -> ActionFact | None:
        """State of an action, or None if it is unknown."""
        with self._lock:
            fact, context = self._facts.get(action_id), self._contexts.get(action_id)
            return msgspec.structs.replace(fact, progress=dict(context.progress)) if fact and context else fact

    def stop(self, action_id: str) -> ActionFact:
        """Signal an action to stop early. Raise NotStoppableError."""
        with self._lock:
            context, fact = self._contexts.get(action_id), self._facts.get(action_id)
            kinds = {kind_of(action) for action in self._stoppable}
            if context is None or fact is None or fact.kind not in kinds:
                raise NotStoppableError(f"{action_id} is not running or cannot be stopped")
            context.stop.set()
            return fact

    def stop_all(self) -> None:
        """Signal all actions and start-up tasks to stop early."""
        with self._lock:
            for context in (*self._startup_contexts, *self._contexts.values()):
                context.stop.set()

    def counts(self) -> tuple[dict[str, int], dict[str, int], tuple[str, ...]]:
        """Finished and failed actions by kind/outcome, and the ids of queued and running ones."""
        with self._lock:
            return dict(self._done), dict(self._failed), tuple(self._contexts)

    def _queue(self, kind: str) -> _TaskQueue:
        if kind not in self._queues:
            tasks: _TaskQueue = queue.SimpleQueue()
            spawn(f"act-{kind}", partial(_work, tasks))
            self._queues[kind] = tasks
        return self._queues[kind]

    def _run(self, request: ActionRequest, context: ActionContext) -> None:
        outcome = self._outcome(request, context)
        with self._lock:
            fact = self._facts[request.id]
            counter = self._failed if outcome.state is ActionState.FAILED else self._done
            counter[f"{fact.kind}/{outcome.code}"] += 1
            del self._contexts[request.id]
            self._remember(
                msgspec.structs.replace(
                    fact,
                    state=outcome.state,
                    finished_at=self._clock.time(),
                    outcome=outcome.code,
                    message=shorten(outcome.message, MAX_TEXT_CHARS) if outcome.message else None,
                    freed_bytes=outcome.freed_bytes,
                    progress=dict(context.progress),
                    result=outcome.result,
                )
            )
        log.info("%s %s: %s %s", fact.kind, request.id, outcome.code, outcome.message or "")

    def _outcome(self, request: ActionRequest, context: ActionContext) -> ActionOutcome:
        """Perform an action, with a journal line before and after. Every failure is an outcome."""
        handler = self._handlers.get(type(request.action))
        if handler is None:
            return refused("unsupported", "this agent does not support the action")
        try:
            check_validity(request, self._clock.time())  # it may have expired in the queue
            intent_id = self._journal.intend(JOURNAL_ACTION, _journal_details(request))
        except ActionRefusedError as error:
            return refused(error.reason, str(error))
        except OSError as error:
            return failed("not-journaled", f"not performed, because the journal cannot be written: {error}")
        try:
            outcome = handler(request.action, context)
        except Exception as error:  # a handler that raises must not end the thread
            log.exception("action %s failed", request.id)
            outcome = failed("failed", f"{type(error).__name__}: {error}")
        try:
            self._journal.done(intent_id, outcome.code, {"state": outcome.state, "freed_bytes": outcome.freed_bytes})
        except OSError as error:
            log.error("cannot write the outcome of %s to the journal: %s", request.id, error)
        return outcome

    def _mark_interrupted(self) -> None:
        """Record actions that were running when the agent ended as interrupted, in memory and in the journal."""
        for line in self._journal.open_intents():
            if line.action != JOURNAL_ACTION:
                continue
            self._journal.done(line.id, "interrupted")
            message = "the agent ended while the action was running"
            self._remember(
                ActionFact(
                    id=str(line.what["id"]), kind=str(line.what["kind"]), state=ActionState.FAILED, started_at=line.at,
                    finished_at=self._clock.time(), outcome="interrupted", message=message,
                )
            )  # fmt: skip

    def _remember(self, fact: ActionFact) -> None:
        """Store a fact and drop the oldest finished ones over the limit."""
        self._facts.pop(fact.id, None)
        self._facts[fact.id] = fact
        finished = [action_id for action_id in self._facts if action_id not in self._contexts and action_id != fact.id]
        for action_id in finished[: max(0, len(self._facts) - MAX_REMEMBERED_ACTIONS)]:
            del self._facts[action_id]
        self._drop_results(fact.id)

    def _drop_results(self, newest_id: str) -> None:
        """Drop the oldest results while all together are too large."""
        sizes = {key: sum(map(len, fact.result.values())) for key, fact in self._facts.items() if fact.result}
        for action_id, size in tuple(sizes.items()):
            if sum(sizes.values()) <= MAX_RESULT_BYTES or action_id == newest_id:
                return
            self._facts[action_id] = msgspec.structs.replace(self._facts[action_id], result={})
            sizes[action_id] -= size


def kind_of(action: Action | type[Action]) -> str:
    """Name of a kind of action on the wire."""
    return str(action.__struct_config__.tag)


def _journal_details(request: ActionRequest) -> dict[str, str]:
    return {
        "id": request.id,
        "kind": kind_of(request.action),
        "policy": request.policy,
        "plan": request.plan,
        "action": msgspec.json.encode(request.action).decode(),
    }


def _work(tasks: _TaskQueue) -> None:
    while True:
        tasks.get()()
