"""Errors that the kernel logs, except for XIDs: hardware, disks, network filesystems, hung tasks, out of memory."""

from __future__ import annotations

from monitor.agent.collectors import AbsentError
from monitor.agent.kernel.lines import classify
from monitor.agent.kernel.summary import add_lines
from monitor.agent.kmsg import SharedKernelLog
from monitor.facts.kernel import KernelFacts


class KernelCollector:
    """Classifies new lines of the kernel log. An agent without privileges cannot read it."""

    name = "kernel"

    def __init__(self, log: SharedKernelLog) -> None:
        self._log = log
        self._read = log.subscribe()
        self._facts = KernelFacts()

    def collect(self) -> KernelFacts:
        """All events so far. Raise AbsentError if there is no kernel log that may be read."""
        try:
            messages = self._read()
        except (FileNotFoundError, PermissionError) as error:
            raise AbsentError(f"the kernel log cannot be read: {error}") from None
        lines = [(message.at, line) for message in messages if (line := classify(message.text)) is not None]
        if lines or self._log.skipped != self._facts.skipped_lines:
            self._facts = add_lines(self._facts, lines, self._log.skipped)
        return self._facts
