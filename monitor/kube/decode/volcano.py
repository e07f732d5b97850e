"""Decoding of Volcano queues and PodGroups."""

from __future__ import annotations

from sys import intern

from monitor.facts.base import BoundedText
from monitor.facts.queues import PodGroupFact, QueueFact
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
)


class WireGuarantee(Wire):
    """`spec.guarantee` of a Volcano queue."""

    resource: RawAmounts = None


class WireVolcanoQueueSpec(Wire):
    """`spec` of a Volcano queue."""

    weight: float | None = None
    parent: BoundedText | None = None
    capability: RawAmounts = None
    deserved: RawAmounts = None
    guarantee: WireGuarantee | None = None


class WireVolcanoQueueStatus(Wire):
    """`status` of a Volcano queue."""

    state: BoundedText | None = None
    pending: int | None = None
    running: int | None = None
    allocated: RawAmounts = None


class WireVolcanoQueue(Wire):
    """A Volcano queue."""

    metadata: WireMeta
    spec: WireVolcanoQueueSpec | None = None
    status: WireVolcanoQueueStatus | None = None


_STATES = {"Open": "open", "Closed": "closed", "Closing": "closing"}


def volcano_queue_fact(raw: WireVolcanoQueue) -> QueueFact:
    """Volcano queue as a fact."""
    meta, spec, status = raw.metadata, raw.spec or WireVolcanoQueueSpec(), raw.status or WireVolcanoQueueStatus()
    return QueueFact(
        uid=meta.uid,
        kind="VolcanoQueue",
        name=intern(meta.name),
        resource_version=meta.resource_version,
        state=_STATES.get(status.state or ""),
        parent=spec.parent or None,
        weight=spec.weight,
        capacity=amounts(spec.capability),
        guarantee=amounts(spec.guarantee.resource) if spec.guarantee else {},
        deserved=amounts(spec.deserved),
        allocated=amounts(status.allocated),
        pending=status.pending,
        running=status.running,
    )


class WirePodGroupSpec(Wire):
    """`spec` of a PodGroup."""

    min_member: int | None = None
    queue: BoundedText | None = None
    priority_class_name: BoundedText | None = None
    min_resources: RawAmounts = None


class WirePodGroupStatus(Wire):
    """`status` of a PodGroup."""

    phase: BoundedText | None = None
    conditions: list[WireCondition] | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None


class WirePodGroup(Wire):
    """A Volcano PodGroup."""

    metadata: WireMeta
    spec: WirePodGroupSpec | None = None
    status: WirePodGroupStatus | None = None


def pod_group_fact(raw: WirePodGroup) -> PodGroupFact:
    """PodGroup as a fact."""
    meta, spec, status = raw.metadata, raw.spec or WirePodGroupSpec(), raw.status or WirePodGroupStatus()
    return PodGroupFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        created_at=parse_time(meta.creation_timestamp),
        owner=owner_of(meta.owner_references),
        queue=interned(spec.queue),
        phase=interned(status.phase),
        min_member=spec.min_member,
        min_resources=amounts(spec.min_resources),
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        priority_class=interned(spec.priority_class_name),
        conditions=conditions(status.conditions),
    )
