"""State of the view that survives restarts: since when GPUs are idle and pods are missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from monitor.base.state_problems import StateProblem
from monitor.base.statefile import StateFile
from monitor.base.threads import Periodic, spawn
from monitor.cluster.view import ViewMemory

FILE = "view.json"
CHECK_SECONDS = 1.0  # between checks for changes
MIN_SAVE_INTERVAL_SECONDS = 15.0  # changes are saved at most this often ...
MAX_SAVE_INTERVAL_SECONDS = 60.0  # ... and without changes at least this often, to record until when the view was valid
STOP_SECONDS = 1.0
MAX_GAP_SECONDS = 900.0  # after a longer gap the state is discarded: a GPU may have been used in between


class SavedViewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Saved state, and until when it was valid."""

    at: float = 0.0
    memory: ViewMemory = msgspec.field(default_factory=ViewMemory)


def unexpired(saved: SavedViewMemory, now: float) -> ViewMemory:
    """Saved state if it is recent enough, else an empty one."""
    return saved.memory if abs(now - saved.at) <= MAX_GAP_SECONDS else ViewMemory()


class ViewMemoryFile:
    """Saves the state of the view between start() and stop()."""

    def __init__(self, directory: str, now: Callable[[], float] = time.time) -> None:
        self._file = StateFile(directory, FILE, SavedViewMemory, "since when GPUs are idle and pods missing")
        self._now = now
        self._saved = SavedViewMemory()
        self._save_at = 0.0  # of the monotonic clock
        self._memory: Callable[[], ViewMemory] | None = None
        self._loop = Periodic("view-memory", self._save_if_due, CHECK_SECONDS, initial_delay=CHECK_SECONDS)
        self._lock = threading.Lock()

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written; None if it is."""
        return self._file.problem

    def load(self) -> ViewMemory:
        """State saved before a restart, if it is still usable."""
        return unexpired(self._file.load(), self._now())

    def start(self, memory: Callable[[], ViewMemory]) -> None:
        self._memory = memory
        self._loop.start()

    def stop(self) -> None:
        """Stop, and save the state."""
        self._loop.stop(STOP_SECONDS)
        spawn("view-memory", self._save_now).join(STOP_SECONDS)  # a disk that hangs must not delay the exit

    def _save_if_due(self) -> None:
        if time.monotonic() >= self._save_at:
            self._save_now()

    def _save_now(self) -> None:
        if self._memory is not None:
            self.save(self._memory())

    def save(self, memory: ViewMemory) -> None:
        """Save the state if it has changed, or if it was last saved long ago."""
        with self._lock:
            now = self._now()
            if memory != self._saved.memory or abs(now - self._saved.at) >= MAX_SAVE_INTERVAL_SECONDS:
                self._saved = SavedViewMemory(at=now, memory=memory)
                self._file.save(self._saved)
                self._save_at = time.monotonic() + MIN_SAVE_INTERVAL_SECONDS
