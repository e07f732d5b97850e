"""Standard output: a terminal, or the log of a container."""

from __future__ import annotations

import sys

from monitor.alert.model import Batch
from monitor.alert.receivers.base import DeliveryError
from monitor.alert.receivers.common import TextReceiver
from monitor.base.logs import printable


class Console(TextReceiver):
    """Standard output of this process."""

    kind = "console"
    max_bytes = 16_384

    def deliver(self, batch: Batch) -> str:
        text = self.writer.text(batch, self.writer.message(batch), self.max_bytes)
        lines = "\n".join(printable(line) for line in text.split("\n"))
        try:
            sys.stdout.write(f"{lines}\n\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:  # broken pipe, or closed
            raise DeliveryError(f"cannot write to stdout: {type(error).__name__}", retryable=True) from None
        return "written"
