"""Ages of trash entries in time that really passed, whatever the wall clock says.

Ages grow with CLOCK_BOOTTIME, which cannot be set, and survive restarts of the agent and of the node. Time while the
node is off does not count, nor does time before the agent first saw an entry: an error makes an entry younger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping

import msgspec

from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.statefile import StateFile

STATE_FILE = "trash-ages.json"


class TrashAgeState(msgspec.Struct, frozen=True):
    """Ages in seconds by root and entry, as of `boottime` in the boot `boot_id`."""

    boot_id: str | None = None
    boottime: float = 0.0
    ages: dict[str, dict[str, float]] = {}


class TrashAges:
    """Ages of the entries of all roots, stored in the agent's state directory. Thread-safe."""

    def __init__(self, directory: str, boot_id: str | None, boottime: Callable[[], float] | None = None) -> None:
        """`boottime` returns the seconds since the boot `boot_id`; without the id no entry ever ages."""
        self._boot_id = boot_id
        self._boottime = boottime or _boottime
        self._file = StateFile(directory, STATE_FILE, TrashAgeState, "the age of datasets in the trash")
        self._state = self._file.load()
        self._lock = threading.Lock()

    def advance(self) -> None:
        """Store the current ages. What passes between the last call and a shutdown of the node does not count."""
        with self._lock:
            self._replace({})

    def begin(self, root: str, entry_id: str) -> None:
        """Start to measure the age of a new entry."""
        with self._lock:
            self._replace({root: {*self._state.ages.get(root, {}), entry_id}})

    def observe(self, root: str, entry_ids: Collection[str]) -> dict[str, float]:
        """Ages of all entries of a root. An entry that is seen for the first time has age 0."""
        with self._lock:
            self._replace({root: entry_ids})
            return dict(self._state.ages[root])

    def _replace(self, listed: Mapping[str, Collection[str]]) -> None:
        """Advance all ages, and replace the entries of the `listed` roots."""
        now = self._boottime()
        elapsed = elapsed_seconds(self._state, self._boot_id, now)
        aged = {
            root: {entry_id: age + elapsed for entry_id, age in ages.items()} for root, ages in self._state.ages.items()
        }
        for root, entry_ids in listed.items():
            known = aged.get(root, {})
            aged[root] = {entry_id: known.get(entry_id, 0.0) for entry_id in entry_ids}
        self._state = TrashAgeState(self._boot_id, now, aged)
        self._file.save(self._state)


def elapsed_seconds(before: TrashAgeState, boot_id: str | None, boottime: float) -> float:
    """Seconds that certainly passed since `before`: after a reboot, those since the node started."""
    if boot_id is None or before.boot_id is None:
        return 0.0
    return max(0.0, boottime - before.boottime) if boot_id == before.boot_id else max(0.0, boottime)


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


warm_up_msgspec(__name__)
