"""What is known of one kind of object: the newest version of each, whatever order word of it came in.

Objects are told apart by uid, so a deletion that arrives late never removes a new object of the same name. Versions are
compared as numbers where they are numbers; the API documents them as opaque, so where they are not, order is trusted.
A uid is never given twice, so once an object is deleted, everything that still arrives about it is old.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from monitor.facts.kube import ObjectFact
from monitor.kube.decode.stream import WatchEvent

F = TypeVar("F", bound=ObjectFact)
MAX_TOMBSTONES = 20_000  # deletions remembered against late news: minutes of them in the busiest cluster


class StoreSnapshot(msgspec.Struct, Generic[F], frozen=True):
    """All objects at one moment. `version` grows with every change; `resource_version` is the API server's."""

    items: tuple[F, ...]
    version: int
    resource_version: str | None


class ObjectChange(msgspec.Struct, Generic[F], frozen=True):
    """One object before and after. `old` None: it is new. `new` None: it is gone."""

    old: F | None
    new: F | None


class _StoredObject(Generic[F]):
    """The newest version of one object. `fact` None: it is there, but could not be understood."""

    __slots__ = ("fact", "number")

    def __init__(self, number: int | None, fact: F | None) -> None:
        self.number = number
        self.fact = fact


def version_number(resource_version: str | None) -> int | None:
    """Given a resource version, return it as a number. Return None where it is not one."""
    return int(resource_version) if resource_version and resource_version.isdecimal() else None


class ObjectStore(Generic[F]):
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _StoredObject[F]] = {}
        self._graves: OrderedDict[str, None] = OrderedDict()
        self._listed: int | None = None
        self._resource_version: str | None = None
        self._version = 0
        self._snapshot: StoreSnapshot[F] | None = None

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self._version

    @property
    def resource_version(self) -> str | None:
        """Up to where the API server's changes have been seen."""
        return self._resource_version

    def __len__(self) -> int:
        return len(self._entries)

    def snapshot(self) -> StoreSnapshot[F]:
        """Return all objects. The same tuple is returned until something changes."""
        with self._lock:
            if self._snapshot is None:
                items = tuple(entry.fact for entry in self._entries.values() if entry.fact is not None)
                self._snapshot = StoreSnapshot(items, self._version, self._resource_version)
            return self._snapshot

    def get(self, uid: str) -> F | None:
        """Return the object with this uid, or None."""
        entry = self._entries.get(uid)
        return entry.fact if entry is not None else None

    def replace(self, items: Iterable[F], resource_version: str | None) -> list[ObjectChange[F]]:
        """Given a whole list, make it the content, and return what that changed. What it lacks is gone."""
        entries = {item.uid: _StoredObject(version_number(item.resource_version), item) for item in items}
        with self._lock:
            before, self._entries = self._entries, entries
            self._graves.clear()  # the list is the truth now, even after a restored backup brought an object back
            self._listed = version_number(resource_version)
            self._resource_version = resource_version
            changes = _differences(before, entries)
            self._touch(bool(changes))
        return changes

    def apply(self, event: WatchEvent[F]) -> ObjectChange[F] | None:
        """Given a change, take it in and return what it did. Return None for old news and for no difference."""
        if event.key is None:
            return None
        number = version_number(event.resource_version)
        with self._lock:
            entry = self._entries.get(event.key)
            if self._is_old(event, number, entry):
                return None
            self._note(event.resource_version, number)
            old = entry.fact if entry is not None else None
            if event.type == "DELETED":
                self._bury(event.key)
            else:
                self._entries[event.key] = _StoredObject(number, event.fact)
            new = None if event.type == "DELETED" else event.fact
            changed = old is not None or new is not None
            self._touch(changed)
        return ObjectChange(old, new) if changed else None

    def note(self, resource_version: str | None) -> None:
        """Given a bookmark: everything up to this version has been seen."""
        with self._lock:
            self._note(resource_version, version_number(resource_version))

    def _is_old(self, event: WatchEvent[F], number: int | None, entry: _StoredObject[F] | None) -> bool:
        if event.key in self._graves:
            return True
        if event.type == "DELETED" or number is None:
            return False  # nothing comes after a deletion, so it is news whatever version it carries
        if self._listed is not None and number <= self._listed:
            return True  # the list was made after this
        return entry is not None and entry.number is not None and number <= entry.number

    def _note(self, resource_version: str | None, number: int | None) -> None:
        known = version_number(self._resource_version)
        if resource_version and (number is None or known is None or number > known):
            self._resource_version = resource_version
            self._snapshot = None

    def _bury(self, key: str) -> None:
        self._entries.pop(key, None)
        self._graves[key] = None
        if len(self._graves) > MAX_TOMBSTONES:
            self._graves.popitem(last=False)

    def _touch(self, changed: bool) -> None:
        self._snapshot = None
        self._version += changed


def _differences(before: dict[str, _StoredObject[F]], after: dict[str, _StoredObject[F]]) -> list[ObjectChange[F]]:
    changes = [
        ObjectChange(entry.fact, None) for key, entry in before.items() if key not in after and entry.fact is not None
    ]
    for key, entry in after.items():
        known = before.get(key)
        old = known.fact if known is not None else None
        if old is None or entry.number is None or known is None or known.number != entry.number:
            changes.append(ObjectChange(old, entry.fact))
    return changes
