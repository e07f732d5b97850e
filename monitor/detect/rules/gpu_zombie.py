"""gpu-zombie: a pod has finished, was deleted or is overdue in terminating, but still holds a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.cluster.holders import PodFate, ended_holders, has_process, holder_fate, processes_of
from monitor.detect.base import Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib import gpus as gpu_lib
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = (PodFate.FINISHED.value, PodFate.DELETED.value, PodFate.TERMINATING.value)
FINISHED, DELETED, TERMINATING = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long an ended pod may hold a GPU before it is reported; shutting down takes a pod some time."""

    finished_after: Seconds = 60.0
    terminating_after: Seconds = 600.0


@dataclass(frozen=True)
class _EndedHold:
    """A GPU held by a pod that has ended."""

    gpu: GpuView
    holder: Holder
    fate: PodFate
    known_since: float | None

    @property
    def key(self) -> str:
        return f"{gpu_lib.gpu_key(self.gpu)}/{gpu_lib.holder_pod_name(self.holder)}"


def detect(situation: RuleContext, memory: Any) -> RuleResult:
    """Find GPUs held by pods that have ended."""
    reports = gpu_lib.reporting_agents(situation)
    blind = gpu_lib.find_blind_spots(situation, reports, "gpu", "gpu_processes", "pod_devices", kube=("pods",))
    holds = [] if blind.everything else list(_ended_holds(situation))
    since = gpu_lib.track_since(memory, {hold.key: hold.known_since for hold in holds}, blind, situation.now)
    findings = []
    for hold in holds:
        limits: Limits = situation.limits.of(gpu_lib.gpu_labels(hold.gpu, hold.holder))
        limit = limits.terminating_after if hold.fate is PodFate.TERMINATING else limits.finished_after
        if situation.now - since[hold.key] >= limit and _reported_since(hold.gpu, since[hold.key], reports):
            findings.append(_finding(hold, since[hold.key], situation.now, reports))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _ended_holds(situation: RuleContext) -> Iterator[_EndedHold]:
    """Holds of ended pods; live pods that share the GPU are not affected."""
    view = situation.facts.view
    gpus = [gpu for gpu in (view.gpus if view else ()) if gpu.state is not GpuState.UNKNOWN and ended_holders(gpu)]
    pods = gpu_lib.pods_by_uid(situation, (holder.pod_uid for gpu in gpus for holder in gpu.holders))
    for gpu in gpus:
        for holder in ended_holders(gpu):
            pod = pods.get(holder.pod_uid or "")
            fate = holder_fate(holder, pod)
            # The kubelet keeps the GPUs of finished pods allocated until it needs them: that does no harm.
            if has_process(holder) or fate is PodFate.TERMINATING:
                yield _EndedHold(gpu, holder, fate, _known_since(gpu, holder, fate, pod))


def _known_since(gpu: GpuView, holder: Holder, fate: PodFate, pod: PodFact | None) -> float | None:
    """When the hold is known to have begun. A process seen for the first time may end a moment later."""
    if fate is PodFate.TERMINATING and pod is not None and pod.deletion_at is not None:
        return pod.deletion_at
    return gpu.since if gpu.state is GpuState.ZOMBIE and has_process(holder) else None


def _reported_since(gpu: GpuView, since: float, reports: Mapping[str, AgentFact]) -> bool:
    """Whether the node has reported since then: an earlier report does not prove that anything remains."""
    agent = reports.get(gpu.node)
    return agent is None or agent.received_at is None or agent.received_at > since


def _finding(hold: _EndedHold, since: float, now: float, reports: Mapping[str, AgentFact]) -> Finding:
    gpu, holder, cause = hold.gpu, hold.holder, hold.fate.value
    values = gpu_lib.gpu_values(gpu) | {"pod": gpu_lib.holder_pod_name(holder), "seconds": now - since}
    pid = _pid(hold, reports.get(gpu.node)) if has_process(holder) else None
    if pid is None:
        remains: tuple[Text, ...] = (Text(key="gpu-zombie.allocation", values=values),)
        advice = Text(key="gpu-zombie.allocation.advice", values=_pod_values(holder))
    else:
        remains = (Text(key="gpu-zombie.process", values={"pid": pid}), *gpu_lib.memory_evidence(gpu))
        advice = Text(key="gpu-zombie.advice", values=values | {"pid": pid})
    return Finding(
        rule="gpu-zombie",
        severity=Severity.WARNING,
        cause=cause,
        labels=gpu_lib.gpu_labels(gpu, holder),
        headline=Text(key=f"gpu-zombie.{cause}", values=values),
        evidence=(*remains, *gpu_lib.owner_evidence(holder)),
        advice=(advice,),
        since=since,
    )


def _pod_values(holder: Holder) -> dict[str, str | int | float]:
    return {"pod": holder.pod or holder.pod_uid or "?", "namespace": holder.namespace or "?"}


def _pid(hold: _EndedHold, agent: AgentFact | None) -> int | None:
    """A process of the ended pod; processes of other pods may be on the GPU too."""
    processes = processes_of(hold.holder.pod_uid, hold.gpu, agent.snapshot if agent else None)
    return processes[0].pid if processes else next(iter(hold.gpu.pids), None)


RULE = Rule(
    "gpu-zombie",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={
        FINISHED: Latency("finished_after", Delay.FIRST_SEEN),
        DELETED: Latency("finished_after", Delay.POD_GONE),
        TERMINATING: Latency("terminating_after", Delay.GRACE_PERIOD, collector="pod_devices"),
    },
)
