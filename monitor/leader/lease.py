"""Who of several replicas acts: what a Lease says, and what to do about it. Pure.

Nobody's clock is compared with another's. Who waits for a lease counts, by its own clock, for how long it has seen it
unchanged; who holds it counts from the moment at which it began to ask for the last renewal that succeeded, and stops
well before others may begin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from monitor.kube.decode.values import Wire

KIND = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
HOLDS_FOR = 2 / 3  # of the duration: clocks may differ in speed by half, and a request has its time to arrive
LOOK_EVERY = 1 / 5  # of the duration: several renewals may fail before the lease is lost


class _WireMeta(Wire):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _WireSpec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class WireLease(Wire):
    """A Lease as the API server has it; of it, what is needed here."""

    metadata: _WireMeta | None = None
    spec: _WireSpec | None = None


@dataclass(frozen=True)
class Lease:
    """A Lease that exists. `version` changes with every write; `holder` is None if it was given back."""

    version: str
    holder: str | None
    seconds: int | None
    transitions: int
    annotations: Mapping[str, str]
    body: Mapping[str, Any]  # all of it: what others wrote into it is kept


@dataclass(frozen=True)
class Seen:
    """What was last seen: a lease or that there is none, and since when, by our own clock, it has been just that."""

    lease: Lease | None
    since: float


class Step(StrEnum):
    """What to do about a lease."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


@dataclass(frozen=True)
class Decision:
    """What to do now; and if it is to wait, for how many seconds at most."""

    step: Step
    wait: float = 0.0


@dataclass(frozen=True)
class Claim:
    """Who wants a lease, and for how long each time."""

    identity: str
    duration: float

    @property
    def holds_for(self) -> float:
        """For how long after a renewal was begun it is ours."""
        return self.duration * HOLDS_FOR

    @property
    def look_every(self) -> float:
        """Seconds between two renewals, and between two looks."""
        return self.duration * LOOK_EVERY


def look(before: Seen | None, found: Lease | None, now: float) -> Seen:
    """Given what was seen before and what is there now, return what is seen: one that was written to is new."""
    same = before is not None and (before.lease and before.lease.version) == (found and found.version)
    return before if before is not None and same else Seen(found, now)


def decide(seen: Seen, claim: Claim, now: float) -> Decision:
    """Given what is seen, who we are and our own clock, return what to do about it."""
    lease = seen.lease
    if lease is None:
        return Decision(Step.CREATE)
    if lease.holder == claim.identity:
        return Decision(Step.RENEW)
    left = seen.since + max(claim.duration, lease.seconds or 0) - now
    if lease.holder is None or left <= 0:
        return Decision(Step.TAKE)
    return Decision(Step.WAIT, min(left, claim.look_every))


def lease_of(body: Mapping[str, Any], read: WireLease) -> Lease:
    """Given a Lease as JSON and what was read of it, return it."""
    meta, spec = read.metadata or _WireMeta(), read.spec or _WireSpec()
    return Lease(
        version=meta.resource_version,
        holder=spec.holder_identity or None,
        seconds=spec.lease_duration_seconds,
        transitions=spec.lease_transitions or 0,
        annotations=meta.annotations or {},
        body=body,
    )


def held(before: Lease | None, name: str, claim: Claim, wall: float, annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the Lease to write so that it is ours: what is there, with our name and these annotations."""
    body: dict[str, Any] = dict(before.body) if before is not None else dict(KIND)
    stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # for people; nobody computes with it
    spec = dict(body.get("spec") or {}) | {
        "holderIdentity": claim.identity,
        "leaseDurationSeconds": math.ceil(claim.duration),
        "renewTime": stamp,
    }
    if before is None or before.holder != claim.identity:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = before.transitions + 1 if before is not None else 0
    return body | {"metadata": _meta(body, name, annotations), "spec": spec}


def given_back(lease: Lease) -> dict[str, Any]:
    """Given a lease that is ours, return the Lease to write so that it is anybody's at once."""
    spec = {name: value for name, value in lease.body.get("spec", {}).items() if name != "holderIdentity"}
    return {**lease.body, "spec": spec}


def _meta(body: Mapping[str, Any], name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    meta = dict(body.get("metadata") or {"name": name})
    return meta | ({"annotations": dict(annotations)} if annotations else {})
