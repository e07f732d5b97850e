"""The snapshot of an agent: decoding, and keeping it up to date with the changes that the agent sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from monitor.base.bounded_json import decode_bounded
from monitor.cluster.agents.client import AgentError
from monitor.cluster.agents.recurring import share_strings
from monitor.facts.node import HEAD, PARTS, NodeSnapshot, SnapshotUpdate

NO_VERSION = "0"  # requests a complete snapshot
T = TypeVar("T")
_snapshot_decoder = msgspec.json.Decoder(NodeSnapshot)
_update_decoder = msgspec.json.Decoder(SnapshotUpdate)


class SnapshotFollower:
    """Keeps the snapshot of one agent.

    A part with the same content as before is the same object as before, whatever the agent sends, so that who keeps an
    earlier snapshot sees by identity what has changed: see `monitor.facts.node.changed_parts`.
    """

    def __init__(self) -> None:
        self._snapshot: NodeSnapshot | None = None
        self._version = NO_VERSION  # of the snapshot

    def read(self, fetch: Callable[[str], bytes]) -> NodeSnapshot:
        """Current snapshot. `fetch` returns the agent's update since a version. Raise AgentError if there is none.

        Changes that do not fit what is known are dropped, and the complete snapshot is fetched instead.
        """
        update = decode_update(fetch(self._version))
        snapshot = self._merge(update)
        if snapshot is None:
            self._version = NO_VERSION
            update = decode_update(fetch(NO_VERSION))
            snapshot = self._merge(update)
        if snapshot is None:
            raise AgentError("sent changes instead of a snapshot")
        self._snapshot, self._version = snapshot, update.version or NO_VERSION
        return snapshot

    def _merge(self, update: SnapshotUpdate) -> NodeSnapshot | None:
        """Snapshot after an update; None if the update does not fit the snapshot before."""
        known = self._snapshot
        if update.since is None:
            parts: dict[str, Any] | None = {name: getattr(update, name) for name in PARTS}
        elif known is None or self._version == NO_VERSION or update.since != self._version:
            return None
        else:
            parts = _changes(known, update)
        return _with_parts(known, update, parts) if parts is not None else None


def decode_snapshot(body: bytes) -> NodeSnapshot:
    """Decode a complete snapshot, with long strings cut. Raise AgentError if it is not one."""
    return _decode(_snapshot_decoder, body)


def decode_update(body: bytes) -> SnapshotUpdate:
    """Decode an update, with long strings cut. Raise AgentError if it is not one."""
    return _decode(_update_decoder, body)


def _decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decode_bounded(decoder, body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AgentError(f"sent no snapshot: {error}") from error
    except UnicodeError as error:  # its message quotes what was sent
        raise AgentError("sent no snapshot: the text is not UTF-8") from error


def _changes(known: NodeSnapshot, update: SnapshotUpdate) -> dict[str, Any] | None:
    """Parts that an update replaces; None if it names a collector that is not known."""
    parts = {name: getattr(update, name) for name in PARTS if name in update.changed}
    if "collectors" not in parts:
        changed = {fact.name: fact for fact in update.collectors}
        if not changed.keys() <= {fact.name for fact in known.collectors}:
            return None
        parts["collectors"] = tuple(changed.get(fact.name, fact) for fact in known.collectors)
    return parts


def _with_parts(known: NodeSnapshot | None, update: SnapshotUpdate, parts: dict[str, Any]) -> NodeSnapshot:
    """Known snapshot with the head of an update and the parts whose content differs."""
    head = {name: getattr(update, name) for name in HEAD}
    different = {name: part for name, part in parts.items() if known is None or part != getattr(known, name)}
    share_strings(different)
    if known is None:
        return NodeSnapshot(**head, **different)
    return msgspec.structs.replace(known, **head, **different)
