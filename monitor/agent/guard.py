"""Calls that may never return: statvfs on a dead NAS, a name lookup, a stat through a hung FUSE daemon.

Such a call cannot be interrupted, only abandoned. `HungCallGuard` runs calls one after the other on a worker thread
and, when one exceeds its timeout, abandons that thread and starts another. A key with an abandoned call is not called
again until that call has returned, so there are never more threads than hung keys plus one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from monitor.base.clock import Clock
from monitor.base.threads import spawn

T = TypeVar("T")


class HungError(Exception):
    """The call for this key has not returned since `since` (wall clock)."""

    def __init__(self, since: float) -> None:
        super().__init__(f"no answer since {since:.0f}")
        self.since = since


class _GuardedCall:
    """A call and, once it has ended, its outcome."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.ended = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:  # raised to the caller, whatever it is
            self.error = error
        finally:
            self.ended.set()


_CallQueue = queue.SimpleQueue[_GuardedCall | None]


class HungCallGuard:
    """Runs calls with a timeout. Used from one thread at a time."""

    def __init__(self, name: str, clock: Clock = time) -> None:
        self._name = name
        self._clock = clock
        self._worker: _CallQueue | None = None
        self._abandoned: dict[str, tuple[_GuardedCall, float]] = {}

    def call(self, key: str, function: Callable[[], T], timeout: float) -> T:
        """Result of `function`. Raise what it raises, or HungError while a call for this key has not returned."""
        abandoned = self._abandoned.get(key)
        if abandoned is not None:
            if not abandoned[0].ended.is_set():
                raise HungError(abandoned[1])
            del self._abandoned[key]
        call, started = _GuardedCall(function), self._clock.time()
        self._submit(call)
        if not call.ended.wait(timeout):
            self._abandoned = {other: hung for other, hung in self._abandoned.items() if not hung[0].ended.is_set()}
            self._abandoned[key] = (call, started)
            self._release_worker()
            raise HungError(started)
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[no-any-return]  # _GuardedCall is not generic: one worker serves all types

    def hung(self) -> dict[str, float]:
        """Keys whose call has not returned, with the time of the call."""
        return {key: since for key, (call, since) in self._abandoned.items() if not call.ended.is_set()}

    def close(self) -> None:
        """End the idle worker. Abandoned workers end when their call returns."""
        self._release_worker()

    def _submit(self, call: _GuardedCall) -> None:
        if self._worker is None:
            worker: _CallQueue = queue.SimpleQueue()
            spawn(f"guard-{self._name}", partial(_run_calls, worker))
            self._worker = worker  # only now: without a thread, calls on it would appear to hang forever
        self._worker.put(call)

    def _release_worker(self) -> None:
        """Let the worker end after its current call, and start another for the next call."""
        if self._worker is not None:
            self._worker.put(None)
            self._worker = None


def _run_calls(calls: _CallQueue) -> None:
    while (call := calls.get()) is not None:
        call.run()
