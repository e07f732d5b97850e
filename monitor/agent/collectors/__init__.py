"""Collectors, one per file. A collector reads one part of the node and returns facts; the runner schedules it."""

from __future__ import annotations

from typing import Protocol


class AbsentError(Exception):
    """The node does not have what the collector reads (no driver, no socket), which is not a fault."""


class Collector(Protocol):
    """Reads one part of the snapshot, which has its `name`.

    A collector that reads several sources may also have a `warning`: why the last result is incomplete.
    """

    name: str

    def collect(self) -> object:
        """Part of the snapshot. Raise AbsentError if the node does not have it, anything else on failure."""
        ...
