"""The terminal, or the log of a container: messages as plain text on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from monitor.alert.message.formats import plain
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.configured import BaseReceiver, MessageWriter
from monitor.base.logs import printable

LIMIT = 16_384


class Console(BaseReceiver):
    """Whoever looks at what this process writes."""

    kind = "console"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._writer.holds(notifications, LIMIT)

    def deliver(self, parcel: Batch) -> str:
        text = self._writer.text(parcel, self._writer.letter(parcel), LIMIT)
        lines = "\n".join(printable(line) for line in text.split("\n"))
        try:
            sys.stdout.write(f"{lines}\n\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:  # nobody reads it any more, or it is closed
            raise DeliveryError(f"stdout cannot be written: {type(error).__name__}", retryable=True) from None
        return "written"
