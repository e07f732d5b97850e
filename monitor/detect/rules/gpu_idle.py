"""gpu-idle: a live pod holds GPUs without using them, or a job uses only some of its GPUs; also hours of services."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    NOTHING,
    Delay,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    TimeZone,
)
from monitor.detect.findings import make_finding
from monitor.detect.lib import gpu_cost, io_wait
from monitor.detect.lib import gpu_idle_inference as hours
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib.gpu_idle_power import PowerHistory, track_power
from monitor.detect.lib.gpu_idle_why import IdleCause, diagnose_idle, is_inference, is_notebook, whole_minutes
from monitor.detect.subjects import JobGpus
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import PodFact
from monitor.facts.prices import GpuPrices
from monitor.facts.text import Text, Value

CAUSES = (
    "idle-notebook", "idle-job", "hung-job", "waiting-for-data", "partially-idle", "idle-inference", "unused-inference",
)  # fmt: skip
PARTIALLY_IDLE = "partially-idle"
HELD_STATES = (GpuState.IDLE_HELD, GpuState.BUSY)
MAX_NAMED_GPUS = 16
REFRESH_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """When a GPU counts as idle, and when its power proves otherwise.

    A GPU works if it draws more than `power_times` its lowest power, and more than `power_share` of the range from
    there to its limit: an open context alone doubles the power of a small GPU. An inference service is reported for
    hours of the day, at least `inference_hours` in a row, at which it was idle on each of `inference_days`.
    """

    warning_after: Seconds = 1800.0
    critical_after: Seconds = 7200.0
    notebook_warning_after: Seconds = 1800.0
    notebook_critical_after: Seconds = 7200.0
    warm_up: Seconds = 900.0
    power_times: float = 1.5
    power_share: Ratio = 0.35
    io_wait_cores: float = 1.0
    inference_days: int = 3
    inference_hours: int = 2
    timezone: TimeZone | None = None


@dataclass(frozen=True)
class _HeldGpu:
    """A GPU of a live pod. `since` is the start of its idleness, None while it works; `holder` is one of several."""

    gpu: GpuView
    holder: Holder
    pod: PodFact
    limits: Limits
    since: float | None = None
    warning_at: float = math.inf
    critical_at: float = math.inf

    def seconds(self, now: float) -> float:
        return max(0.0, now - self.since) if self.since is not None else 0.0


def evaluate(job: JobGpus, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """GPUs of a job that its live pods hold without using them."""
    if is_inference(job.gpus, context):
        return _inference_result(job, context, memory, now)
    if all(gpu.idle_since is None for gpu in job.gpus):
        return NOTHING
    before = memory if isinstance(memory, dict) else {}
    agents = gpu_lib.agents_of(job.gpus, context.facts)
    facts = gpu_lib.gpu_facts(agents)
    own = {gpu_lib.gpu_key(gpu): facts[gpu.node, gpu.index] for gpu in job.gpus if (gpu.node, gpu.index) in facts}
    limits: Limits = context.limits.default
    power = track_power(before.get("power"), own, (limits.power_times, limits.power_share), now)
    samples, waiting = io_wait.update_samples(before.get("io"), agents)
    gpus = [held for gpu in job.gpus if (held := _held_gpu(gpu, context, power)) is not None]
    findings = _findings(gpus, context, agents, waiting)
    return RuleResult(findings, {"io": samples, "power": power}, next_at=_next_at(gpus, now))


def _inference_result(job: JobGpus, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Hours of the day at which the GPUs of an inference service are idle."""
    if any(gpu.state not in HELD_STATES for gpu in job.gpus):
        return RuleResult(memory=memory)
    before = hours.read_record(memory, now)
    record = hours.extended(before, hours.idle_from(job.gpus), now)
    limits: Limits = context.limits.default
    periods = hours.idle_periods(record, limits.inference_days, limits.inference_hours)
    findings = (_inference_finding(job, periods, limits, context.prices),) if periods else ()
    return RuleResult(findings, record.memory(), next_at=now + hours.SAMPLE_SECONDS)


def _inference_finding(
    job: JobGpus, periods: Sequence[tuple[int, int]], limits: Limits, prices: GpuPrices | None
) -> Finding:
    holder = gpu_lib.live_holders(job.gpus[0])[-1]
    labels = gpu_lib.holder_labels(holder)
    labels.pop("pod", None)
    values: dict[str, Value] = {
        "job": holder.job or gpu_lib.holder_pod_name(holder), "namespace": holder.namespace or "?",
        "gpus": len(job.gpus), "days": limits.inference_days, "hours": hours.clock_times(periods, limits.timezone),
    }  # fmt: skip
    unused = periods[0][1] == hours.DAY_HOURS
    window = limits.inference_days * hours.DAY_HOURS * float(hours.HOUR_SECONDS)
    cost = gpu_cost.cost_of_window(prices, job.gpus, window) if unused else ()
    return make_finding(
        "gpu-idle", "unused-inference" if unused else "idle-inference", labels, values,
        severity=Severity.WARNING if unused else Severity.INFO, evidence=(*cost, *gpu_lib.owner_evidence(holder)),
    )  # fmt: skip


