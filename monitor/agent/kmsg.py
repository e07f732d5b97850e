"""The kernel log as /dev/kmsg gives it: one record a read, from the oldest that the kernel still has.

A record is `priority,sequence,microseconds since boot,flags;message`, then lines that begin with a space. Anybody who
may write to /dev/kmsg can put a message there, but only the kernel itself can do so with facility 0.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from monitor.base.clock import Clock

_RECORD_SIZE = 16384  # a read into less than a record needs fails, and would fail for ever
_MOST_READS = 200_000  # several times the largest log: a kernel that writes faster than this reads must not hold us
_FACILITY_SHIFT = 3
_MICROSECONDS = 1_000_000
_MOST_DIGITS = 20  # of 64 bits


class KernelMessage(NamedTuple):
    """A message of the kernel, and when it was written by the wall clock."""

    at: float
    text: str


class Record(NamedTuple):
    """A record of the kernel's own."""

    sequence: int
    since_boot: float
    text: str


class KernelLog:
    """Reads those messages of the kernel that contain `word`, each once."""

    def __init__(
        self,
        path: str,
        word: str,
        booted_at: float | None = None,
        clock: Clock = time,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._path = path
        self._word = word.encode()
        self._clock = clock
        self._read_file = read
        self._booted_at = clock.time() - clock.monotonic() if booted_at is None else booted_at
        self._file: int | None = None
        self._rest = b""
        self._read_until = 0.0
        self._last_sequence = -1

    def read(self) -> list[KernelMessage]:
        """Return what is new. Raise OSError when the log cannot be read."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        records = [parsed for line in self._lines(self._file) if (parsed := parse_record(line)) is not None]
        new = [record for record in records if record.sequence > self._last_sequence]  # else read before a failure
        now = self._clock.time()
        # The log's clock drifts from the wall clock by seconds a day. What is new was written since the last time.
        messages = [
            KernelMessage(min(max(self._booted_at + record.since_boot, self._read_until), now), record.text)
            for record in new
        ]
        self._last_sequence = max((record.sequence for record in new), default=self._last_sequence)
        self._read_until = now
        return messages

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _lines(self, file: int) -> Iterator[str]:
        """Yield every line with the word in it. A plain file gives many records a read, or half of one."""
        for _ in range(_MOST_READS):
            try:
                content = self._read_file(file, _RECORD_SIZE)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # the kernel has overwritten what came next; go on with what it has
                    continue
                self.close()
                raise
            if not content:
                return
            *lines, self._rest = (self._rest + content).split(b"\n")
            for line in lines:
                if self._word in line:
                    yield line.decode("utf-8", "replace")


def parse_record(line: str) -> Record | None:
    """Given a line, return the record that it begins, or None when it begins none of the kernel's own."""
    head, _, text = line.partition(";")
    fields = head.split(",")
    if len(fields) < 4 or not all(_is_number(field) for field in fields[:3]):
        return None
    priority, sequence, microseconds = (int(field) for field in fields[:3])
    if priority >> _FACILITY_SHIFT != 0:
        return None
    # A message of several lines is one record, with its line breaks escaped.
    return Record(sequence, microseconds / _MICROSECONDS, text.replace("\\x0a", "\n"))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS
