"""Versions of the parts of the snapshot, so that a client that polls receives only what has changed.

A version is the identifier of this start of the agent and a number that grows with every change. Each part remembers
the number of its last change: a client that sends its version needs the parts with a higher number. Nothing is kept
per client.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from typing import Any

from monitor.facts import HEAD, PARTS, NodeSnapshot, SnapshotUpdate

MAX_NUMBER_DIGITS = 18
_UNKNOWN = object()
_Key = tuple[str, str | None]


class SnapshotVersions:
    """Remembers the last snapshot and when each of its parts changed."""

    def __init__(self, snapshot: Callable[[], NodeSnapshot]) -> None:
        self._snapshot = snapshot
        self._start = secrets.token_hex(8)  # no version of another start matches
        self._number = 0
        self._values: dict[_Key, Any] = {}
        self._changed_at: dict[_Key, int] = {}  # number of the last change of each value
        self._lock = threading.Lock()

    def update(self, since: str) -> SnapshotUpdate:
        """Changes since a version, or the complete snapshot if the version is not one of this start."""
        with self._lock:
            snapshot = self._snapshot()
            self._note(_values(snapshot))
            number = self._parse(since)
            changes = self._changes(snapshot, number) if number is not None else _fields(snapshot, PARTS)
            since_version = self._version(number) if number is not None else None
            head = _fields(snapshot, HEAD)
            return SnapshotUpdate(**head, **changes, version=self._version(self._number), since=since_version)

    def _note(self, values: dict[_Key, Any]) -> None:
        """Give the values that differ from the last ones a new number."""
        changed = [key for key, value in values.items() if not _is_same(self._values.get(key, _UNKNOWN), value)]
        if changed:
            self._number += 1
        self._changed_at = {key: self._changed_at.get(key, 0) for key in values} | dict.fromkeys(changed, self._number)
        self._values = values

    def _changes(self, snapshot: NodeSnapshot, since: int) -> dict[str, Any]:
        """Fields of an update with the changes since a number."""
        names = tuple(part for part in PARTS if self._changed_at[part, None] > since)
        changes = _fields(snapshot, names) | {"changed": names}
        if "collectors" not in names:
            facts = snapshot.collectors
            changes["collectors"] = tuple(f for f in facts if self._changed_at["collectors", f.name] > since)
        return changes

    def _version(self, number: int) -> str:
        return f"{self._start}.{number}"

    def _parse(self, version: str) -> int | None:
        """Number of a version of this start; None if it is not one."""
        start, _, number = version.partition(".")
        if start != self._start or not (number.isascii() and number.isdigit() and len(number) <= MAX_NUMBER_DIGITS):
            return None
        return int(number) if int(number) <= self._number else None


def _values(snapshot: NodeSnapshot) -> dict[_Key, Any]:
    """What is compared: each part; of the collectors, their names together and each on its own."""
    values: dict[_Key, Any] = {(part, None): getattr(snapshot, part) for part in PARTS}
    values["collectors", None] = [fact.name for fact in snapshot.collectors]
    return values | {("collectors", fact.name): fact for fact in snapshot.collectors}


def _fields(snapshot: NodeSnapshot, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(snapshot, name) for name in names}


def _is_same(one: object, other: object) -> bool:
    return one is other or one == other
