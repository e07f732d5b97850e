"""gpu-zombie: a pod is finished, deleted or overdue in terminating, and a process or an allocation of its remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Delay, Latency, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib import gpus as cards
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = ("pod-finished", "pod-deleted", "pod-terminating")
FINISHED, DELETED, TERMINATING = CAUSES
PROCESS = "process"


@dataclass(frozen=True)
class Limits:
    """How long a card may be held like that before it is said. A pod takes its time to end."""

    finished_after: Seconds = 60.0
    terminating_after: Seconds = 600.0


@dataclass(frozen=True)
class _Held:
    """A card, the pod that is not alive any more, and what that is called."""

    gpu: GpuView
    holder: Holder
    cause: str
    known_since: float | None

    @property
    def key(self) -> str:
        return f"{cards.gpu_key(self.gpu)}/{cards.holder_pod_name(self.holder)}"


def detect(situation: RuleContext, memory: Any) -> RuleResult:
    """Find the cards that a pod holds which is not alive any more."""
    reports = cards.reporting_agents(situation)
    blind = cards.find_blind_spots(situation, reports, "gpu", "gpu_processes", "pod_devices", kube=("pods",))
    held = [] if blind.everything else list(_held(situation))
    since = cards.track_since(memory, {each.key: each.known_since for each in held}, blind, situation.now)
    findings = []
    for each in held:
        limits: Limits = situation.limits.of(cards.gpu_labels(each.gpu, each.holder))
        limit = limits.terminating_after if each.cause == TERMINATING else limits.finished_after
        if situation.now - since[each.key] >= limit and _said_since(each.gpu, since[each.key], reports):
            findings.append(_finding(each, since[each.key], situation.now, reports))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _held(situation: RuleContext) -> Iterator[_Held]:
    """Yield what is held by the dead: on a shared card only they are meant, not the living beside them."""
    view = situation.facts.view
    gpus = [gpu for gpu in (view.gpus if view else ()) if any(holder.live is False for holder in gpu.holders)]
    pods = cards.pods_by_uid(situation, (holder.pod_uid for gpu in gpus for holder in gpu.holders))
    for gpu in gpus:
        for holder in gpu.holders:
            if holder.live is False and gpu.state is not GpuState.UNKNOWN:
                cause, known_since = _cause(gpu, holder, pods.get(holder.pod_uid or ""))
                # The kubelet keeps finished pods' cards on its books until it needs them: that costs nobody anything.
                if PROCESS in holder.by or cause == TERMINATING:
                    yield _Held(gpu, holder, cause, known_since)


def _cause(gpu: GpuView, holder: Holder, pod: PodFact | None) -> tuple[str, float | None]:
    """Return what became of the pod, and when. A process that is seen only now may be seen to end a moment later."""
    seen = gpu.since if gpu.state is GpuState.ZOMBIE and PROCESS in holder.by else None
    if pod is None:
        return DELETED, seen
    if pod.phase in ("Succeeded", "Failed"):
        return FINISHED, seen
    return TERMINATING, pod.deletion_at if pod.deletion_at is not None else seen


def _said_since(gpu: GpuView, since: float, reports: Mapping[str, AgentFact]) -> bool:
    """Return whether the node has spoken since then: what it said before does not prove that anything remains."""
    agent = reports.get(gpu.node)
    return agent is None or agent.received_at is None or agent.received_at > since


def _finding(held: _Held, since: float, now: float, reports: Mapping[str, AgentFact]) -> Finding:
    gpu, holder = held.gpu, held.holder
    values = cards.gpu_values(gpu) | {"pod": cards.holder_pod_name(holder), "seconds": now - since}
    pid = _pid(held, reports.get(gpu.node)) if PROCESS in holder.by else None
    if pid is None:
        remains: tuple[Text, ...] = (Text(key="gpu-zombie.allocation", values=values),)
        advice = Text(key="gpu-zombie.allocation.advice", values=_where(holder))
    else:
        remains = (Text(key="gpu-zombie.process", values={"pid": pid}), *cards.memory_evidence(gpu))
        advice = Text(key="gpu-zombie.advice", values=values | {"pid": pid})
    return Finding(
        rule="gpu-zombie",
        severity=Severity.WARNING,
        cause=held.cause,
        labels=cards.gpu_labels(gpu, holder),
        headline=Text(key=f"gpu-zombie.{held.cause}", values=values),
        evidence=(*remains, *cards.owner_evidence(holder)),
        advice=(advice,),
        since=since,
    )


def _where(holder: Holder) -> dict[str, str | int | float]:
    return {"pod": holder.pod or holder.pod_uid or "?", "namespace": holder.namespace or "?"}


def _pid(held: _Held, agent: AgentFact | None) -> int | None:
    """Return the process of that pod on that card: others may be on it too."""
    gpu, snapshot = held.gpu, agent.snapshot if agent else None
    for process in (snapshot.gpu_processes or ()) if snapshot else ():
        if process.gpu_uuid == gpu.uuid and process.pod_uid == held.holder.pod_uid:
            return process.pid
    return next(iter(gpu.pids), None)


RULE = Rule(
    "gpu-zombie",
    Limits,
    CAUSES,
    detect,
    suppressed_by=("node-down",),
    latency={
        FINISHED: Latency("finished_after", Delay.FIRST_SEEN),
        DELETED: Latency("finished_after", Delay.POD_GONE),
        TERMINATING: Latency("terminating_after", Delay.GRACE_PERIOD, collector="pod_devices"),
    },
)
