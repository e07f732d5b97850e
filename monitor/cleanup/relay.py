"""The way of messages from the journal of cleanup into the outbox of alerts: each arrives there exactly once.

A message is in the journal from the moment at which what it tells is written down. The outbox remembers, together with
the messages, up to which place of which journal it has them.
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
    """What is needed of alerts."""

    def address(self) -> NoticeRouting:
        """Return who may be told."""
        ...

    def note(self, name: str) -> bytes | None:
        """Return what was remembered together with the messages."""
        ...

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        """Put messages into the outbox and remember something, all at once or not at all."""
        ...


class Relay:
    """Empties the journal into the outbox. For use from any thread."""

    def __init__(self, journal: CleanupJournal, outgoing: NoticeOutbox) -> None:
        self._journal = journal
        self._outgoing = outgoing
        self._lock = threading.Lock()

    def address(self) -> NoticeRouting:
        """Return who may be told."""
        return self._outgoing.address()

    def forward(self) -> None:
        """Pass on what waits. What fails is tried again the next time."""
        try:
            with self._lock:
                self._forward()
        except DatabaseError as error:
            log.error("messages of cleanup wait, it is tried again: %s", error)

    def _forward(self) -> None:
        own = self._journal.note("journal") or ""
        waiting = self._journal.messages(self._arrived(own))
        if waiting:
            last = waiting[-1][0]
            self._outgoing.send([message for _, message in waiting], {POSITION_KEY: f"{own} {last}".encode()})
        self._journal.forget_messages(self._arrived(own))

    def _arrived(self, own: str) -> int:
        """Return up to which place the outbox has the messages of this journal. It may know those of another one."""
        journal, _, place = (self._outgoing.note(POSITION_KEY) or b"").decode("ascii", "replace").partition(" ")
        return int(place) if journal == own and place.isdecimal() else 0
