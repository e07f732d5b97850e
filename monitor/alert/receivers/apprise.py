"""Other services through the optional library Apprise, which knows a hundred of them by its own URL schemes.

Apprise reports only success or failure, so services with a receiver of their own do not use it: reasons would be lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from monitor.alert.model import Batch
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.common import TextReceiver
from monitor.base.http import no_requests_logged
from monitor.base.text import shorten
from monitor.base.threads import with_deadline

MAX_TITLE_CHARS = 150
MAX_UNFINISHED = 3  # deliveries that a service holds open beyond their deadline


class Apprise(TextReceiver):
    """An Apprise URL, which is a secret."""

    kind = "apprise"
    max_bytes = 4096

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._lock = threading.Lock()
        self._unfinished = 0

    def deliver(self, batch: Batch) -> str:
        library = _library()
        if library is None:
            raise DeliveryError("Apprise is not installed; run pip install 'gpuwarden[apprise]'", retryable=False)
        message = self.writer.message(batch)
        title, text = shorten(message.title, MAX_TITLE_CHARS), self.writer.text(batch, message, self.max_bytes)
        problem, retryable = "Apprise could not deliver and gives no reason", True
        if self._unfinished >= MAX_UNFINISHED:
            raise DeliveryError(f"{MAX_UNFINISHED} earlier deliveries have not finished", retryable=True)
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
        with self._counted(), no_requests_logged():
            if not sender.add(self.settings.url):
                raise _UnknownUrlError
            return bool(sender.notify(title=title, body=text))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a delivery until it ends: its connection belongs to the library and cannot be broken off."""
        with self._lock:
            self._unfinished += 1
        try:
            yield
        finally:
            with self._lock:
                self._unfinished -= 1


class _UnknownUrlError(Exception):
    """Apprise does not support the URL."""


def _library() -> Any:
    """The library, or None if it is not installed. Imported on use: it is large and rarely needed."""
    try:
        import apprise
    except ImportError:
        return None
    return apprise
