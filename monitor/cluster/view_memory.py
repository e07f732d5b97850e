"""What one view has to know of the ones before it, kept across restarts: since when cards are idle, or pods missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from monitor.base.statefile import StateFile
from monitor.cluster.view import Memory

FILE = "view.json"
LOOK = 1.0  # how often it is looked whether something has changed
SAVE_EVERY = 15.0  # what has changed is saved no more often than this ...
SAY_ALIVE = 60.0  # ... and even if nothing has, so that it is known until when somebody looked
LONGEST_GAP = 900.0  # a card may have been used while nobody looked for so long


class SavedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, and until when it was true."""

    at: float = 0.0
    memory: Memory = msgspec.field(default_factory=Memory)


def still_true(saved: SavedMemory, now: float) -> Memory:
    """Given what was saved, return what may be believed of it now: nothing if nobody has looked for too long."""
    return saved.memory if abs(now - saved.at) <= LONGEST_GAP else Memory()


class MemoryFile:
    """Saves a memory again and again between start() and stop()."""

    def __init__(self, directory: str, now: Callable[[], float] = time.time) -> None:
        self._file = StateFile(directory, FILE, SavedMemory, "since when cards are idle and pods missing")
        self._now = now
        self._saved = SavedMemory()
        self._save_at = 0.0  # of the monotonic clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def load(self) -> Memory:
        """Return what is still known from before a restart."""
        return still_true(self._file.load(), self._now())

    def start(self, memory: Callable[[], Memory]) -> None:
        self._thread = threading.Thread(target=self._keep, args=(memory,), name="view-memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and save what is remembered."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _keep(self, memory: Callable[[], Memory]) -> None:
        while not self._stopping.wait(LOOK):
            if time.monotonic() >= self._save_at:
                self.save(memory())
        self.save(memory())

    def save(self, memory: Memory) -> None:
        """Save it, if that says anything new."""
        now = self._now()
        if memory != self._saved.memory or abs(now - self._saved.at) >= SAY_ALIVE:
            self._saved = SavedMemory(at=now, memory=memory)
            self._file.save(self._saved)
            self._save_at = time.monotonic() + SAVE_EVERY
