"""Decoding of nodes, events, quotas, and objects reduced to their metadata."""

from __future__ import annotations

from sys import intern

import msgspec

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.facts.base import BoundedText
from monitor.facts.gpu_sharing import MAX_REGISTER_CHARS, NODE_ANNOTATIONS
from monitor.facts.kube import KUEUE_QUEUE, EventFact, JobFact, NamespaceFact, NodeFact, OwnerFact, TaintFact
from monitor.facts.queues import QuotaFact
from monitor.kube.decode.values import (
    RawAmounts,
    Wire,
    WireCondition,
    WireMeta,
    amounts,
    conditions,
    interned,
    owner_of,
    parse_time,
    shared_strings,
    truncated,
)

NAMESPACE_OWNER = "owner"  # annotation of Kubeflow profiles


class WireTaint(Wire):
    """One of `spec.taints`."""

    key: BoundedText = ""
    effect: BoundedText = ""
    value: BoundedText | None = None
    time_added: BoundedText | None = None


class WireNodeSpec(Wire):
    """`spec`."""

    unschedulable: bool | None = None
    taints: list[WireTaint] | None = None


class WireAddress(Wire):
    """One of `status.addresses`."""

    type: BoundedText | None = None
    address: BoundedText | None = None


class WireNodeInfo(Wire):
    """`status.nodeInfo`."""

    kubelet_version: BoundedText | None = None
    container_runtime_version: BoundedText | None = None


class WireNodeStatus(Wire):
    """`status`."""

    capacity: RawAmounts = None
    allocatable: RawAmounts = None
    conditions: list[WireCondition] | None = None
    addresses: list[WireAddress] | None = None
    node_info: WireNodeInfo | None = None


class WireNode(Wire):
    """A node."""

    metadata: WireMeta
    spec: WireNodeSpec | None = None
    status: WireNodeStatus | None = None


_NO_SPEC, _NO_STATUS, _NO_INFO = WireNodeSpec(), WireNodeStatus(), WireNodeInfo()


def node_fact(raw: WireNode) -> NodeFact:
    """Node as a fact."""
    meta, spec, status = raw.metadata, raw.spec or _NO_SPEC, raw.status or _NO_STATUS
    info = status.node_info or _NO_INFO
    states = conditions(status.conditions)
    ready = next((state for state in states if state.type == "Ready"), None)
    return NodeFact(
        uid=meta.uid,
        name=intern(meta.name),
        resource_version=meta.resource_version,
        created_at=parse_time(meta.creation_timestamp),
        deletion_at=parse_time(meta.deletion_timestamp),
        ready=ready.status if ready else None,
        ready_since=ready.since if ready else None,
        ready_reason=ready.reason if ready else None,
        conditions=states,
        unschedulable=bool(spec.unschedulable),
        taints=tuple(_taint(taint) for taint in spec.taints or ()),
        labels=shared_strings(meta.labels),
        annotations=_annotations(meta.annotations),
        capacity=amounts(status.capacity),
        allocatable=amounts(status.allocatable),
        internal_ip=next((address.address for address in status.addresses or () if address.type == "InternalIP"), None),
        kubelet_version=interned(info.kubelet_version),
        runtime_version=interned(info.container_runtime_version),
    )


def _annotations(raw: dict[str, str] | None) -> dict[str, str]:
    """Annotations that describe shared GPUs. One that is too long is kept as empty: its content is unknown."""
    known = ((name, raw[name]) for name in NODE_ANNOTATIONS if name in raw) if raw else ()
    return {name: text if len(text) <= MAX_REGISTER_CHARS else "" for name, text in known}


def _taint(raw: WireTaint) -> TaintFact:
    return TaintFact(key=raw.key, effect=raw.effect, value=raw.value, since=parse_time(raw.time_added))


class WireInvolved(Wire):
    """`involvedObject`."""

    kind: BoundedText = ""
    name: BoundedText = ""
    namespace: BoundedText | None = None
    uid: BoundedText | None = None
    field_path: BoundedText | None = None


class WireEventSource(Wire):
    """`source`."""

    component: BoundedText | None = None
    host: BoundedText | None = None


class WireSeries(Wire):
    """`series`: the count of the newer events API."""

    count: int | None = None
    last_observed_time: BoundedText | None = None


