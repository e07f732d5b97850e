"""gpu-zombie: a pod has finished, was deleted or is overdue in terminating, but still holds a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.cluster.holders import PodFate, ended_holders, has_process, holder_fate, processes_of
from monitor.detect.base import Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.lib import gpu_cost, gpus
from monitor.detect.subjects import GpuSubject
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.prices import GpuPrices
from monitor.facts.text import Text, Value

CAUSES = (PodFate.FINISHED.value, PodFate.DELETED.value, PodFate.TERMINATING.value)
FINISHED, DELETED, TERMINATING = CAUSES
REPORT_WAIT_SECONDS = 5.0  # between two looks whether the node has reported again


@dataclass(frozen=True)
class Limits:
    """How long an ended pod may hold a GPU before it is reported; shutting down takes a pod some time."""

    finished_after: Seconds = 60.0
    terminating_after: Seconds = 600.0


@dataclass(frozen=True)
class _EndedHold:
    """A GPU held by a pod that has ended."""

    holder: Holder
    fate: PodFate
    known_since: float | None


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU held by pods that have ended: one finding per pod."""
    holds = {gpus.holder_pod_name(hold.holder): hold for hold in _ended_holds(gpu.view, context.facts)}
    since = gpus.track_since(memory, {name: hold.known_since for name, hold in holds.items()}, now)
    findings, due = [], []
    for name, hold in holds.items():
        limits: Limits = gpus.gpu_limits(context, gpu.view, hold.holder)
        limit = limits.terminating_after if hold.fate is PodFate.TERMINATING else limits.finished_after
        if now - since[name] < limit:
            due.append(since[name] + limit)
        elif not _reported_since(gpu.node.agent, since[name]):
            due.append(now + REPORT_WAIT_SECONDS)
        else:
            findings.append(_finding(gpu, hold, since[name], context.prices))
    return RuleResult(tuple(findings), since or None, next_at=min(due, default=None))


def _ended_holds(gpu: GpuView, facts: ClusterFacts) -> Iterator[_EndedHold]:
    """Holds of ended pods; live pods that share the GPU are not affected."""
    for holder in ended_holders(gpu):
        pod = facts.pod_by_uid.get(holder.pod_uid or "")
        fate = holder_fate(holder, pod)
        # The kubelet keeps the GPUs of finished pods allocated until it needs them: that does no harm.
        if has_process(holder) or fate is PodFate.TERMINATING:
            yield _EndedHold(holder, fate, _known_since(gpu, holder, fate, pod))


def _known_since(gpu: GpuView, holder: Holder, fate: PodFate, pod: PodFact | None) -> float | None:
    """When the hold is known to have begun. A process seen for the first time may end a moment later."""
    if fate is PodFate.TERMINATING and pod is not None and pod.deletion_at is not None:
        return pod.deletion_at
    return gpu.since if gpu.state is GpuState.ZOMBIE and has_process(holder) else None


def _reported_since(agent: AgentFact | None, since: float) -> bool:
    """Whether the node has reported since then: an earlier report does not prove that anything remains."""
    return agent is None or agent.received_at is None or agent.received_at > since


def _finding(subject: GpuSubject, hold: _EndedHold, since: float, prices: GpuPrices | None) -> Finding:
    gpu, holder, cause = subject.view, hold.holder, hold.fate.value
    values = gpus.gpu_values(gpu) | {"pod": gpus.holder_pod_name(holder)}
    pid = _pid(holder, gpu, subject.node.report.snapshot) if has_process(holder) else None
    if pid is None:
        remains: tuple[Text, ...] = (Text("gpu-zombie.allocation", values),)
        pod: dict[str, Value] = {"pod": holder.pod or holder.pod_uid or "?", "namespace": holder.namespace or "?"}
        advice = Text("gpu-zombie.allocation.advice", pod)
    else:
        remains = (Text("gpu-zombie.process", {"pid": pid}), *gpus.memory_evidence(gpu))
        advice = Text("gpu-zombie.advice", values | {"pid": pid})
    remains = (*remains, *gpu_cost.cost_so_far(prices, [gpu_cost.zombie_gpu(gpu, since, holder)]))
    return gpus.gpu_finding("gpu-zombie", cause, gpu, holder, values, evidence=remains, advice=(advice,), since=since)


def _pid(holder: Holder, gpu: GpuView, snapshot: NodeSnapshot) -> int | None:
    """A process of the ended pod; processes of other pods may be on the GPU too."""
    processes = processes_of(holder.pod_uid, gpu, snapshot)
    return processes[0].pid if processes else next(iter(gpu.pids), None)


LATENCY = {
    FINISHED: Latency("finished_after", Delay.FIRST_SEEN),
    DELETED: Latency("finished_after", Delay.POD_GONE),
    TERMINATING: Latency("terminating_after", Delay.GRACE_PERIOD, collector="pod_devices"),
}
RULE = Rule(
    "gpu-zombie", Limits, CAUSES, evaluate, SubjectKind.GPU,
    needs=("gpu", "gpu_processes", "pod_devices"), uses=("pods",), refines=("gpus",), kube=("pods",),
    suppressed_by=("node-down",), latency=LATENCY,
)  # fmt: skip
