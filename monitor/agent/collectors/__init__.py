"""Collectors, one file each. A collector reads one kind of thing and returns facts; it keeps no thread and no schedule.

May import: monitor.facts and, of monitor.agent: nvml, procfs, cgroup, guard, clock, settings, runtime.
May not import: the runner, the server.
"""

from __future__ import annotations

from typing import Protocol


class AbsentError(Exception):
    """There is nothing to read on this node (no driver, no such socket), and that is not a fault."""


class Collector(Protocol):
    """Something that can be read. `name` is the part of the snapshot that it fills.

    One that reads several things may also have a `trouble`: which of them the last reading is without, and why.
    """

    name: str

    def collect(self) -> object:
        """Return this part of the snapshot. Raise AbsentError if the node has none; raise anything else if broken."""
        ...
