"""Decoding of ResourceClaims, ResourceSlices and DeviceClasses of `resource.k8s.io`, v1beta1 to v1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from sys import intern

from monitor.base.text import shorten
from monitor.facts.base import BoundedText, Identifier
from monitor.facts.devices import (
    AllocatedDeviceFact,
    ClaimConsumerFact,
    DeviceClassFact,
    DeviceFact,
    DeviceRequestFact,
    ResourceClaimFact,
    ResourceSliceFact,
)
from monitor.facts.kube import ConditionFact
from monitor.kube.decode.pod_wire import WireRequired
from monitor.kube.decode.values import (
    Wire,
    WireCondition,
    WireMeta,
    condition,
    interned,
    parse_quantity,
    parse_time,
)

# Limits of the API: 32 requests and devices per claim, 256 consumers, 128 devices per slice.
MAX_REQUESTS = MAX_ALLOCATED = 64
MAX_CONSUMERS = 256
MAX_DEVICES = 256
MAX_SELECTORS = 4
MAX_SELECTOR_CHARS = 512
MAX_COUNT = 10_000  # devices of a request
_DRIVER = re.compile(r"device\.driver\s*==\s*['\"]([\w.-]{1,253})['\"]")
_TYPE = re.compile(r"\.type\s*==\s*['\"](\w{1,63})['\"]")


class WireCel(Wire):
    """`cel` of a selector."""

    expression: BoundedText = ""


class WireSelector(Wire):
    """One of `selectors`."""

    cel: WireCel | None = None


class WireExactRequest(Wire):
    """`exactly` of a request, or one of `firstAvailable`."""

    device_class_name: Identifier | None = None
    selectors: list[WireSelector] | None = None
    allocation_mode: BoundedText | None = None
    count: int | None = None
    admin_access: bool | None = None


class WireRequest(WireExactRequest):
    """One of `spec.devices.requests`; in v1beta1 it has the fields of `exactly` itself."""

    name: BoundedText = ""
    exactly: WireExactRequest | None = None
    first_available: list[WireExactRequest] | None = None


class WireClaimDevices(Wire):
    """`spec.devices` of a claim."""

    requests: list[WireRequest] | None = None


class WireClaimSpec(Wire):
    """`spec` of a claim."""

    devices: WireClaimDevices | None = None


class WireResult(Wire):
    """One of `status.allocation.devices.results`."""

    driver: Identifier = ""
    pool: Identifier = ""
    device: Identifier = ""
    request: BoundedText | None = None
    admin_access: bool | None = None


class WireResults(Wire):
    """`status.allocation.devices`."""

    results: list[WireResult] | None = None


class WireAllocation(Wire):
    """`status.allocation`."""

    devices: WireResults | None = None
    node_selector: WireRequired | None = None


class WireConsumer(Wire):
    """One of `status.reservedFor`."""

    resource: BoundedText = ""
    name: Identifier = ""
    uid: Identifier = ""


class WireDeviceStatus(Wire):
    """One of `status.devices`."""

    conditions: list[WireCondition] | None = None


class WireClaimStatus(Wire):
    """`status` of a claim."""

    allocation: WireAllocation | None = None
    reserved_for: list[WireConsumer] | None = None
    devices: list[WireDeviceStatus] | None = None


class WireClaim(Wire):
    """A ResourceClaim."""

    metadata: WireMeta
    spec: WireClaimSpec | None = None
    status: WireClaimStatus | None = None


def claim_fact(raw: WireClaim) -> ResourceClaimFact:
    """ResourceClaim as a fact."""
    meta, status = raw.metadata, raw.status or WireClaimStatus()
    asked = raw.spec.devices.requests if raw.spec and raw.spec.devices else None
    allocation = status.allocation
    results = allocation.devices.results if allocation and allocation.devices else None
    return ResourceClaimFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        created_at=parse_time(meta.creation_timestamp),
        deletion_at=parse_time(meta.deletion_timestamp),
        requests=tuple(_request(request) for request in (asked or ())[:MAX_REQUESTS]),
        allocated=allocation is not None,
        devices=tuple(_allocated(result) for result in (results or ())[:MAX_ALLOCATED]),
        node=_only_node(allocation.node_selector) if allocation else None,
        reserved_for=tuple(
            ClaimConsumerFact(name=consumer.name, uid=consumer.uid)
            for consumer in (status.reserved_for or ())[:MAX_CONSUMERS]
            if consumer.resource == "pods"
        ),
        conditions=_troubles(status.devices),
    )


def _request(raw: WireRequest) -> DeviceRequestFact:
    exact = raw.exactly or (raw.first_available[0] if raw.first_available else raw)
    count = min(max(exact.count if exact.count is not None else 1, 0), MAX_COUNT)
    return DeviceRequestFact(
        name=raw.name,
        device_class=interned(exact.device_class_name),
        count=None if exact.allocation_mode == "All" else count,
        admin=bool(exact.admin_access),
        selectors=tuple(
            shorten(expression, MAX_SELECTOR_CHARS) for expression in _expressions(exact.selectors, MAX_SELECTORS)
        ),
    )


def _expressions(selectors: list[WireSelector] | None, limit: int) -> Iterable[str]:
    return (selector.cel.expression for selector in (selectors or ())[:limit] if selector.cel is not None)


def _allocated(raw: WireResult) -> AllocatedDeviceFact:
    return AllocatedDeviceFact(
        driver=intern(raw.driver),
        pool=intern(raw.pool),
        device=intern(raw.device),
        request=raw.request,
        admin=bool(raw.admin_access),
    )


def _only_node(selector: WireRequired | None) -> str | None:
    """The node that a node selector names; None if it admits several or selects by labels."""
    terms = (selector.node_selector_terms if selector else None) or ()
    names = {
        name
        for term in terms
        for field in term.match_fields or ()
        if field.key == "metadata.name" and field.operator == "In"
        for name in field.values or ()
    }
    return intern(next(iter(names))) if len(terms) == 1 and len(names) == 1 else None


def _troubles(devices: list[WireDeviceStatus] | None) -> tuple[ConditionFact, ...]:
    raw = [each for device in (devices or ())[:MAX_ALLOCATED] for each in device.conditions or ()]
    return tuple(condition(each) for each in raw[:MAX_ALLOCATED] if each.status == "False")


class WireAttribute(Wire):
    """One of `attributes`; those of other types are not read."""

    string: BoundedText | None = None


class WireCapacity(Wire):
    """One of `capacity`."""

    value: BoundedText | int | float | None = None


class WireDeviceTaint(Wire):
    """One of `taints`."""

    effect: BoundedText | None = None


class WireBasicDevice(Wire):
    """`basic` of a device in v1beta1."""

    attributes: dict[BoundedText, WireAttribute] | None = None
    capacity: dict[BoundedText, WireCapacity] | None = None
    taints: list[WireDeviceTaint] | None = None


class WireDevice(WireBasicDevice):
    """One of `spec.devices` of a slice."""

    name: Identifier = ""
    basic: WireBasicDevice | None = None


class WirePool(Wire):
    """`spec.pool`."""

    name: Identifier = ""
    generation: int = 0


class WireSliceSpec(Wire):
    """`spec` of a slice."""

    driver: Identifier = ""
    node_name: Identifier | None = None
    pool: WirePool | None = None
    devices: list[WireDevice] | None = None


class WireSlice(Wire):
    """A ResourceSlice."""

    metadata: WireMeta
    spec: WireSliceSpec | None = None


def slice_fact(raw: WireSlice) -> ResourceSliceFact:
    """ResourceSlice as a fact."""
    meta, spec = raw.metadata, raw.spec or WireSliceSpec()
    pool = spec.pool or WirePool()
    return ResourceSliceFact(
        uid=meta.uid,
        name=meta.name,
        resource_version=meta.resource_version,
        driver=intern(spec.driver),
        pool=intern(pool.name),
        generation=pool.generation,
        node=interned(spec.node_name),
        devices=tuple(_device(device) for device in (spec.devices or ())[:MAX_DEVICES]),
    )


def _device(raw: WireDevice) -> DeviceFact:
    basic = raw.basic or raw
    # A name without a domain belongs to the driver, as the same name with the driver's domain does.
    strings = {name.rpartition("/")[2]: value.string for name, value in (basic.attributes or {}).items()}
    capacity = {name.rpartition("/")[2]: value.value for name, value in (basic.capacity or {}).items()}
    return DeviceFact(
        name=intern(raw.name),
        uuid=strings.get("uuid"),
        parent_uuid=strings.get("parentUUID"),
        type=interned(strings.get("type")),
        model=interned(strings.get("productName") or strings.get("model")),
        memory_bytes=parse_quantity(capacity.get("memory")),
        tainted=any(taint.effect in ("NoSchedule", "NoExecute") for taint in basic.taints or ()),
    )


class WireClassSpec(Wire):
    """`spec` of a device class."""

    selectors: list[WireSelector] | None = None
    extended_resource_name: BoundedText | None = None


class WireClass(Wire):
    """A DeviceClass."""

    metadata: WireMeta
    spec: WireClassSpec | None = None


def class_fact(raw: WireClass) -> DeviceClassFact:
    """DeviceClass as a fact."""
    meta, spec = raw.metadata, raw.spec or WireClassSpec()
    cel = " ".join(_expressions(spec.selectors, MAX_REQUESTS))
    return DeviceClassFact(
        uid=meta.uid,
        name=meta.name,
        resource_version=meta.resource_version,
        drivers=tuple(dict.fromkeys(_DRIVER.findall(cel)))[:MAX_SELECTORS],
        types=tuple(dict.fromkeys(_TYPE.findall(cel)))[:MAX_SELECTORS],
        extended_resource=spec.extended_resource_name,
    )
