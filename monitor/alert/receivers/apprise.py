"""Other services through the optional library Apprise, which knows a hundred of them by its own URL schemes.

Apprise reports only success or failure, so services with a receiver of their own do not use it: reasons would be lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from monitor.alert.message.formats import plain
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.common import BaseReceiver, MessageWriter
from monitor.base.http import no_requests_logged
from monitor.base.text import shorten
from monitor.base.threads import with_deadline

MAX_TEXT_BYTES = 4096
MAX_TITLE_CHARS = 150


class Apprise(BaseReceiver):
    """An Apprise URL, which is a secret."""

    kind = "apprise"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self._writer.capacity(notifications, MAX_TEXT_BYTES)

    def deliver(self, batch: Batch) -> str:
        library = _library()
        if library is None:
            raise DeliveryError("Apprise is not installed; run pip install 'gpuwarden[apprise]'", retryable=False)
        message = self._writer.message(batch)
        title, text = shorten(message.title, MAX_TITLE_CHARS), self._writer.text(batch, message, MAX_TEXT_BYTES)
        problem, retryable = "Apprise could not deliver and gives no reason", True
        try:
            delivered = with_deadline(self.settings.timeout, lambda _: self._send(library, title, text))
        except _UnknownUrlError:
            delivered, problem, retryable = False, "Apprise does not support this URL", False
        except TimeoutError:
            delivered, problem = False, f"Apprise did not finish within {self.settings.timeout:g} s"
        except Exception as error:  # from any of its hundred services; the text may contain the URL
            delivered, problem = False, f"Apprise failed: {type(error).__name__}"
        if not delivered:
            raise DeliveryError(problem, retryable=retryable)
        return "delivered"

    def _send(self, library: Any, title: str, text: str) -> bool:
        """Whether the message was delivered. Raise _UnknownUrlError, or any exception of a service."""
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # it logs URLs
        sender = library.Apprise()
        with no_requests_logged():
            if not sender.add(self.settings.url):
                raise _UnknownUrlError
            return bool(sender.notify(title=title, body=text))


class _UnknownUrlError(Exception):
    """Apprise does not support the URL."""


def _library() -> Any:
    """The library, or None if it is not installed. Imported on use: it is large and rarely needed."""
    try:
        import apprise
    except ImportError:
        return None
    return apprise
