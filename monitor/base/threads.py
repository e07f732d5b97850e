"""Background threads: periodic work, worker pools, parallel calls, and calls with a deadline.

Every thread is a daemon thread: one that hangs never keeps the process from exiting.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)


def spawn(name: str, work: Callable[[], object]) -> threading.Thread:
    """Run `work` on a new daemon thread."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


class Periodic:
    """Calls `work` again and again on its own thread, between start() and stop().

    The pause after a call is `interval` seconds, or what the call returns. An exception is logged and costs one call.
    """

    def __init__(
        self, name: str, work: Callable[[], float | None], interval: float, *, initial_delay: float = 0.0
    ) -> None:
        self._name = name
        self._work = work
        self._interval = interval
        self._initial_delay = initial_delay
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread = spawn(self._name, self._run)

    def wake(self) -> None:
        """Make the next call now instead of after the pause."""
        self._wake.set()

    def stop(self, timeout: float = 0.0) -> None:
        """Make no further call, and wait up to `timeout` seconds for the one in progress."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        self._wake.wait(self._initial_delay)
        while not self._stopping.is_set():
            self._wake.clear()
            pause: float | None = None
            try:
                pause = self._work()
            except Exception:  # one odd call must not end the loop
                log.exception("%s failed", self._name)
            if not self._stopping.is_set():
                self._wake.wait(self._interval if pause is None else pause)


class WorkerPool:
    """A fixed number of threads that run submitted work, which must not raise."""

    def __init__(self, size: int, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._stopping = False
        self._threads = [spawn(f"{name}-{number}", self._run) for number in range(size)]

    def submit(self, work: Callable[[], None]) -> None:
        """Queue `work`. After stop() it is dropped."""
        self._work.put(work)

    def stop(self, timeout: float) -> None:
        """Drop queued work, and wait up to `timeout` seconds for the work in progress."""
        self._stopping = True
        for _ in self._threads:
            self._work.put(None)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self._stopping:
            work()


@dataclass(frozen=True)
class CallOutcome(Generic[T]):
    """Result of a call: its value, its error, or neither if it did not return in time."""

    value: T | None = None
    error: Exception | None = None

    @property
    def late(self) -> bool:
        return self.value is None and self.error is None


def outcome_of(call: Callable[[], T]) -> CallOutcome[T]:
    """Run `call`, and return its value or the exception that it raised."""
    try:
        return CallOutcome(value=call())
    except Exception as error:  # the caller knows what it means
        return CallOutcome(error=error)


def run_parallel(
    calls: Sequence[Callable[[], T]], timeout: float | None, workers: int = 32, name: str = "parallel"
) -> list[CallOutcome[T]]:
    """Run calls that return a value in parallel; return their outcomes in order, after at most `timeout` seconds."""
    outcomes: list[CallOutcome[T]] = [CallOutcome() for _ in calls]
    waiting: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    for numbered in enumerate(calls):
        waiting.put(numbered)

    def work() -> None:
        while True:
            try:
                number, call = waiting.get_nowait()
            except queue.Empty:
                return
            outcomes[number] = outcome_of(call)

    deadline = None if timeout is None else time.monotonic() + timeout
    threads = [spawn(f"{name}-{number}", work) for number in range(min(workers, len(calls)))]
    for thread in threads:
        thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return list(outcomes)


def map_parallel(work: Callable[[T], R], items: Sequence[T], workers: int, name: str) -> list[R]:
    """Results of `work`, which must not raise, for each item in order."""
    results: dict[int, R] = {}

    def call(number: int) -> Literal[True]:
        results[number] = work(items[number])
        return True

    run_parallel([partial(call, number) for number in range(len(items))], None, workers, name)
    return [results[number] for number in range(len(items))]


class HasFileno(Protocol):
    """A connection: a socket, or an object of a client library that has one."""

    def fileno(self) -> int: ...


class Cancellation:
    """The open connections of some work, so that another thread can break them off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: list[socket.socket] = []
        self._cancelled = False

    def hold(self, sock: HasFileno) -> None:
        """Register a new connection. Raise ConnectionAbortedError if the work is already cancelled."""
        with self._lock:
            if self._cancelled:
                raise ConnectionAbortedError("cancelled")
            # A duplicate: TLS detaches the descriptor of the socket it wraps, which can then no longer be shut down.
            self._handles.append(socket.socket(fileno=os.dup(sock.fileno())))

    @property
    def cancelled(self) -> bool:
        with self._lock:
            return self._cancelled

    def cancel(self) -> None:
        """Break off all connections and refuse new ones."""
        with self._lock:
            self._cancelled = True
            for handle in self._handles:
                with suppress(OSError):  # not connected any longer
                    handle.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the duplicates: the work is done."""
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()


def with_deadline(timeout: float, work: Callable[[Cancellation], T]) -> T:
    """Result of `work`, which runs on its own thread. Raise what it raises, or TimeoutError after `timeout` seconds.

    Client libraries limit the silence between two bytes, and nothing limits a name lookup; this limits the whole. At
    the deadline the connections registered with the Cancellation are broken off and the thread is abandoned.
    """
    cancellation, results = Cancellation(), list[CallOutcome[tuple[T]]]()

    def run() -> None:
        try:
            results.append(outcome_of(lambda: (work(cancellation),)))
        finally:
            cancellation.release()

    spawn("with-deadline", run).join(timeout)
    if not results:
        cancellation.cancel()
        raise TimeoutError(f"not finished within {timeout:g} s")
    if results[0].error is not None:
        raise results[0].error
    assert results[0].value is not None
    return results[0].value[0]
