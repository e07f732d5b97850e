"""Why containers failed, from the end of their logs.

The log of each container that exits with an error is read once. Only the class of the failure and, unless it is
disabled, one line leave the node; the line is shortened and its secrets are masked.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from heapq import nlargest

from monitor.agent.collectors import AbsentError
from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.log_files import read_tail
from monitor.base.clock import Clock
from monitor.base.masking import mask_secrets
from monitor.base.text import clean, shorten
from monitor.facts import ContainerFact, LogTailFact
from monitor.facts.log_tails import LogCause
from monitor.facts.program_logs import LogClass, classify_log

log = logging.getLogger(__name__)

MAX_TAILS = 200
MAX_LINE_CHARS = 300
MAX_READS_PER_RUN = 20
SETTLE_SECONDS = 1.0  # after the exit, in which the runtime writes the last lines
READ_TIMEOUT_SECONDS = 3.0

_Exit = tuple[str, float | None]  # container and end: a Docker container that is restarted keeps its id


class LogTailsCollector:
    """Reads the logs of the failed containers among those that `containers` returns."""

    name = "log_tails"

    def __init__(
        self,
        containers: Callable[[], tuple[ContainerFact, ...] | None],
        rootfs: str,
        *,
        lines: bool,
        clock: Clock = time,
        read: Callable[[str], str] = read_tail,
    ) -> None:
        self._containers = containers
        self._rootfs = rootfs
        self._lines = lines
        self._clock = clock
        self._read = read
        self._guard = HungCallGuard(self.name)
        self._known: dict[_Exit, LogTailFact] = {}
        self.warning: str | None = None

    def collect(self) -> tuple[LogTailFact, ...]:
        containers = self._containers()
        if containers is None:
            raise AbsentError("the containers of this node are unknown")
        failed = newest_failures(containers)
        self._known = {exit_: fact for container in failed if (fact := self._known.get(exit_ := _exit(container)))}
        self.warning = None
        unread = [container for container in failed if _exit(container) not in self._known and self._settled(container)]
        for container in unread[:MAX_READS_PER_RUN]:
            try:
                self._known[_exit(container)] = self._fact(container)
            except HungError as hung:
                self.warning = f"{container.log_path}: {hung}"
        return tuple(fact for container in failed if (fact := self._known.get(_exit(container))))

    def _settled(self, container: ContainerFact) -> bool:
        ended = container.finished_at
        return ended is None or not 0.0 <= self._clock.time() - ended < SETTLE_SECONDS

    def _fact(self, container: ContainerFact) -> LogTailFact:
        """Class of the failure. Raise HungError while logs of this runtime cannot be read."""
        path = os.path.join(self._rootfs, (container.log_path or "").lstrip("/"))
        try:
            tail = self._guard.call(container.runtime, lambda: self._read(path), READ_TIMEOUT_SECONDS)
        except OSError as error:
            log.info("log of container %s cannot be read: %s", container.id[:12], error.strerror or error)
            return log_tail_fact(container, LogClass(LogCause.UNKNOWN), lines=self._lines)
        return log_tail_fact(container, classify_log(tail), lines=self._lines)


def newest_failures(containers: Iterable[ContainerFact]) -> list[ContainerFact]:
    """Containers that exited with an error and have a log, the newest first."""
    failed = (
        container
        for container in containers
        if container.state == "exited" and container.exit_code and container.log_path and not container.sandbox
    )
    return nlargest(MAX_TAILS, failed, key=lambda container: (container.finished_at or 0.0, container.id))


def log_tail_fact(container: ContainerFact, result: LogClass, *, lines: bool) -> LogTailFact:
    """The fact that leaves the node."""
    line = _shortened(mask_secrets(clean(result.line).strip())) if lines and result.line else None
    return LogTailFact(
        container_id=container.id,
        cause=result.name.value,
        line=line or None,
        exception=result.exception,
        rank=result.rank,
        finished_at=container.finished_at,
    )


def _shortened(line: str) -> str:
    """A line of limited length. A long one keeps its start and its end: a launcher's ends with the exit code."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    end = line[-MAX_LINE_CHARS // 2 :].lstrip()
    return f"{shorten(line, MAX_LINE_CHARS - len(end))}{end}"


def _exit(container: ContainerFact) -> _Exit:
    return container.id, container.finished_at
