"""Objects of the simulated API server, with resource versions, lists and watches."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

Object = dict[str, Any]
WatchCallback = Callable[[bytes], None]
MAX_CHANGES = 20_000  # retained; a watch from an older version gets 410 Gone


class SimObjects:
    """Objects by plural and uid."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {}
        self._changes: deque[tuple[int, str, bytes]] = deque(maxlen=MAX_CHANGES)
        self._watchers: dict[str, set[WatchCallback]] = {}
        self._versions = itertools.count(1)
        self.version = 0

    def put(self, plural: str, item: Object) -> Object:
        """Create or replace an object, and return it with its new version."""
        objects = self._objects.setdefault(plural, {})
        self.version = next(self._versions)
        uid = item["metadata"]["uid"]
        change = "MODIFIED" if uid in objects else "ADDED"
        objects[uid] = item | {"metadata": item["metadata"] | {"resourceVersion": str(self.version)}}
        self._publish(plural, change, objects[uid])
        return objects[uid]

    def remove(self, plural: str, uid: str) -> None:
        if (item := self._objects.get(plural, {}).pop(uid, None)) is not None:
            self.version = next(self._versions)
            meta = item["metadata"] | {"resourceVersion": str(self.version)}
            self._publish(plural, "DELETED", item | {"metadata": meta})

    def items(self, plural: str) -> list[Object]:
        return list(self._objects.get(plural, {}).values())

    def get(self, plural: str, uid: str) -> Object:
        """The object with a uid. Raise KeyError."""
        return self._objects[plural][uid]

    def named(self, plural: str, namespace: str | None, name: str) -> Object | None:
        """The object with a name, or None."""
        for item in self._objects.get(plural, {}).values():
            if item["metadata"]["name"] == name and item["metadata"].get("namespace") == namespace:
                return item
        return None

    def since(self, plural: str, version: int) -> Iterator[bytes] | None:
        """Changes after a version as lines of a watch; None if some are no longer retained."""
        if self._changes and version < self._changes[0][0] - 1:
            return None
        return (line for at, kind, line in list(self._changes) if kind == plural and at > version)

    def watch(self, plural: str, callback: WatchCallback) -> Callable[[], None]:
        """Call `callback` with each change of a kind; return a function that ends the watch."""
        watchers = self._watchers.setdefault(plural, set())
        watchers.add(callback)
        return lambda: watchers.discard(callback)

    def _publish(self, plural: str, change: str, item: Object) -> None:
        line = msgspec.json.encode({"type": change, "object": item}) + b"\n"
        self._changes.append((self.version, plural, line))
        for callback in list(self._watchers.get(plural, ())):
            callback(line)
