"""The kernel log as read from /dev/kmsg: one record per read, oldest first.

A record is `priority,sequence,microseconds since boot,flags;message`, then lines that begin with a space. Every process
that may write to /dev/kmsg can add messages, but only the kernel can use facility 0.

A burst of lines costs little: a line without one of the fragments is dropped after one search, each fragment has a
limit of lines per read, and so has the read itself. What is not read stays for the next read unless the kernel
overwrites it.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from monitor.base.clock import Clock

MAX_LINES_PER_READ = 10_000
MAX_LINES_PER_FRAGMENT = 1000  # in one read
MAX_QUEUED_MESSAGES = 5000  # for a collector that does not run
_RECORD_BYTES = 16384  # a read into a buffer smaller than the record fails, and would fail forever
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
    """Reads the kernel messages that contain one of the fragments, each once.

    `skipped` counts lines that were not returned although they may have had a fragment: those beyond the limit of a
    fragment, and those that the kernel overwrote before they were read.
    """

    def __init__(
        self,
        path: str,
        fragments: Sequence[str],
        booted_at: float | None = None,
        clock: Clock = time,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._path = path
        # One search for all is three times as fast as one for each.
        self._fragments = re.compile(b"|".join(re.escape(fragment.encode()) for fragment in fragments))
        self._clock = clock
        self._read_file = read
        self._booted_at = clock.time() - clock.monotonic() if booted_at is None else booted_at
        self._file: int | None = None
        self._rest = b""
        self._read_until = 0.0
        self._last_sequence = -1
        self._last_line = b""
        self.skipped = 0

    def read(self) -> list[KernelMessage]:
        """New messages. Raise OSError if the log cannot be read."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        records = self._selected(self._file)
        # The others were read before an error.
        new = [record for record in records if record.sequence > self._last_sequence]
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

    def _selected(self, file: int) -> Iterator[KernelRecord]:
        """Records with a fragment, up to the limit of each fragment."""
        taken: Counter[bytes] = Counter()
        for line in self._lines(file):
            found = self._fragments.search(line)
            if found is None:
                continue
            if taken[found.group()] >= MAX_LINES_PER_FRAGMENT:
                self.skipped += 1
            elif (record := parse_record(line.decode("utf-8", "replace"))) is not None:
                taken[found.group()] += 1
                yield record

    def _lines(self, file: int) -> Iterator[bytes]:
        """Lines, up to the limit of a read. A regular file returns many records per read, or half of one."""
        count, overwritten = 0, False
        while count < MAX_LINES_PER_READ:
            try:
                content = self._read_file(file, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # the kernel has overwritten the next records; continue with the oldest
                    overwritten, count = True, count + 1
                    continue
                self.close()
                raise
            if not content:
                return
            *lines, self._rest = (self._rest + content).split(b"\n")
            if overwritten and lines:
                self.skipped += max(0, _sequence(lines[0]) - _sequence(self._last_line) - 1)
                overwritten = False
            if lines and not lines[0].startswith(b" "):
                self._last_line = lines[0]
            count += len(lines)
            yield from lines


class SharedKernelLog:
    """One reader of the kernel log for several collectors; each gets every message once."""

    def __init__(self, log: KernelLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._queues: list[deque[KernelMessage]] = []

    @property
    def skipped(self) -> int:
        return self._log.skipped

    def subscribe(self) -> Callable[[], list[KernelMessage]]:
        """Function that returns the messages since its last call. It raises OSError if the log cannot be read."""
        queue: deque[KernelMessage] = deque(maxlen=MAX_QUEUED_MESSAGES)
        self._queues.append(queue)

        def read() -> list[KernelMessage]:
            with self._lock:
                messages = self._log.read()
                for each in self._queues:
                    each.extend(messages)
                unread = list(queue)
                queue.clear()
            return unread

        return read


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


def _sequence(line: bytes) -> int:
    """Sequence number of the record that begins on this line; 0 if there is none."""
    fields = line[: 3 * _MAX_DIGITS].split(b",")
    number = fields[1].decode("ascii", "replace") if len(fields) > 1 else ""
    return int(number) if _is_number(number) else 0


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS
