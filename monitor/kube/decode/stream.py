"""Decoding of lists and watch events.

A malformed object is skipped and counted; it does not affect the rest of its list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from monitor.base.bounded_json import cut_strings, decode_bounded
from monitor.base.text import shorten
from monitor.facts.base import BoundedText
from monitor.facts.devices import DeviceClassFact, ResourceClaimFact, ResourceSliceFact
from monitor.facts.kube import EventFact, JobFact, NamespaceFact, NodeFact, ObjectFact, OwnerFact, PodFact
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from monitor.kube.decode.devices import WireClaim, WireClass, WireSlice, claim_fact, class_fact, slice_fact
from monitor.kube.decode.kueue import WireKueueQueue, WireWorkload, kueue_queue_fact, workload_fact
from monitor.kube.decode.node import (
    WireEvent,
    WireJob,
    WireNode,
    WireObject,
    WireQuota,
    event_fact,
    job_fact,
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
MAX_LINE_BYTES = 16 << 20  # etcd limits objects to 1.5 MiB; escapes in JSON take six times as much
MAX_PROXY_PAGE_CHARS = 200
# Decoding errors: not JSON, wrong types, invalid UTF-8, unbounded nesting.
_DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)


class MalformedResponseError(Exception):
    """The response is not the expected JSON."""


class WireListMeta(Wire):
    """`metadata` of a list."""

    resource_version: BoundedText | None = None
    continue_: BoundedText | None = msgspec.field(name="continue", default=None)


class WireList(Wire):
    """A list with undecoded items."""

    metadata: WireListMeta | None = None
    items: list[msgspec.Raw] | None = None


class WireLine(Wire):
    """One line of a watch."""

    type: BoundedText
    object: msgspec.Raw


class WireBookmarkMeta(Wire):
    """`metadata` of a bookmark."""

    resource_version: BoundedText | None = None


class WireBookmark(Wire):
    """The object of a bookmark, which has no name."""

    metadata: WireBookmarkMeta | None = None


class ApiStatus(Wire):
    """`Status` object: why the API server rejected the request."""

    code: int | None = None
    reason: BoundedText | None = None
    message: BoundedText | None = None


class ListPage(msgspec.Struct, Generic[F], frozen=True):
    """One page of a list. `problem` describes the first of the `skipped` objects."""

    items: tuple[F, ...]
    resource_version: str | None
    continue_: str | None
    skipped: int = 0
    problem: str | None = None


class WatchEvent(msgspec.Struct, Generic[F], frozen=True):
    """One line of a watch. `fact` is None for BOOKMARK and ERROR, and if the object could not be decoded."""

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
    """Decoder of one kind: its wire type, and the function that builds the fact."""

    def __init__(self, wire: type[Wire], build: Callable[[Any], F]) -> None:
        self._build = build
        self._object = msgspec.json.Decoder(wire)

    def page(self, data: bytes) -> ListPage[F]:
        """Decode a list. Raise MalformedResponseError if it is not a list."""
        try:
            raw = _any_list.decode(data)
        except _DECODE_ERRORS as error:
            raise MalformedResponseError(f"not a list: {error}") from error
        items: list[F] = []
        problem = None
        for item in raw.items or ():
            try:
                items.append(self._fact(item))
            except _DECODE_ERRORS as error:
                problem = problem or f"{_name(item)}: {error}"
        meta = raw.metadata or WireListMeta()
        skipped = len(raw.items or ()) - len(items)
        return ListPage(tuple(items), meta.resource_version, meta.continue_ or None, skipped, problem)

    def line(self, data: bytes) -> WatchEvent[F]:
        """Decode a watch event. Raise MalformedResponseError if it is not one."""
        try:
            raw = _line.decode(data)
            if raw.type == "BOOKMARK":
                meta = _bookmark.decode(raw.object).metadata
                return WatchEvent(raw.type, resource_version=meta.resource_version if meta else None)
            if raw.type == "ERROR":
                return WatchEvent(raw.type, status=decode_bounded(_status, raw.object))
        except _DECODE_ERRORS as error:
            raise MalformedResponseError(f"not a watch event: {error}") from error
        return self._changed(raw)

    def _fact(self, raw: msgspec.Raw) -> F:
        """Fact of an object, with strings cut that are too long. Raise _DECODE_ERRORS, also for a long identifier."""
        try:
            return self._build(self._object.decode(raw))
        except msgspec.ValidationError:
            cut = cut_strings(raw)
            if cut is None:
                raise
        return self._build(self._object.decode(cut))

    def _changed(self, raw: WireLine) -> WatchEvent[F]:
        try:
            fact = self._fact(raw.object)
        except _DECODE_ERRORS as error:
            return _undecodable_event(raw, str(error))
        return WatchEvent(raw.type, fact.uid, fact.resource_version, fact)


def _undecodable_event(raw: WireLine, problem: str) -> WatchEvent[Any]:
    """Event without a fact; with the object's uid if the metadata can be decoded."""
    try:
        meta = _any_object.decode(raw.object).metadata
    except _DECODE_ERRORS:
        return WatchEvent(raw.type, problem=problem)
    return WatchEvent(raw.type, meta.uid, meta.resource_version, problem=f"{meta.name}: {problem}")


