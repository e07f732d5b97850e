"""State of one GPU, with the evidence: everything known about the GPU in, a state out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from monitor.cluster.holders import GpuClaim, PodFate
from monitor.facts.cluster import GpuState
from monitor.facts.gpu import GpuFact, XidEvent
from monitor.facts.nvidia.actions import ErrorAction
from monitor.facts.nvidia.xids import codes_of
from monitor.facts.text import Evidence

Values = dict[str, str | int | float]
StateDecision = tuple[GpuState, tuple[Evidence, ...]]


@dataclass(frozen=True)
class StateLimits:
    """Thresholds in seconds, and in bytes of memory that a GPU uses without a process."""

    stale_after: float = 60.0
    wedged_after: float = 30.0
    terminating_grace: float = 60.0
    settle: float = 20.0
    idle_after: float = 1800.0
    xid_hold: float = 900.0
    ghost_bytes: int = 1024**3
    faulty_xids: frozenset[int] = frozenset(codes_of(ErrorAction.RESET_GPU, ErrorAction.REBOOT_NODE))


class GpuInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything known about one GPU, and the limits. `blind` says why nothing is known, if so.

    `held` is the evidence that pods hold it, see `holding_evidence`.
    """

    gpu: GpuFact
    now: float
    limits: StateLimits
    claims: Sequence[GpuClaim] = ()
    held: Sequence[Evidence] = ()
    xids: Sequence[XidEvent] = ()
    idle_since: float | None = None
    processes_known: bool = True
    blind: Evidence | None = None
    skew: float = 0.0  # our clock minus the node's


def decide_state(known: GpuInput) -> StateDecision:
    """State of a GPU and its evidence: the first of QUESTIONS with an answer decides."""
    if known.blind is not None:
        return GpuState.UNKNOWN, (known.blind,)
    for state, question in QUESTIONS:
        if evidence := question(known):
            return state, tuple(evidence)
    return GpuState.FREE, ()


def _faulty(known: GpuInput) -> list[Evidence]:
    gpu, evidence = known.gpu, []
    if gpu.lost:
        evidence.append(Evidence(key="gpu-lost", values={"error": gpu.error or ""}))
    if known.xids:
        evidence += _xids(known)
    ecc = gpu.ecc
    uncorrected = ((ecc.volatile_uncorrected_sram or 0) + (ecc.volatile_uncorrected_dram or 0)) if ecc else 0
    if uncorrected:
        evidence.append(Evidence(key="ecc-uncorrected", values={"errors": uncorrected}))
    if gpu.row_remaps and gpu.row_remaps.failed:
        evidence.append(Evidence(key="row-remap-failed"))
    if gpu.row_remaps and gpu.row_remaps.pending:
        evidence.append(Evidence(key="row-remap-pending"))
    if gpu.recovery_action not in (None, "none"):
        evidence.append(Evidence(key="recovery-action", values={"action": gpu.recovery_action or ""}))
    return evidence


def _xids(known: GpuInput) -> list[Evidence]:
    recent = {
        xid.code: xid
        for xid in known.xids
        if xid.code in known.limits.faulty_xids and known.now - xid.at - known.skew < known.limits.xid_hold
    }
    return [
        Evidence(key="xid", values={"code": code, "at": xid.at, "message": xid.message or ""})
        for code, xid in sorted(recent.items())
    ]


def _wedged(known: GpuInput) -> list[Evidence]:
    """A process may be in D briefly, or may end between two readings, so the state has to persist."""
    evidence = []
    for claim in known.claims:
        process = claim.process
        if process is None or process.state not in ("D", "Z", "gone") or process.state_since is None:
            continue
        if known.now - process.state_since - known.skew >= known.limits.wedged_after:
            values: Values = {"pid": process.pid, "state": process.state, "since": process.state_since}
            evidence.append(Evidence(key="process-state", values=values | {"process": process.name or ""}))
    return evidence


def _zombie(known: GpuInput) -> list[Evidence]:
    return [
        Evidence(key=claim.fate.value, values={"pod": _pod(claim), "pid": claim.process.pid})
        for claim in known.claims
        if claim.process is not None and claim.is_zombie
    ]


def _orphan(known: GpuInput) -> list[Evidence]:
    """Only compute processes count: a display server draws on a GPU. A process that has just ended does not count."""
    evidence = []
    for claim in known.claims:
        process = claim.process
        if process is None or claim.fate is not PodFate.NO_POD:
            continue
        if process.kind != "graphics" and process.state != "gone":
            key = "other-container" if process.container_id else "host-process"
            values: Values = {
                "pid": process.pid,
                "process": process.name or "",
                "container": process.container_id or "",
            }
            evidence.append(Evidence(key=key, values=values if process.uid is None else values | {"uid": process.uid}))
    return evidence


def _ghost(known: GpuInput) -> list[Evidence]:
    gpu, evidence = known.gpu, []
    if not known.processes_known or any(claim.process is not None for claim in known.claims):
        return []
    if (gpu.memory_used_bytes or 0) > known.limits.ghost_bytes:
        evidence.append(Evidence(key="memory-without-process", values={"bytes": gpu.memory_used_bytes or 0}))
    if (gpu.utilization_ratio or 0) > 0:
        evidence.append(Evidence(key="utilization-without-process", values={"ratio": gpu.utilization_ratio or 0}))
    return evidence


def _idle(known: GpuInput) -> list[Evidence]:
    live = [claim for claim in known.claims if claim.fate is PodFate.LIVE]
    if not live or known.idle_since is None or known.now - known.idle_since < known.limits.idle_after:
        return []
    return [Evidence(key="idle", values={"pod": _pod(live[0]), "since": known.idle_since})]


def _busy(known: GpuInput) -> Sequence[Evidence]:
    return known.held


def holding_evidence(claims: Sequence[GpuClaim]) -> tuple[Evidence, ...]:
    """Evidence that pods hold a GPU, which depends on the claims alone.

    A claim that may be outdated by seconds still counts: reporting a GPU as free too early gives it away twice.
    """
    holding = [claim for claim in claims if claim.fate in (PodFate.LIVE, PodFate.UNSURE)]
    return tuple([Evidence(key="held", values={"pod": _pod(claim), "by": claim.by}) for claim in holding])


def _phantom(known: GpuInput) -> list[Evidence]:
    """The kubelet keeps the devices of ended pods allocated until the next allocation.

    For a pod that has ended and still exists this is normal, and the GPU is free. For a pod that no longer exists, no
    event will ever report the end.
    """
    return [
        Evidence(key="stale-allocation", values={"pod": _pod(claim), "by": claim.by})
        for claim in known.claims
        if claim.process is None and claim.fate is PodFate.DELETED
    ]


QUESTIONS: tuple[tuple[GpuState, Callable[[GpuInput], Sequence[Evidence]]], ...] = (
    (GpuState.FAULTY, _faulty),
    (GpuState.WEDGED, _wedged),
    (GpuState.ZOMBIE, _zombie),
    (GpuState.ORPHAN, _orphan),
    (GpuState.GHOST, _ghost),
    (GpuState.IDLE_HELD, _idle),
    (GpuState.BUSY, _busy),
    (GpuState.PHANTOM, _phantom),
)


def _pod(claim: GpuClaim) -> str:
    if claim.pod_name is None:
        return claim.pod_uid or ""
    return f"{claim.namespace}/{claim.pod_name}"
