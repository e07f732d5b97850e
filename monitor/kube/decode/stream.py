"""Raw JSON of the API server, lists and lines of a watch, as facts. Pure.

An object that is not what it should be is left out and counted; the others of its list are not harmed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from monitor.facts.kube import (
    EventFact,
    NamespaceFact,
    NodeFact,
    ObjectFact,
    OwnerFact,
    PodFact,
    PodGroupFact,
    QueueFact,
    QuotaFact,
    WorkloadFact,
)
from monitor.kube.decode.kueue import WireKueueQueue, WireWorkload, kueue_queue_fact, workload_fact
from monitor.kube.decode.node import (
    WireEvent,
    WireNode,
    WireObject,
    WireQuota,
    event_fact,
    namespace_fact,
    node_fact,
    owner_fact,
    quota_fact,
)
from monitor.kube.decode.pod import PodFieldFilter, pod_fact
from monitor.kube.decode.pod_wire import WirePod
from monitor.kube.decode.values import Wire
from monitor.kube.decode.volcano import WirePodGroup, WireVolcanoQueue, pod_group_fact, volcano_queue_fact

F = TypeVar("F", bound=ObjectFact)
MAX_LINE_BYTES = 64 << 20  # etcd refuses objects of more than 1.5 MiB: whatever this is, it is no object
# What decoding may raise: not JSON, wrong types, bytes that are no UTF-8, lists within lists without end.
_DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


class MalformedResponseError(Exception):
    """What the API server sent is not the JSON that was asked for."""


class WireListMeta(Wire):
    """`metadata` of a list."""

    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)


class WireList(Wire):
    """A list, its items left as they are."""

    metadata: WireListMeta | None = None
    items: list[msgspec.Raw] | None = None


class WireLine(Wire):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class WireBookmarkMeta(Wire):
    """`metadata` of a bookmark."""

    resource_version: str | None = None


class WireBookmark(Wire):
    """The object of a bookmark, which has no name."""

    metadata: WireBookmarkMeta | None = None


class ApiStatus(Wire):
    """Why the API server refuses: its `Status` object."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None


class ListPage(msgspec.Struct, Generic[F], frozen=True):
    """One page of a list. `problem` is about the first of the `skipped` objects."""

    items: tuple[F, ...]
    resource_version: str | None
    continue_: str | None
    skipped: int = 0
    problem: str | None = None


class WatchEvent(msgspec.Struct, Generic[F], frozen=True):
    """One line of a watch. `fact` is None for BOOKMARK and ERROR, and where the object could not be understood."""

    type: str
    key: str | None = None
    resource_version: str | None = None
    fact: F | None = None
    status: ApiStatus | None = None
    problem: str | None = None


_line = msgspec.json.Decoder(WireLine)
_bookmark = msgspec.json.Decoder(WireBookmark)
_status = msgspec.json.Decoder(ApiStatus)
_any_object = msgspec.json.Decoder(WireObject)
_any_list = msgspec.json.Decoder(WireList)


class ObjectKind(Generic[F]):
    """How objects of one kind are decoded: their shape on the wire, and what makes a fact of it."""

    def __init__(self, wire: type[Wire], build: Callable[[Any], F]) -> None:
        self._build = build
        self._object = msgspec.json.Decoder(wire)

    def page(self, data: bytes) -> ListPage[F]:
        """Given a list, return its objects. Raise BrokenError if it is no list at all."""
        try:
            raw = _any_list.decode(data)
        except _DECODE_ERRORS as error:
            raise MalformedResponseError(f"not a list: {error}") from error
        items: list[F] = []
        problem = None
        for item in raw.items or ():
            try:
                items.append(self._build(self._object.decode(item)))
            except _DECODE_ERRORS as error:
                problem = problem or f"{_name(item)}: {error}"
        meta = raw.metadata or WireListMeta()
        skipped = len(raw.items or ()) - len(items)
        return ListPage(tuple(items), meta.resource_version, meta.continue_ or None, skipped, problem)

    def line(self, data: bytes) -> WatchEvent[F]:
        """Given a line of a watch, return what it says. Raise BrokenError if it is no such line."""
        try:
            raw = _line.decode(data)
            if raw.type == "BOOKMARK":
                meta = _bookmark.decode(raw.object).metadata
                return WatchEvent(raw.type, resource_version=meta.resource_version if meta else None)
            if raw.type == "ERROR":
                return WatchEvent(raw.type, status=_status.decode(raw.object))
        except _DECODE_ERRORS as error:
            raise MalformedResponseError(f"not a watch event: {error}") from error
        return self._changed(raw)

    def _changed(self, raw: WireLine) -> WatchEvent[F]:
        try:
            fact = self._build(self._object.decode(raw.object))
        except _DECODE_ERRORS as error:
            return _undecodable_event(raw, str(error))
        return WatchEvent(raw.type, fact.uid, fact.resource_version, fact)


def _undecodable_event(raw: WireLine, problem: str) -> WatchEvent[Any]:
    """Return an event without a fact; if it can be told whose it is, with that."""
    try:
        meta = _any_object.decode(raw.object).metadata
    except _DECODE_ERRORS:
        return WatchEvent(raw.type, problem=problem)
    return WatchEvent(raw.type, meta.uid, meta.resource_version, problem=f"{meta.name}: {problem}")


def _name(raw: msgspec.Raw) -> str:
    try:
        return _any_object.decode(raw).metadata.name
    except _DECODE_ERRORS:
        return "an object without a name"


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Given bytes as they arrive, yield whole lines. What follows the last line break has been cut off: it is dropped.

    Raise BrokenError for a line that is too long to be an object.
    """
    begun: list[bytes] = []
    size = 0
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*begun, whole[0]))
            begun, size = [], 0
            yield from filter(None, whole)
        begun.append(rest)
        size += len(rest)
        if size > MAX_LINE_BYTES:
            raise MalformedResponseError(f"a line of more than {MAX_LINE_BYTES} bytes")


def decode_status(data: bytes) -> ApiStatus:
    """Given the body of a refusal, return what it says. Something else than JSON (a proxy's page) is its message."""
    try:
        return _status.decode(data)
    except _DECODE_ERRORS:
        return ApiStatus(message=data[:200].decode("utf-8", "replace").strip() or None)


def pods(keep: PodFieldFilter) -> ObjectKind[PodFact]:
    """Given which annotations and variables to keep, return how pods are decoded."""
    return ObjectKind[PodFact](WirePod, lambda raw: pod_fact(raw, keep))


NODES = ObjectKind[NodeFact](WireNode, node_fact)
EVENTS = ObjectKind[EventFact](WireEvent, event_fact)
QUOTAS = ObjectKind[QuotaFact](WireQuota, quota_fact)
OWNERS = ObjectKind[OwnerFact](WireObject, owner_fact)
NAMESPACES = ObjectKind[NamespaceFact](WireObject, namespace_fact)
VOLCANO_QUEUES = ObjectKind[QueueFact](WireVolcanoQueue, volcano_queue_fact)
POD_GROUPS = ObjectKind[PodGroupFact](WirePodGroup, pod_group_fact)
KUEUE_QUEUES = ObjectKind[QueueFact](WireKueueQueue, kueue_queue_fact)
WORKLOADS = ObjectKind[WorkloadFact](WireWorkload, workload_fact)


def decode_pod_list(data: bytes, keep: PodFieldFilter | None = None) -> ListPage[PodFact]:
    """Given a PodList, return its pods as facts. Raise BrokenError if it is no list at all."""
    return pods(keep or PodFieldFilter()).page(data)
