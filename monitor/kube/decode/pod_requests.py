"""Requests of a pod as they count on its node.

A sidecar counts for the life of the pod, an init container until it ends. While a resize of a running pod is pending,
what the kubelet has allocated counts, not what the spec desires.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from monitor.facts.kube import Amounts
from monitor.kube.decode.pod_wire import WireContainer, WireContainerStatus, WireResources, WireSpec, WireStatus
from monitor.kube.decode.values import MAX_CACHED_BYTES, RawAmounts, amounts, cached_if_small

EMPTY = (b"", b"null", b"{}", b"[]")
_RESIZE_PENDING, _RESIZING = "PodResizePending", "PodResizeInProgress"
_resources = msgspec.json.Decoder(WireResources)
_amounts = msgspec.json.Decoder(RawAmounts)


def pod_requests(spec: WireSpec, status: WireStatus) -> Amounts:
    """Requests of a pod. Raise MsgspecError if malformed."""
    whole, overhead = bytes(spec.resources), bytes(spec.overhead)
    resizes = {condition.type for condition in status.conditions or () if condition.status == "True"}
    if _RESIZE_PENDING in resizes or _RESIZING in resizes:
        return _combined(_resized(spec, status, pending=_RESIZE_PENDING in resizes), whole, overhead)
    ends = [(bytes(c.resources), _ends(c)) for c in spec.init_containers or ()]
    stay = [(bytes(c.resources), False) for c in spec.containers or ()]
    parts = (*ends, *stay)
    size = sum([len(raw) for raw, _ in parts]) + len(whole) + len(overhead)
    requests: Amounts = (_of_spec if size <= MAX_CACHED_BYTES else _of_spec.__wrapped__)(parts, whole, overhead)
    return requests


@cached_if_small(4096)
def resources(raw: bytes) -> tuple[Amounts, Amounts]:
    """Requests and limits of `resources`. A limit without a request is also the request."""
    if raw in EMPTY:
        return {}, {}
    decoded = _resources.decode(raw)
    limits = amounts(decoded.limits)
    return limits | amounts(decoded.requests), limits


@lru_cache(maxsize=16384)
def _of_spec(containers: tuple[tuple[bytes, bool], ...], raw_whole: bytes, raw_overhead: bytes) -> Amounts:
    """Requests from each container's `resources` and whether it ends before the next."""
    return _combined(((resources(raw)[0], ends) for raw, ends in containers), raw_whole, raw_overhead)


def _combined(containers: Iterable[tuple[Amounts, bool]], raw_whole: bytes, raw_overhead: bytes) -> Amounts:
    running: Amounts = {}
    peak: Amounts = {}
    for requests, ends in containers:
        if ends:
            peak = _largest(peak, _sum(running, requests))
        else:
            running = _sum(running, requests)
    whole = _largest(running, peak) | resources(raw_whole)[0]
    return _sum(whole, amounts(_amounts.decode(raw_overhead))) if raw_overhead else whole


def _resized(spec: WireSpec, status: WireStatus, *, pending: bool) -> Iterable[tuple[Amounts, bool]]:
    """Requests of each container of a pod that is being resized, and whether it ends before the next.

    A pending resize, deferred or infeasible, holds nothing yet. One in progress holds the larger of both.
    """
    statuses = {
        part.name: part for part in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    }
    ends = [(container, _ends(container)) for container in spec.init_containers or ()]
    for container, is_init in (*ends, *((container, False) for container in spec.containers or ())):
        desired = resources(bytes(container.resources))[0]
        held = _held(statuses.get(container.name))
        yield (desired | held if pending else _largest(desired, held)), is_init


def _held(status: WireContainerStatus | None) -> Amounts:
    """Requests that the kubelet has allocated to a container or applied to it, whichever is larger."""
    if status is None:
        return {}
    raw = bytes(status.allocated_resources)
    allocated = amounts(_amounts.decode(raw)) if raw not in EMPTY else {}
    return _largest(allocated, resources(bytes(status.resources))[0])


def _ends(container: WireContainer) -> bool:
    return container.restart_policy != "Always"


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in one | other}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in one | other}
