"""Everybody else, through the optional library Apprise: it knows a hundred services by an address of its own kind.

It says only whether it worked, not why not. What we speak ourselves is not sent this way: it would lose the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import shorten
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.configured import BaseReceiver, MessageWriter
from monitor.base.http import no_requests_logged
from monitor.base.threads import with_deadline

LIMIT = 4096
TITLE = 150


class Apprise(BaseReceiver):
    """One address as Apprise writes them. It is a secret."""

    kind = "apprise"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._writer.holds(notifications, LIMIT)

    def deliver(self, parcel: Batch) -> str:
        library = _library()
        if library is None:
            raise DeliveryError("Apprise is not installed: pip install 'gpuwarden[apprise]'", retryable=False)
        letter = self._writer.letter(parcel)
        title, text = shorten(letter.title, TITLE), self._writer.text(parcel, letter, LIMIT)
        problem, retryable = "Apprise could not deliver; it does not say why", True
        try:
            delivered = with_deadline(self.settings.timeout, lambda _: self._send(library, title, text))
        except _NotUnderstoodError:
            delivered, problem, retryable = False, "the address is not one that Apprise understands", False
        except TimeoutError:
            delivered, problem = False, f"Apprise was not done within {self.settings.timeout:g} s"
        except Exception as error:  # anything, from any of its hundred services; their words may hold the address
            delivered, problem = False, f"Apprise failed: {type(error).__name__}"
        if not delivered:
            raise DeliveryError(problem, retryable=retryable)
        return "delivered"

    def _send(self, library: Any, title: str, text: str) -> bool:
        """Return whether it was delivered. Raise _NotUnderstoodError, or whatever the library lets through."""
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # it logs addresses, and what we say anyway
        sender = library.Apprise()
        with no_requests_logged():
            if not sender.add(self.settings.url):
                raise _NotUnderstoodError
            return bool(sender.notify(title=title, body=text))


class _NotUnderstoodError(Exception):
    """Apprise knows no such service, or not so written."""


def _library() -> Any:
    """Return the module, or None where it is not installed. It is large, and few need it: not imported before."""
    try:
        import apprise
    except ImportError:
        return None
    return apprise
