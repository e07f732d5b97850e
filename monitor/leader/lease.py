"""What a Lease contains, and which step to take about it.

Clocks of different replicas are never compared. A replica that waits for the Lease measures by its own clock how long
the Lease has been unchanged. The holder measures from the start of its last successful renewal, and stops acting well
before others may take over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from monitor.kube.decode.values import Wire

LEASE_TYPE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
HOLD_RATIO = 2 / 3  # of the duration: allows clock rates that differ by half, and time for a request to arrive
RENEW_RATIO = 1 / 5  # of the duration: several renewals may fail before the Lease is lost


class _WireLeaseMeta(Wire):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _WireLeaseSpec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class WireLease(Wire):
    """The fields of a Kubernetes Lease that are used here."""

    metadata: _WireLeaseMeta | None = None
    spec: _WireLeaseSpec | None = None


@dataclass(frozen=True)
class Lease:
    """A Lease that exists. `version` changes with every write; `holder` is None after a release."""

    version: str
    holder: str | None
    seconds: int | None
    transitions: int
    annotations: Mapping[str, str]
    body: Mapping[str, Any]  # the whole object, so that a write keeps fields set by others


@dataclass(frozen=True)
class ObservedLease:
    """The Lease as last read (None: it does not exist), and since when, by our clock, it is unchanged."""

    lease: Lease | None
    since: float


class LeaseStep(StrEnum):
    """Next step of a replica."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True)
class LeaseDecision:
    """Next step; for WAIT, at most `wait` seconds."""

    step: LeaseStep
    wait: float = 0.0


@dataclass(frozen=True)
class LeaseClaim:
    """Identity of a replica, and the duration in seconds for which it asks."""

    identity: str
    duration: float

    @property
    def hold_seconds(self) -> float:
        """Seconds after the start of a renewal during which this replica may act."""
        return self.duration * HOLD_RATIO

    @property
    def renew_seconds(self) -> float:
        """Seconds between two renewals, or between two reads while waiting."""
        return self.duration * RENEW_RATIO


def observe(before: ObservedLease | None, lease: Lease | None, now: float) -> ObservedLease:
    """Observation after a read: `since` is kept while the version is the same."""
    same = before is not None and (before.lease and before.lease.version) == (lease and lease.version)
    return before if before is not None and same else ObservedLease(lease, now)


def decide_step(observed: ObservedLease, claim: LeaseClaim, now: float) -> LeaseDecision:
    """Next step of a replica, by its own clock."""
    lease = observed.lease
    if lease is None:
        return LeaseDecision(LeaseStep.CREATE)
    if lease.holder == claim.identity:
        return LeaseDecision(LeaseStep.RENEW)
    left = observed.since + max(claim.duration, lease.seconds or 0) - now
    if lease.holder is None or left <= 0:
        return LeaseDecision(LeaseStep.TAKE)
    return LeaseDecision(LeaseStep.WAIT, min(left, claim.renew_seconds))


def lease_of(body: Mapping[str, Any], decoded: WireLease) -> Lease:
    """Lease from its JSON object and the fields decoded from it."""
    meta, spec = decoded.metadata or _WireLeaseMeta(), decoded.spec or _WireLeaseSpec()
    return Lease(
        version=meta.resource_version,
        holder=spec.holder_identity or None,
        seconds=spec.lease_duration_seconds,
        transitions=spec.lease_transitions or 0,
        annotations=meta.annotations or {},
        body=body,
    )


def held_body(
    before: Lease | None, name: str, claim: LeaseClaim, wall: float, annotations: Mapping[str, str]
) -> dict[str, Any]:
    """Body of the write that acquires or renews a Lease; fields set by others are kept."""
    body: dict[str, Any] = dict(before.body) if before is not None else dict(LEASE_TYPE)
    stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # informational: no replica compares it
    spec = dict(body.get("spec") or {}) | {
        "holderIdentity": claim.identity,
        "leaseDurationSeconds": math.ceil(claim.duration),
        "renewTime": stamp,
    }
    if before is None or before.holder != claim.identity:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = before.transitions + 1 if before is not None else 0
    return body | {"metadata": _metadata(body, name, annotations), "spec": spec}


def released_body(lease: Lease) -> dict[str, Any]:
    """Body of the write that releases a Lease, so that another replica can take it at once."""
    spec = {name: value for name, value in lease.body.get("spec", {}).items() if name != "holderIdentity"}
    return {**lease.body, "spec": spec}


def _metadata(body: Mapping[str, Any], name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = dict(body.get("metadata") or {"name": name})
    return metadata | ({"annotations": dict(annotations)} if annotations else {})