def _held_gpu(gpu: GpuView, context: RuleContext, power: PowerHistory) -> _HeldGpu | None:
    """A GPU that its job could use; faulty or otherwise held ones have rules of their own."""
    if gpu.state not in HELD_STATES and not (gpu.state is GpuState.GHOST and gpu.idle_since is None):
        return None
    pods = context.facts.pod_by_uid
    owners = [(holder, pods[holder.pod_uid]) for holder in gpu_lib.live_holders(gpu) if holder.pod_uid in pods]
    starts = [started for _, pod in owners if (started := started_at(pod)) is not None]
    if not owners or len(starts) < len(owners):
        return None
    holder, pod = owners[-1]
    limits: Limits = gpu_lib.gpu_limits(context, gpu, holder)
    if gpu.idle_since is None:
        return _HeldGpu(gpu, holder, pod, limits)
    notebook = is_notebook(pod, context)
    warning = limits.notebook_warning_after if notebook else limits.warning_after
    critical = limits.notebook_critical_after if notebook else limits.critical_after
    since = max(gpu.idle_since, *starts, power.get(gpu_lib.gpu_key(gpu), (0.0, 0.0))[1])
    warning_at = max(since + warning, starts[-1] + limits.warm_up)
    return _HeldGpu(gpu, holder, pod, limits, since, warning_at, max(since + critical, warning_at))


def started_at(pod: PodFact) -> float | None:
    """Start of the newest container: a restarted one has to load everything again."""
    running = (status for status in pod.statuses if status.state == "running")
    starts = [status.started_at for status in running if status.started_at is not None]
    return max(starts, default=pod.started_at if pod.started_at is not None else pod.created_at)


def _findings(
    gpus: list[_HeldGpu], context: RuleContext, agents: Mapping[str, AgentFact], waiting: Mapping[str, float]
) -> tuple[Finding, ...]:
    """One finding for a partially idle job, else one for each idle GPU."""
    now, findings = context.now, []
    idle = [held for held in gpus if held.warning_at <= now]
    if idle and any(held.seconds(now) < _working_seconds(gpus) for held in gpus):
        return (_partial_finding(gpus, idle, now, context.prices),)
    for held in idle:
        agent, cores = agents.get(held.gpu.node), gpus[0].limits.io_wait_cores
        why = diagnose_idle(held.pod, held.gpu, context, agent, waiting, cores)
        findings.append(_finding(held, why, now, context.prices))
    return tuple(findings)


def _working_seconds(gpus: list[_HeldGpu]) -> float:
    """For how long a GPU that has stopped counts as working: those of a finished job do not stop in one second."""
    return gpus[0].limits.warning_after / 2


def _next_at(gpus: list[_HeldGpu], now: float) -> float | None:
    """When an idle GPU reaches a limit; texts about one that has are renewed every minute."""
    times = [now + REFRESH_SECONDS] if any(held.warning_at <= now for held in gpus) else []
    for held in gpus:
        if held.since is not None:
            times += (held.warning_at, held.critical_at, held.since + _working_seconds(gpus))
    return min((at for at in times if at > now), default=None)


def _finding(held: _HeldGpu, why: IdleCause, now: float, prices: GpuPrices | None) -> Finding:
    severity = Severity.CRITICAL if held.critical_at <= now else Severity.WARNING
    gpu, sole, values = held.gpu, gpu_lib.sole_holder(held.gpu), _pod_values(held)
    cost = gpu_cost.cost_so_far(prices, [gpu_cost.idle_gpu(gpu, now if held.since is None else held.since)])
    evidence = (*why.evidence, *gpu_lib.memory_evidence(gpu), *cost)
    return gpu_lib.gpu_finding(
        "gpu-idle", why.cause, gpu, sole, values, severity=severity, evidence=evidence, since=held.since
    )


def _partial_finding(job: list[_HeldGpu], idle: list[_HeldGpu], now: float, prices: GpuPrices | None) -> Finding:
    """The finding about a partially idle job."""
    first, shortest = job[0], whole_minutes(min(held.seconds(now) for held in idle))
    names = ", ".join(f"{held.gpu.node}:{held.gpu.index}" for held in idle[:MAX_NAMED_GPUS])
    values: dict[str, Value] = _pod_values(first) | {"job": first.holder.job or gpu_lib.holder_pod_name(first.holder)}
    values |= {"idle": len(idle), "gpus": len(job), "idle_for": shortest, "cards": names}
    labels = gpu_lib.holder_labels(first.holder)
    if len({held.pod.uid for held in job}) > 1:
        labels.pop("pod", None)
    severity = Severity.CRITICAL if all(held.critical_at <= now for held in idle) else Severity.WARNING
    wasted = [gpu_cost.idle_gpu(held.gpu, held.since) for held in idle if held.since is not None]
    cost = gpu_cost.cost_so_far(prices, wasted)
    evidence = (Text("gpu-idle.cards", values), *cost, *gpu_lib.owner_evidence(first.holder))
    since = min(held.since for held in idle if held.since is not None)
    return make_finding("gpu-idle", PARTIALLY_IDLE, labels, values, severity=severity, evidence=evidence, since=since)


def _pod_values(held: _HeldGpu) -> dict[str, Value]:
    return {"pod": held.pod.name, "namespace": held.pod.namespace}


_INFERENCE_LATENCY = Latency(Limits().inference_days * hours.DAY_HOURS * float(hours.HOUR_SECONDS))
LATENCY = {
    "idle-inference": _INFERENCE_LATENCY,
    "unused-inference": _INFERENCE_LATENCY,
    ANY_CAUSE: Latency("warning_after", Delay.FIRST_SEEN),
}
RULE = Rule(
    "gpu-idle", Limits, CAUSES, evaluate, SubjectKind.JOB,
    needs=("gpu", "pod_devices"), uses=("pods", "host", "gpu_processes", "logs"), refines=("gpu", "gpus"),
    kube=("pods",), suppressed_by=("node-down",), latency=LATENCY,
)  # fmt: skip
