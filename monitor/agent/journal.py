"""The node's own record of actions: one JSON line before each (the intent) and one after it (the outcome).

A line is on the disk before the call returns. After a kill -9 or a power cut `open()` tells what was begun and never
ended; a line that was torn by it is left out, and the next one begins on a line of its own.
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
from monitor.base.msgspec_types import know_types

JournalValue = str | int | float | bool | None


class JournalLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. `action` is set on intents, `outcome` on what ended; both carry what belongs to it."""

    at: float
    id: str
    step: Literal["intend", "done"]
    action: str = ""
    outcome: str = ""
    what: dict[str, JournalValue] = msgspec.field(default_factory=dict)


class ActionJournal:
    """An append-only file, made when it is first written to. Safe to use from several threads."""

    def __init__(self, path: str, clock: Clock = time) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()

    def intend(self, action: str, what: Mapping[str, JournalValue]) -> str:
        """Given what is about to be done, write that down and return its id. Raise OSError: then do not do it."""
        ident = uuid.uuid4().hex
        self._append(JournalLine(at=self._clock.time(), id=ident, step="intend", action=action, what=dict(what)))
        return ident

    def done(self, ident: str, outcome: str, what: Mapping[str, JournalValue] | None = None) -> None:
        """Given the id of an intent, write down how it ended. Raise OSError."""
        self._append(JournalLine(at=self._clock.time(), id=ident, step="done", outcome=outcome, what=dict(what or {})))

    def open(self) -> tuple[JournalLine, ...]:
        """Return the intents without an end, oldest first."""
        begun: dict[str, JournalLine] = {}
        for line in self.lines():
            if line.step == "intend":
                begun[line.id] = line
            else:
                begun.pop(line.id, None)
        return tuple(begun.values())

    def lines(self) -> Iterator[JournalLine]:
        """Yield all lines that are whole, oldest first."""
        decoder = msgspec.json.Decoder(JournalLine)
        if not os.path.exists(self._path):
            return
        with open(self._path, "rb") as file:
            for raw in file:
                try:
                    yield decoder.decode(raw)
                except msgspec.DecodeError:
                    continue  # torn by a power cut, before its writer could act on it

    def _append(self, line: JournalLine) -> None:
        raw = msgspec.json.encode(line) + b"\n"
        with self._lock:
            new = not os.path.exists(self._path)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                _write(file, raw if _ends_whole(file) else b"\n" + raw)
                os.fsync(file)
            finally:
                os.close(file)
            if new:
                sync_directory(os.path.dirname(self._path) or ".")


def sync_directory(path: str) -> None:
    """Make sure that names made in a directory outlive a power cut. Raise OSError."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(file: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(file, raw) :]


def _ends_whole(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


know_types(__name__)
