"""Relay of notifications from the cleanup journal to the alert outbox, exactly once each.

A notification is written to the journal together with the event that it reports. The outbox stores, in the same
transaction as the notifications, the last sequence number that it received and the id of that journal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from monitor.alert.model import Notification
from monitor.base.sqlite import DatabaseError
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.notices import NoticeRouting

log = logging.getLogger(__name__)
POSITION_KEY = "cleanup"


class NoticeOutbox(Protocol):
    """The alert outbox as cleanup uses it."""

    def routing(self) -> NoticeRouting: ...

    def note(self, name: str) -> bytes | None:
        """A value that was stored together with notifications."""
        ...

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        """Store notifications and values in one transaction."""
        ...


class Relay:
    """Moves notifications from the journal to the outbox. Thread-safe."""

    def __init__(self, journal: CleanupJournal, outbox: NoticeOutbox) -> None:
        self._journal = journal
        self._outbox = outbox
        self._lock = threading.Lock()

    def routing(self) -> NoticeRouting:
        return self._outbox.routing()

    def forward(self) -> None:
        """Forward pending notifications. Failures are retried on the next call."""
        try:
            with self._lock:
                self._forward()
        except DatabaseError as error:
            log.error("cannot forward cleanup notifications, will retry: %s", error)

    def _forward(self) -> None:
        journal_id = self._journal.metadata("journal") or ""
        pending = self._journal.messages(self._position(journal_id))
        if pending:
            last = pending[-1][0]
            self._outbox.send([message for _, message in pending], {POSITION_KEY: f"{journal_id} {last}".encode()})
        self._journal.forget_messages(self._position(journal_id))

    def _position(self, journal_id: str) -> int:
        """Last sequence number of this journal in the outbox; 0 if the outbox has seen another journal."""
        journal, _, sequence = (self._outbox.note(POSITION_KEY) or b"").decode("ascii", "replace").partition(" ")
        return int(sequence) if journal == journal_id and sequence.isdecimal() else 0
