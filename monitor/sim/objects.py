"""The objects of the simulated API server: versions, lists, and changes that are told to whoever watches."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

Object = dict[str, Any]
WatchCallback = Callable[[bytes], None]
MAX_CHANGES = 20_000  # changes; a watch from before the first of them has to list again


class SimObjects:
    """All objects, by the plural of their kind and their uid."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Object]] = {}
        self._changes: deque[tuple[int, str, bytes]] = deque(maxlen=MAX_CHANGES)
        self._watchers: dict[str, set[WatchCallback]] = {}
        self._versions = itertools.count(1)
        self.version = 0

    def put(self, plural: str, item: Object) -> Object:
        """Create an object or change it, and return it with its new version."""
        kept = self._kept.setdefault(plural, {})
        self.version = next(self._versions)
        uid = item["metadata"]["uid"]
        what = "MODIFIED" if uid in kept else "ADDED"
        kept[uid] = item | {"metadata": item["metadata"] | {"resourceVersion": str(self.version)}}
        self._tell(plural, what, kept[uid])
        return kept[uid]

    def remove(self, plural: str, uid: str) -> None:
        """Remove an object, if it is there."""
        if (item := self._kept.get(plural, {}).pop(uid, None)) is not None:
            self.version = next(self._versions)
            meta = item["metadata"] | {"resourceVersion": str(self.version)}
            self._tell(plural, "DELETED", item | {"metadata": meta})

    def items(self, plural: str) -> list[Object]:
        """Return the objects of a kind."""
        return list(self._kept.get(plural, {}).values())

    def get(self, plural: str, uid: str) -> Object:
        """Return an object. Raise KeyError."""
        return self._kept[plural][uid]

    def named(self, plural: str, namespace: str | None, name: str) -> Object | None:
        """Return an object by its name, or None."""
        for item in self._kept.get(plural, {}).values():
            if item["metadata"]["name"] == name and item["metadata"].get("namespace") == namespace:
                return item
        return None

    def since(self, plural: str, version: int) -> Iterator[bytes] | None:
        """Return the changes after a version, as lines of a watch; None if they are not all remembered."""
        if self._changes and version < self._changes[0][0] - 1:
            return None
        return (line for at, kind, line in list(self._changes) if kind == plural and at > version)

    def watch(self, plural: str, tell: WatchCallback) -> Callable[[], None]:
        """Have each change of a kind told; return what ends that."""
        watchers = self._watchers.setdefault(plural, set())
        watchers.add(tell)
        return lambda: watchers.discard(tell)

    def _tell(self, plural: str, what: str, item: Object) -> None:
        line = msgspec.json.encode({"type": what, "object": item}) + b"\n"
        self._changes.append((self.version, plural, line))
        for tell in list(self._watchers.get(plural, ())):
            tell(line)
