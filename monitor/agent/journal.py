"""Write-ahead journal of the agent's actions: one JSON line with the intent before an action, one with its outcome.

A line is on disk before the call returns. After kill -9 or a power failure, `open_intents()` lists the actions without
an outcome. A line torn by the failure is skipped, and the next one starts on a new line.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from monitor.base.clock import Clock
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.private_files import open_private

JournalValue = str | int | float | bool | None


class JournalLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: an intent has `action`, its end has `outcome`; `what` holds the details of either."""

    at: float
    id: str
    step: Literal["intend", "done"]
    action: str = ""
    outcome: str = ""
    what: dict[str, JournalValue] = msgspec.field(default_factory=dict)


class ActionJournal:
    """An append-only file, created on the first write. Thread-safe."""

    def __init__(self, path: str, clock: Clock = time) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()

    def intend(self, action: str, what: Mapping[str, JournalValue]) -> str:
        """Record an intent and return its id. Raise OSError, in which case the action must not be performed."""
        intent_id = uuid.uuid4().hex
        self._append(JournalLine(at=self._clock.time(), id=intent_id, step="intend", action=action, what=dict(what)))
        return intent_id

    def done(self, intent_id: str, outcome: str, what: Mapping[str, JournalValue] | None = None) -> None:
        """Record the outcome of an intent. Raise OSError."""
        now = self._clock.time()
        self._append(JournalLine(at=now, id=intent_id, step="done", outcome=outcome, what=dict(what or {})))

    def open_intents(self) -> tuple[JournalLine, ...]:
        """Intents without an outcome, oldest first."""
        intents: dict[str, JournalLine] = {}
        for line in self.lines():
            if line.step == "intend":
                intents[line.id] = line
            else:
                intents.pop(line.id, None)
        return tuple(intents.values())

    def lines(self) -> Iterator[JournalLine]:
        """All complete lines, oldest first."""
        decoder = msgspec.json.Decoder(JournalLine)
        if not os.path.exists(self._path):
            return
        with open(self._path, "rb") as file:
            for raw in file:
                try:
                    yield decoder.decode(raw)
                except msgspec.DecodeError:
                    continue  # torn by a power failure, before its writer acted on it

    def _append(self, line: JournalLine) -> None:
        raw = msgspec.json.encode(line) + b"\n"
        with self._lock:
            is_new = not os.path.exists(self._path)
            file = open_private(self._path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
            try:
                _write(file, raw if _ends_with_newline(file) else b"\n" + raw)
                os.fsync(file)
            finally:
                os.close(file)
            if is_new:
                _sync_directory(os.path.dirname(self._path) or ".")


def _sync_directory(path: str) -> None:
    """Make new names in a directory survive a power failure. Raise OSError."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(file: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(file, raw) :]


def _ends_with_newline(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


warm_up_msgspec(__name__)
