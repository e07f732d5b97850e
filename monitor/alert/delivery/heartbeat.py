"""Dead man's switch: pings a URL as long as the cluster is being evaluated.

The service behind the URL raises an alarm when pings stop: no process can report its own death.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from monitor.base import http
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError
from monitor.base.threads import Periodic

log = logging.getLogger(__name__)
MAX_MISSED_INTERVALS = 3  # without an evaluation, before pings stop
RECHECK_SECONDS = 1.0


def alive(evaluated_at: float | None, interval: float, now: float) -> bool:
    """Whether the last evaluation is recent enough."""
    return evaluated_at is not None and now - evaluated_at < MAX_MISSED_INTERVALS * interval


class Heartbeat:
    """Pings a URL every `interval` seconds between start() and stop().

    `evaluated_at` is the monotonic time of the last evaluation. Of several replicas only the leader pings, so that the
    loss of leadership raises the alarm as well.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        interval: float,
        evaluated_at: Callable[[], float | None],
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        self._endpoint = endpoint
        self._interval = interval
        self._evaluated_at = evaluated_at
        self._is_leader = is_leader
        self._problem: str | None = None
        self._loop = Periodic("heartbeat", self._beat, interval)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Stop without waiting for a request in progress."""
        self._loop.stop()

    def _beat(self) -> float:
        evaluated_at = self._evaluated_at()
        if not self._is_leader() or evaluated_at is None:  # either may change soon
            return min(RECHECK_SECONDS, self._interval)
        if alive(evaluated_at, self._interval, time.monotonic()):
            self._report(self._ping())
        else:
            self._report("the cluster has not been evaluated for too long; no heartbeat is sent")
        return self._interval

    def _ping(self) -> str | None:
        try:
            http.get(self._endpoint)
        except RequestError as error:
            return f"heartbeat failed: {error}"
        return None

    def _report(self, problem: str | None) -> None:
        """Log changes only."""
        if problem == self._problem:
            return
        if problem is not None:
            log.warning("%s", problem)
        else:
            log.info("heartbeat succeeds again")
        self._problem = problem