class WireEvent(Wire):
    """An event of the core API."""

    metadata: WireMeta
    involved_object: WireInvolved | None = None
    reason: BoundedText | None = None
    type: BoundedText | None = None
    message: str | None = None
    count: int | None = None
    first_timestamp: BoundedText | None = None
    last_timestamp: BoundedText | None = None
    event_time: BoundedText | None = None
    series: WireSeries | None = None
    source: WireEventSource | None = None
    reporting_component: BoundedText | None = None
    reporting_instance: BoundedText | None = None


_NO_OBJECT, _NO_SOURCE, _NO_SERIES = WireInvolved(), WireEventSource(), WireSeries()


def event_fact(raw: WireEvent) -> EventFact:
    """Event of the old or new events API as a fact."""
    meta, involved = raw.metadata, raw.involved_object or _NO_OBJECT
    source, series = raw.source or _NO_SOURCE, raw.series or _NO_SERIES
    first = parse_time(raw.first_timestamp) or parse_time(raw.event_time) or parse_time(meta.creation_timestamp)
    return EventFact(
        uid=meta.uid,
        kind=intern(involved.kind),
        name=involved.name,
        namespace=interned(involved.namespace or meta.namespace),
        involved_uid=involved.uid or None,
        container=_container(involved.field_path),
        resource_version=meta.resource_version,
        reason=interned(raw.reason),
        type=interned(raw.type),
        message=truncated(raw.message),
        count=series.count or raw.count or 1,
        first_at=first,
        last_at=parse_time(series.last_observed_time) or parse_time(raw.last_timestamp) or first,
        component=interned(source.component or raw.reporting_component),
        host=interned(source.host or raw.reporting_instance),
    )


def _container(field_path: str | None) -> str | None:
    """`main` of `spec.containers{main}`."""
    if not field_path:
        return None
    return interned(field_path.partition("{")[2].rstrip("}"))


class WireQuotaSpec(Wire):
    """`spec`."""

    hard: RawAmounts = None
    scopes: list[BoundedText] | None = None
    scope_selector: msgspec.Raw = msgspec.Raw()


class WireQuotaStatus(Wire):
    """`status`."""

    hard: RawAmounts = None
    used: RawAmounts = None


class WireQuota(Wire):
    """A resource quota."""

    metadata: WireMeta
    spec: WireQuotaSpec | None = None
    status: WireQuotaStatus | None = None


def quota_fact(raw: WireQuota) -> QuotaFact:
    """ResourceQuota as a fact. Enforced limits (status) take precedence over specified ones."""
    meta, spec, status = raw.metadata, raw.spec or WireQuotaSpec(), raw.status or WireQuotaStatus()
    scopes = tuple(spec.scopes or ())
    return QuotaFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        hard=amounts(status.hard or spec.hard),
        used=amounts(status.used),
        scopes=(*scopes, "selector") if bytes(spec.scope_selector) not in (b"", b"null") else scopes,
    )


class WireObject(Wire):
    """Any object, reduced to its metadata."""

    metadata: WireMeta


class WireJobStatus(Wire):
    """`status` of a Job."""

    conditions: list[WireCondition] | None = None


class WireJob(WireObject):
    """A Job, reduced to its metadata and how it ended."""

    status: WireJobStatus | None = None


def job_fact(raw: WireJob) -> JobFact:
    """Job as a fact with its owner, its queue and its end."""
    owner = owner_fact(raw)
    status = raw.status or WireJobStatus()
    true = {entry.type: entry.reason for entry in status.conditions or () if entry.status == "True"}
    return JobFact(
        uid=owner.uid,
        name=owner.name,
        namespace=owner.namespace,
        resource_version=owner.resource_version,
        owner=owner.owner,
        queue=owner.queue,
        completed="Complete" in true,
        failed_by=interned(true["Failed"] or "Failed") if "Failed" in true else None,
    )


def owner_fact(raw: WireObject) -> OwnerFact:
    """ReplicaSet or Job as a fact with its owner and its queue."""
    meta = raw.metadata
    return OwnerFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        owner=owner_of(meta.owner_references),
        queue=(meta.labels or {}).get(KUEUE_QUEUE) or None,
    )


def namespace_fact(raw: WireObject) -> NamespaceFact:
    """Namespace as a fact with its user."""
    meta = raw.metadata
    owner = (meta.annotations or {}).get(NAMESPACE_OWNER)
    return NamespaceFact(
        uid=meta.uid,
        name=intern(meta.name),
        resource_version=meta.resource_version,
        owner=shorten_name(owner, MAX_TEXT_CHARS) if owner else None,
    )
