"""Quotas, queues and groups of pods as facts: those of Kubernetes, Volcano and Kueue."""

from __future__ import annotations

import msgspec

from monitor.facts.kube import Amounts, ConditionFact, ObjectFact, OwnerRef


class QuotaFact(ObjectFact, frozen=True, kw_only=True):
    """A ResourceQuota: limits and usage of a namespace."""

    name: str
    namespace: str
    hard: Amounts = msgspec.field(default_factory=dict)
    used: Amounts = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()


class QueueFact(ObjectFact, frozen=True, kw_only=True):
    """A queue. `kind` is VolcanoQueue, ClusterQueue or LocalQueue (the last two are Kueue's).

    `state` is open, closed, closing, or None if not reported. `capacity` is the maximum it may use, `guarantee` the
    reserved amount, `deserved` its fair share, `allocated` what its pods hold.
    """

    kind: str
    name: str
    namespace: str | None = None
    state: str | None = None
    message: str | None = None
    parent: str | None = None  # a LocalQueue's ClusterQueue, a ClusterQueue's cohort, a Volcano queue's parent
    weight: float | None = None
    capacity: Amounts = msgspec.field(default_factory=dict)
    guarantee: Amounts = msgspec.field(default_factory=dict)
    deserved: Amounts = msgspec.field(default_factory=dict)
    allocated: Amounts = msgspec.field(default_factory=dict)
    pending: int | None = None
    running: int | None = None


class PodGroupFact(ObjectFact, frozen=True, kw_only=True):
    """A Volcano PodGroup: gang-scheduled pods."""

    name: str
    namespace: str
    created_at: float | None = None
    owner: OwnerRef | None = None
    queue: str | None = None
    phase: str | None = None
    min_member: int | None = None
    min_resources: Amounts = msgspec.field(default_factory=dict)
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    priority_class: str | None = None
    conditions: tuple[ConditionFact, ...] = ()


class WorkloadFact(ObjectFact, frozen=True, kw_only=True):
    """A Kueue Workload, the unit of admission. `min_member` is the number of its pods."""

    name: str
    namespace: str
    created_at: float | None = None
    owner: OwnerRef | None = None
    queue: str | None = None  # the LocalQueue
    cluster_queue: str | None = None  # once it has reserved quota
    phase: str | None = None  # pending, reserved, admitted, evicted or finished
    min_member: int | None = None
    requests: Amounts = msgspec.field(default_factory=dict)
    priority: int | None = None
    active: bool | None = None
    conditions: tuple[ConditionFact, ...] = ()
