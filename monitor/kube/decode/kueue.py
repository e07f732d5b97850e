"""Decoding of Kueue queues and Workloads, limited to fields common to all API versions."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern

from monitor.facts.base import BoundedText
from monitor.facts.kube import Amounts, ConditionFact
from monitor.facts.queues import QueueFact, WorkloadFact
from monitor.kube.decode.pod_requests import resources
from monitor.kube.decode.pod_wire import WireContainer
from monitor.kube.decode.values import (
    Wire,
    WireCondition,
    WireMeta,
    conditions,
    interned,
    owner_of,
    parse_quantity,
    parse_time,
)


class WireFlavorResource(Wire):
    """A resource of a flavor, as quota (spec) or usage (status)."""

    name: BoundedText = ""
    nominal_quota: BoundedText | int | None = None
    borrowing_limit: BoundedText | int | None = None
    total: BoundedText | int | None = None


class WireFlavor(Wire):
    """A flavor and its resources."""

    resources: list[WireFlavorResource] | None = None


class WireResourceGroup(Wire):
    """One of `spec.resourceGroups`."""

    flavors: list[WireFlavor] | None = None


class WireKueueSpec(Wire):
    """`spec` of a ClusterQueue or LocalQueue."""

    cluster_queue: BoundedText | None = None
    cohort: BoundedText | None = None
    cohort_name: BoundedText | None = None  # since v1beta2
    stop_policy: BoundedText | None = None
    resource_groups: list[WireResourceGroup] | None = None


class WireKueueStatus(Wire):
    """`status` of a ClusterQueue or LocalQueue."""

    pending_workloads: int | None = None
    admitted_workloads: int | None = None
    conditions: list[WireCondition] | None = None
    flavors_reservation: list[WireFlavor] | None = None
    flavors_usage: list[WireFlavor] | None = None


class WireKueueQueue(Wire):
    """A ClusterQueue or LocalQueue."""

    metadata: WireMeta
    spec: WireKueueSpec | None = None
    status: WireKueueStatus | None = None


def kueue_queue_fact(raw: WireKueueQueue) -> QueueFact:
    """ClusterQueue or, if namespaced, LocalQueue as a fact."""
    meta, spec, status = raw.metadata, raw.spec or WireKueueSpec(), raw.status or WireKueueStatus()
    cohort = spec.cohort or spec.cohort_name or None
    flavors = [flavor for group in spec.resource_groups or () for flavor in group.flavors or ()]
    state, message = _kueue_state(spec.stop_policy, conditions(status.conditions))
    return QueueFact(
        uid=meta.uid,
        kind="LocalQueue" if meta.namespace else "ClusterQueue",
        name=intern(meta.name),
        namespace=interned(meta.namespace),
        resource_version=meta.resource_version,
        state=state,
        message=message,
        parent=spec.cluster_queue or cohort,
        capacity=_kueue_capacity(flavors, borrows=cohort is not None),
        guarantee=_total((item.name, parse_quantity(item.nominal_quota)) for item in _items(flavors)),
        allocated=_total(
            (item.name, parse_quantity(item.total))
            for item in _items(status.flavors_reservation or status.flavors_usage)
        ),
        pending=status.pending_workloads,
        running=status.admitted_workloads,
    )


def _kueue_state(stop_policy: str | None, states: tuple[ConditionFact, ...]) -> tuple[str | None, str | None]:
    if stop_policy in ("Hold", "HoldAndDrain"):
        return "closed", f"stopPolicy {stop_policy}"
    active = next((state for state in states if state.type == "Active"), None)
    if active is None or active.status is None:
        return None, None
    return ("open", None) if active.status else ("closed", active.message or active.reason)


def _kueue_capacity(flavors: list[WireFlavor], *, borrows: bool) -> Amounts:
    """Maximum usable amounts, without resources that may be borrowed without limit."""
    boundless = {item.name for item in _items(flavors) if borrows and item.borrowing_limit is None}
    return _total(
        (item.name, (parse_quantity(item.nominal_quota) or 0.0) + (parse_quantity(item.borrowing_limit) or 0.0))
        for item in _items(flavors)
        if item.name not in boundless
    )


def _items(flavors: list[WireFlavor] | None) -> Iterable[WireFlavorResource]:
    for flavor in flavors or ():
        yield from flavor.resources or ()


def _total(parts: Iterable[tuple[str, float | None]]) -> Amounts:
    total: Amounts = {}
    for name, amount in parts:
        if amount is not None:
            total[name] = total.get(name, 0.0) + amount
    return total


class WireTemplateSpec(Wire):
    """`template.spec` of a pod set."""

    containers: list[WireContainer] | None = None


class WireTemplate(Wire):
    """`template` of a pod set."""

    spec: WireTemplateSpec | None = None


class WirePodSet(Wire):
    """One of `spec.podSets`."""

    count: int | None = None
    template: WireTemplate | None = None


class WireWorkloadSpec(Wire):
    """`spec` of a Workload."""

    queue_name: BoundedText | None = None
    priority: int | None = None
    active: bool | None = None
    pod_sets: list[WirePodSet] | None = None


class WireAdmission(Wire):
    """`status.admission`."""

    cluster_queue: BoundedText | None = None


class WireWorkloadStatus(Wire):
    """`status` of a Workload."""

    admission: WireAdmission | None = None
    conditions: list[WireCondition] | None = None


class WireWorkload(Wire):
    """A Kueue Workload."""

    metadata: WireMeta
    spec: WireWorkloadSpec | None = None
    status: WireWorkloadStatus | None = None


_PHASES = (("Finished", "finished"), ("Admitted", "admitted"), ("QuotaReserved", "reserved"), ("Evicted", "evicted"))


def workload_fact(raw: WireWorkload) -> WorkloadFact:
    """Workload as a fact."""
    meta, spec, status = raw.metadata, raw.spec or WireWorkloadSpec(), raw.status or WireWorkloadStatus()
    states = conditions(status.conditions)
    true = {state.type for state in states if state.status}
    return WorkloadFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        created_at=parse_time(meta.creation_timestamp),
        owner=owner_of(meta.owner_references),
        queue=interned(spec.queue_name),
        cluster_queue=interned(status.admission.cluster_queue) if status.admission else None,
        phase=next((phase for condition, phase in _PHASES if condition in true), "pending"),
        min_member=sum(_count(pod_set) for pod_set in spec.pod_sets) if spec.pod_sets else None,
        requests=_total(part for pod_set in spec.pod_sets or () for part in _pod_set_requests(pod_set)),
        priority=spec.priority,
        active=spec.active,
        conditions=states,
    )


def _count(raw: WirePodSet) -> int:
    return 1 if raw.count is None else raw.count


def _pod_set_requests(raw: WirePodSet) -> Iterable[tuple[str, float]]:
    spec = raw.template.spec if raw.template else None
    for container in (spec.containers if spec else None) or ():
        for name, amount in resources(bytes(container.resources))[0].items():
            yield name, amount * _count(raw)
