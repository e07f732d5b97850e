"""Standard output: a terminal, or the log of a container."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from monitor.alert.message.formats import plain
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.common import BaseReceiver, MessageWriter
from monitor.base.logs import printable

MAX_TEXT_BYTES = 16_384


class Console(BaseReceiver):
    """Standard output of this process."""

    kind = "console"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self._writer.capacity(notifications, MAX_TEXT_BYTES)

    def deliver(self, batch: Batch) -> str:
        text = self._writer.text(batch, self._writer.message(batch), MAX_TEXT_BYTES)
        lines = "\n".join(printable(line) for line in text.split("\n"))
        try:
            sys.stdout.write(f"{lines}\n\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:  # broken pipe, or closed
            raise DeliveryError(f"cannot write to stdout: {type(error).__name__}", retryable=True) from None
        return "written"