def _name(raw: msgspec.Raw) -> str:
    try:
        return _any_object.decode(raw).metadata.name
    except _DECODE_ERRORS:
        return "unnamed object"


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split chunks into complete lines; an incomplete last line is dropped.

    Raise MalformedResponseError for a line too long to be an object.
    """
    partial: list[bytes] = []
    size = 0
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*partial, whole[0]))
            partial, size = [], 0
            yield from filter(None, whole)
        partial.append(rest)
        size += len(rest)
        if size > MAX_LINE_BYTES:
            raise MalformedResponseError(f"line of more than {MAX_LINE_BYTES} bytes")


def decode_status(data: bytes) -> ApiStatus:
    """Status in the body of an error response. A body that is not JSON (a proxy's page) becomes the message."""
    try:
        return decode_bounded(_status, data)
    except _DECODE_ERRORS:
        text = data[: 2 * MAX_PROXY_PAGE_CHARS].decode("utf-8", "replace").strip()
        return ApiStatus(message=shorten(text, MAX_PROXY_PAGE_CHARS) or None)


def pods(keep: PodFieldFilter) -> ObjectKind[PodFact]:
    """Decoder of pods, with the annotations and variables to keep."""
    return ObjectKind[PodFact](WirePod, lambda raw: pod_fact(raw, keep))


NODES = ObjectKind[NodeFact](WireNode, node_fact)
EVENTS = ObjectKind[EventFact](WireEvent, event_fact)
QUOTAS = ObjectKind[QuotaFact](WireQuota, quota_fact)
OWNERS = ObjectKind[OwnerFact](WireObject, owner_fact)
JOBS = ObjectKind[JobFact](WireJob, job_fact)
NAMESPACES = ObjectKind[NamespaceFact](WireObject, namespace_fact)
VOLCANO_QUEUES = ObjectKind[QueueFact](WireVolcanoQueue, volcano_queue_fact)
POD_GROUPS = ObjectKind[PodGroupFact](WirePodGroup, pod_group_fact)
KUEUE_QUEUES = ObjectKind[QueueFact](WireKueueQueue, kueue_queue_fact)
WORKLOADS = ObjectKind[WorkloadFact](WireWorkload, workload_fact)
RESOURCE_CLAIMS = ObjectKind[ResourceClaimFact](WireClaim, claim_fact)
RESOURCE_SLICES = ObjectKind[ResourceSliceFact](WireSlice, slice_fact)
DEVICE_CLASSES = ObjectKind[DeviceClassFact](WireClass, class_fact)


def decode_pod_list(data: bytes, keep: PodFieldFilter | None = None) -> ListPage[PodFact]:
    """Decode a PodList. Raise MalformedResponseError if it is not a list."""
    return pods(keep or PodFieldFilter()).page(data)
