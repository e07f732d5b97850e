"""Keeps the state directory within its limit by removing the least valuable records first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial

from monitor.base.sqlite import DatabaseError
from monitor.base.state_size import MAX_STATE_BYTES, ShrinkableStore, directory_bytes, shrink_to
from monitor.base.threads import Periodic
from monitor.base.units import format_size

log = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 1.0


class StateKeeper:
    """Checks the size between start() and stop(). `excess` says by how much it is exceeded after all; usually None."""

    def __init__(self, directory: str, limit: int = MAX_STATE_BYTES) -> None:
        self._directory = directory
        self._limit = limit
        self._stores: Sequence[ShrinkableStore] = ()
        self._lock = threading.Lock()
        self._checks = Periodic("state-size", self.check, CHECK_INTERVAL_SECONDS)
        self.excess: str | None = None

    def start(self, *stores: ShrinkableStore) -> None:
        """Start checking. `stores` give up records in this order."""
        self._stores = stores
        self._checks.start()

    def stop(self) -> None:
        self._checks.stop(STOP_TIMEOUT_SECONDS)

    def check(self) -> None:
        """Measure the directory, and shrink the stores if they are too large.

        Damaged files that were moved aside count for `excess` only: no record makes room for them.
        """
        measure = partial(directory_bytes, self._directory, aside=False)
        with self._lock:
            before = measure()
            if before > self._limit:
                try:
                    after = shrink_to(self._limit, measure, self._stores)
                    log.warning(
                        "the state directory took %s, more than %s; old records were removed, it takes %s now",
                        format_size(before), format_size(self._limit), format_size(after),
                    )  # fmt: skip
                except DatabaseError as error:
                    log.warning("cannot remove old records from the state directory: %s", error)
        size = directory_bytes(self._directory)
        self.excess = f"{format_size(size)} > {format_size(self._limit)}" if size > self._limit else None
