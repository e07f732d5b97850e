"""Store of one resource: the newest version of each object, regardless of the order of events.

Objects are identified by uid, so a late DELETED event never removes a new object of the same name. Resource versions
are compared as numbers where possible; the API defines them as opaque, so otherwise event order is trusted. Uids are
never reused, so every event after DELETED is outdated.
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
MAX_TOMBSTONES = 20_000  # minutes of deletions in the busiest cluster


class StoreSnapshot(msgspec.Struct, Generic[F], frozen=True):
    """All objects at one moment. `version` grows with every change; `resource_version` is the API server's."""

    items: tuple[F, ...]
    version: int
    resource_version: str | None


class ObjectChange(msgspec.Struct, Generic[F], frozen=True):
    """One object before and after. `old` None: added. `new` None: deleted."""

    old: F | None
    new: F | None


class _StoredObject(Generic[F]):
    """The newest version of one object. `fact` None: it exists but could not be decoded."""

    __slots__ = ("fact", "number")

    def __init__(self, number: int | None, fact: F | None) -> None:
        self.number = number
        self.fact = fact


def version_number(resource_version: str | None) -> int | None:
    """The resource version as a number, or None if it is not numeric."""
    return int(resource_version) if resource_version and resource_version.isdecimal() else None


class ObjectStore(Generic[F]):
    """Written by one thread, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _StoredObject[F]] = {}
        self._tombstones: OrderedDict[str, None] = OrderedDict()
        self._list_version: int | None = None
        self._resource_version: str | None = None
        self._version = 0
        self._snapshot: StoreSnapshot[F] | None = None

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    @property
    def resource_version(self) -> str | None:
        """The API server's version up to which changes have been applied."""
        return self._resource_version

    def __len__(self) -> int:
        return len(self._entries)

    def snapshot(self) -> StoreSnapshot[F]:
        """All objects. The same value until something changes."""
        with self._lock:
            if self._snapshot is None:
                items = tuple(entry.fact for entry in self._entries.values() if entry.fact is not None)
                self._snapshot = StoreSnapshot(items, self._version, self._resource_version)
            return self._snapshot

    def get(self, uid: str) -> F | None:
        entry = self._entries.get(uid)
        return entry.fact if entry is not None else None

    def replace(self, items: Iterable[F], resource_version: str | None) -> list[ObjectChange[F]]:
        """Replace the content by a complete list; return the changes."""
        entries = {item.uid: _StoredObject(version_number(item.resource_version), item) for item in items}
        with self._lock:
            before, self._entries = self._entries, entries
            self._tombstones.clear()  # the list is authoritative, even if a restored backup revived an object
            self._list_version = version_number(resource_version)
            self._resource_version = resource_version
            changes = _differences(before, entries)
            self._record(bool(changes))
        return changes

    def apply(self, event: WatchEvent[F]) -> ObjectChange[F] | None:
        """Apply an event; return the change, or None if the event is outdated or changes nothing."""
        if event.key is None:
            return None
        number = version_number(event.resource_version)
        with self._lock:
            entry = self._entries.get(event.key)
            if self._is_outdated(event, number, entry):
                return None
            self._advance(event.resource_version, number)
            old = entry.fact if entry is not None else None
            if event.type == "DELETED":
                self._delete(event.key)
            else:
                self._entries[event.key] = _StoredObject(number, event.fact)
            new = None if event.type == "DELETED" else event.fact
            changed = old is not None or new is not None
            self._record(changed)
        return ObjectChange(old, new) if changed else None

    def bookmark(self, resource_version: str | None) -> None:
        """All changes up to this version have been applied."""
        with self._lock:
            self._advance(resource_version, version_number(resource_version))

    def _is_outdated(self, event: WatchEvent[F], number: int | None, entry: _StoredObject[F] | None) -> bool:
        if event.key in self._tombstones:
            return True
        if event.type == "DELETED" or number is None:
            return False  # nothing follows a deletion, so it applies whatever its version
        if self._list_version is not None and number <= self._list_version:
            return True  # already in the list
        return entry is not None and entry.number is not None and number <= entry.number

    def _advance(self, resource_version: str | None, number: int | None) -> None:
        known = version_number(self._resource_version)
        if resource_version and (number is None or known is None or number > known):
            self._resource_version = resource_version
            self._snapshot = None

    def _delete(self, key: str) -> None:
        self._entries.pop(key, None)
        self._tombstones[key] = None
        if len(self._tombstones) > MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)

    def _record(self, changed: bool) -> None:
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
