"""What one view has to know of the ones before it, kept across restarts: since when cards are idle, or pods missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from monitor.base.statefile import StateFile
from monitor.cluster.view import ViewMemory

FILE = "view.json"
CHECK_SECONDS = 1.0  # how often it is looked whether something has changed
MIN_SAVE_INTERVAL_SECONDS = 15.0  # what has changed is saved no more often than this ...
MAX_SAVE_INTERVAL_SECONDS = 60.0  # ... and even if nothing has, so that it is known until when somebody looked
MAX_GAP_SECONDS = 900.0  # a card may have been used while nobody looked for so long


class SavedViewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, and until when it was true."""

    at: float = 0.0
    memory: ViewMemory = msgspec.field(default_factory=ViewMemory)


def unexpired(saved: SavedViewMemory, now: float) -> ViewMemory:
    """Given what was saved, return what may be believed of it now: nothing if nobody has looked for too long."""
    return saved.memory if abs(now - saved.at) <= MAX_GAP_SECONDS else ViewMemory()


class ViewMemoryFile:
    """Saves a memory again and again between start() and stop()."""

    def __init__(self, directory: str, now: Callable[[], float] = time.time) -> None:
        self._file = StateFile(directory, FILE, SavedViewMemory, "since when cards are idle and pods missing")
        self._now = now
        self._saved = SavedViewMemory()
        self._save_at = 0.0  # of the monotonic clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def load(self) -> ViewMemory:
        """Return what is still known from before a restart."""
        return unexpired(self._file.load(), self._now())

    def start(self, memory: Callable[[], ViewMemory]) -> None:
        self._thread = threading.Thread(target=self._keep, args=(memory,), name="view-memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and save what is remembered."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _keep(self, memory: Callable[[], ViewMemory]) -> None:
        while not self._stopping.wait(CHECK_SECONDS):
            if time.monotonic() >= self._save_at:
                self.save(memory())
        self.save(memory())

    def save(self, memory: ViewMemory) -> None:
        """Save it, if that says anything new."""
        now = self._now()
        if memory != self._saved.memory or abs(now - self._saved.at) >= MAX_SAVE_INTERVAL_SECONDS:
            self._saved = SavedViewMemory(at=now, memory=memory)
            self._file.save(self._saved)
            self._save_at = time.monotonic() + MIN_SAVE_INTERVAL_SECONDS
