"""The kernel log as read from /dev/kmsg: one record per read, oldest first.

A record is `priority,sequence,microseconds since boot,flags;message`, then lines that begin with a space. Every process
that may write to /dev/kmsg can add messages, but only the kernel can use facility 0.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from monitor.base.clock import Clock

_RECORD_BYTES = 16384  # a read into a buffer smaller than the record fails, and would fail forever
_MAX_READS = 200_000  # several times the largest log: a kernel that writes faster than we read must not block us
_FACILITY_SHIFT_BITS = 3
_MICROSECONDS_PER_SECOND = 1_000_000
_MAX_DIGITS = 20  # of a 64-bit number


class KernelMessage(NamedTuple):
    """A kernel message and the wall-clock time it was written."""

    at: float
    text: str


class KernelRecord(NamedTuple):
    """A record written by the kernel itself."""

    sequence: int
    since_boot: float
    text: str


class KernelLog:
    """Reads the kernel messages that contain `substring`, each once."""

    def __init__(
        self,
        path: str,
        substring: str,
        booted_at: float | None = None,
        clock: Clock = time,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._path = path
        self._substring = substring.encode()
        self._clock = clock
        self._read_file = read
        self._booted_at = clock.time() - clock.monotonic() if booted_at is None else booted_at
        self._file: int | None = None
        self._rest = b""
        self._read_until = 0.0
        self._last_sequence = -1

    def read(self) -> list[KernelMessage]:
        """New messages. Raise OSError if the log cannot be read."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        records = [parsed for line in self._lines(self._file) if (parsed := parse_record(line)) is not None]
        new = [
            record for record in records if record.sequence > self._last_sequence
        ]  # the others were read before an error
        now = self._clock.time()
        # The log's clock drifts from the wall clock by seconds per day; a new message was written since the last read.
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
        """Lines that contain the substring. A regular file returns many records per read, or half of one."""
        for _ in range(_MAX_READS):
            try:
                content = self._read_file(file, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # the kernel has overwritten the next records; continue with the oldest
                    continue
                self.close()
                raise
            if not content:
                return
            *lines, self._rest = (self._rest + content).split(b"\n")
            for line in lines:
                if self._substring in line:
                    yield line.decode("utf-8", "replace")


def parse_record(line: str) -> KernelRecord | None:
    """Record that begins on this line; None if there is none, or another process wrote it."""
    head, _, text = line.partition(";")
    fields = head.split(",")
    if len(fields) < 4 or not all(_is_number(field) for field in fields[:3]):
        return None
    priority, sequence, microseconds = (int(field) for field in fields[:3])
    if priority >> _FACILITY_SHIFT_BITS != 0:
        return None
    # A message of several lines is one record with escaped line breaks.
    return KernelRecord(sequence, microseconds / _MICROSECONDS_PER_SECOND, text.replace("\\x0a", "\n"))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS
