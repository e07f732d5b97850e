"""Calls that may never return: statvfs on a dead NAS, a name look-up, a stat through a hung FUSE daemon.

Such a call cannot be interrupted, only left behind. `Guard` runs calls one after the other on a lane (a daemon thread)
and, when one is over its limit, leaves that lane to it and takes a new one. A key whose call was left behind is not
called again until that call has come back, so there are never more threads than one plus the keys that hang.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from monitor.base.clock import Clock

T = TypeVar("T")


class HungError(Exception):
    """The call for this key has not returned since `since` (wall clock)."""

    def __init__(self, since: float) -> None:
        super().__init__(f"no answer since {since:.0f}")
        self.since = since


class _Call:
    """One call and, in time, its outcome."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.ended = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:  # handed to the caller, whatever it is
            self.error = error
        finally:
            self.ended.set()


class Guard:
    """Runs calls under a time limit. Used from one thread at a time."""

    def __init__(self, name: str, clock: Clock = time) -> None:
        self._name = name
        self._clock = clock
        self._lane: queue.SimpleQueue[_Call | None] | None = None
        self._left_behind: dict[str, tuple[_Call, float]] = {}

    def call(self, key: str, function: Callable[[], T], limit: float) -> T:
        """Given a call, return its value or raise its error. Raise HungError while one for this key is out."""
        behind = self._left_behind.get(key)
        if behind is not None:
            if not behind[0].ended.is_set():
                raise HungError(behind[1])
            del self._left_behind[key]
        call, started = _Call(function), self._clock.time()
        self._submit(call)
        if not call.ended.wait(limit):
            self._left_behind = {other: left for other, left in self._left_behind.items() if not left[0].ended.is_set()}
            self._left_behind[key] = (call, started)
            self._leave_lane()
            raise HungError(started)
        if call.error is not None:
            raise call.error
        return call.value  # type: ignore[no-any-return]  # _Call is not generic: one lane serves all types

    def hung(self) -> dict[str, float]:
        """Return the keys whose call has not come back, with since when."""
        return {key: since for key, (call, since) in self._left_behind.items() if not call.ended.is_set()}

    def close(self) -> None:
        """End the idle lane. Lanes left behind end by themselves when their call returns."""
        self._leave_lane()

    def _submit(self, call: _Call) -> None:
        if self._lane is None:
            lane: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
            threading.Thread(target=_drive, args=(lane,), name=f"guard-{self._name}", daemon=True).start()
            self._lane = lane  # only now: were there no thread to be had, calls on it would seem to hang for ever
        self._lane.put(call)

    def _leave_lane(self) -> None:
        """Tell the lane to end after what it is doing now, and use another one for the next call."""
        if self._lane is not None:
            self._lane.put(None)
            self._lane = None


def _drive(lane: queue.SimpleQueue[_Call | None]) -> None:
    while (call := lane.get()) is not None:
        call.run()
