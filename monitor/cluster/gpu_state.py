"""One state for one card, with the evidence. Pure: everything known about the card in, a state out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from monitor.cluster.holders import GpuClaim, PodFate
from monitor.facts.cluster import GpuState
from monitor.facts.gpu import GpuFact, XidEvent
from monitor.facts.text import Evidence

Values = dict[str, str | int | float]
StateDecision = tuple[GpuState, tuple[Evidence, ...]]
ENDED = (PodFate.FINISHED, PodFate.TERMINATING, PodFate.DELETED)


@dataclass(frozen=True)
class StateLimits:
    """From when on something counts. Seconds, and bytes of memory that a card uses without anybody on it."""

    stale_after: float = 60.0
    wedged_after: float = 30.0
    terminating_grace: float = 60.0
    settle: float = 20.0
    idle_after: float = 1800.0
    xid_hold: float = 900.0
    ghost_bytes: int = 1024**3
    faulty_xids: frozenset[int] = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140, 143})


class GpuInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that is known of one card, and by what it is judged. `blind` says why it is not known, when it is not."""

    gpu: GpuFact
    now: float
    limits: StateLimits
    claims: Sequence[GpuClaim] = ()
    xids: Sequence[XidEvent] = ()
    idle_since: float | None = None
    processes_known: bool = True
    blind: Evidence | None = None
    skew: float = 0.0  # what to add to the node's clock to get ours


def decide_state(card: GpuInput) -> StateDecision:
    """Given a card, return its state and why. The first of the questions below that has an answer decides."""
    if card.blind is not None:
        return GpuState.UNKNOWN, (card.blind,)
    for state, question in QUESTIONS:
        if evidence := question(card):
            return state, tuple(evidence)
    return GpuState.FREE, ()


def _faulty(card: GpuInput) -> list[Evidence]:
    gpu, found = card.gpu, []
    if gpu.lost:
        found.append(Evidence(key="gpu-lost", values={"error": gpu.error or ""}))
    if card.xids:
        found += _xids(card)
    ecc = gpu.ecc
    uncorrected = ((ecc.volatile_uncorrected_sram or 0) + (ecc.volatile_uncorrected_dram or 0)) if ecc else 0
    if uncorrected:
        found.append(Evidence(key="ecc-uncorrected", values={"errors": uncorrected}))
    if gpu.row_remaps and gpu.row_remaps.failed:
        found.append(Evidence(key="row-remap-failed"))
    if gpu.row_remaps and gpu.row_remaps.pending:
        found.append(Evidence(key="row-remap-pending"))
    if gpu.recovery_action not in (None, "none"):
        found.append(Evidence(key="recovery-action", values={"action": gpu.recovery_action or ""}))
    return found


def _xids(card: GpuInput) -> list[Evidence]:
    recent = {
        x.code: x
        for x in card.xids
        if x.code in card.limits.faulty_xids and card.now - x.at - card.skew < card.limits.xid_hold
    }
    return [
        Evidence(key="xid", values={"code": code, "at": xid.at, "message": xid.message or ""})
        for code, xid in sorted(recent.items())
    ]


def _wedged(card: GpuInput) -> list[Evidence]:
    """A process may be in D for a moment, and may end between two readings: it has to last."""
    found = []
    for claim in card.claims:
        process = claim.process
        if process is None or process.state not in ("D", "Z", "gone") or process.state_since is None:
            continue
        if card.now - process.state_since - card.skew >= card.limits.wedged_after:
            values: Values = {"pid": process.pid, "state": process.state, "since": process.state_since}
            found.append(Evidence(key="process-state", values=values | {"process": process.name or ""}))
    return found


def _zombie(card: GpuInput) -> list[Evidence]:
    return [
        Evidence(key=claim.life.value, values={"pod": _pod(claim), "pid": claim.process.pid})
        for claim in card.claims
        if claim.process is not None and claim.life in ENDED
    ]


def _orphan(card: GpuInput) -> list[Evidence]:
    """A display server draws on a card without computing on it: only compute counts. One that just ended is nobody."""
    found = []
    for claim in card.claims:
        process = claim.process
        if process is None or claim.life is not PodFate.NO_POD:
            continue
        if process.kind != "graphics" and process.state != "gone":
            what = "other-container" if process.container_id else "host-process"
            values: Values = {
                "pid": process.pid,
                "process": process.name or "",
                "container": process.container_id or "",
            }
            found.append(Evidence(key=what, values=values if process.uid is None else values | {"uid": process.uid}))
    return found


def _ghost(card: GpuInput) -> list[Evidence]:
    gpu, found = card.gpu, []
    if not card.processes_known or any(claim.process is not None for claim in card.claims):
        return []
    if (gpu.memory_used_bytes or 0) > card.limits.ghost_bytes:
        found.append(Evidence(key="memory-without-process", values={"bytes": gpu.memory_used_bytes or 0}))
    if (gpu.utilization_ratio or 0) > 0:
        found.append(Evidence(key="utilization-without-process", values={"ratio": gpu.utilization_ratio or 0}))
    return found


def _idle(card: GpuInput) -> list[Evidence]:
    held = [claim for claim in card.claims if claim.life is PodFate.LIVE]
    if not held or card.idle_since is None or card.now - card.idle_since < card.limits.idle_after:
        return []
    ages = [card.now - claim.pod.started_at for claim in held if claim.pod and claim.pod.started_at is not None]
    if ages and max(ages) < card.limits.idle_after:
        return []
    return [Evidence(key="idle", values={"pod": _pod(held[0]), "since": card.idle_since})]


def _busy(card: GpuInput) -> list[Evidence]:
    """A claim that may be outdated by seconds still counts: better not free for a moment than given away twice."""
    held = [claim for claim in card.claims if claim.life in (PodFate.LIVE, PodFate.UNSURE)]
    return [Evidence(key="held", values={"pod": _pod(claim), "by": claim.by}) for claim in held]


def _phantom(card: GpuInput) -> list[Evidence]:
    """The kubelet keeps the devices of ended pods on its books until the next allocation.

    For a pod that ended and is still there that is how it works, and the card is free. A pod that does not exist
    any more is another matter: nobody will ever say that it ended.
    """
    return [
        Evidence(key="stale-allocation", values={"pod": _pod(claim), "by": claim.by})
        for claim in card.claims
        if claim.process is None and claim.life is PodFate.DELETED
    ]


QUESTIONS: tuple[tuple[GpuState, Callable[[GpuInput], list[Evidence]]], ...] = (
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
