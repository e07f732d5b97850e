"""Dead man's switch: an address that is asked for as long as somebody really looks at the cluster.

Whoever keeps that address raises the alarm when it is not asked any more: no process can tell of its own end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from monitor.base import http
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError

log = logging.getLogger(__name__)
MAX_MISSED_INTERVALS = 3  # intervals without a look after which nothing is said any more


def alive(looked_at: float | None, interval: float, now: float) -> bool:
    """Given when somebody last looked, return whether that is recent enough to be called alive."""
    return looked_at is not None and now - looked_at < MAX_MISSED_INTERVALS * interval


class Heartbeat:
    """Asks an address every `interval` seconds between start() and stop(). `looked_at` is by the monotonic clock."""

    def __init__(
        self,
        way: Endpoint,
        interval: float,
        looked_at: Callable[[], float | None],
        ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """Of several replicas, the one that `ours` says it of is heard: without it, none is, and that is the alarm."""
        self._ours = ours
        self._way = way
        self._interval = interval
        self._looked_at = looked_at
        self._trouble: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_on, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End. A request that is under way is not waited for."""
        self._stopping.set()

    def _keep_on(self) -> None:
        while not self._stopping.is_set():
            wait = self._interval
            if not self._ours():
                wait = min(1.0, wait)
            elif alive(self._looked_at(), self._interval, time.monotonic()):
                self._say(self._beat())
            elif self._looked_at() is None:
                wait = min(1.0, wait)  # the first look is about to come
            else:
                self._say("nobody has looked at the cluster for too long; the heartbeat stays out")
            self._stopping.wait(wait)

    def _beat(self) -> str | None:
        try:
            http.get(self._way)
        except RequestError as error:
            return f"the heartbeat was not heard: {error}"
        return None

    def _say(self, trouble: str | None) -> None:
        """Log what is new."""
        if trouble == self._trouble:
            return
        if trouble is not None:
            log.warning("%s", trouble)
        else:
            log.info("the heartbeat is heard again")
        self._trouble = trouble
