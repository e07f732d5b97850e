"""gpu-idle: a live pod holds GPUs without using them, or a job uses only some of its GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Delay,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib import io_wait
from monitor.detect.lib.gpu_idle_power import PowerHistory, track_power
from monitor.detect.lib.gpu_idle_why import IdleCause, diagnose_idle, is_notebook
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

CAUSES = ("idle-notebook", "idle-job", "hung-job", "waiting-for-data", "partially-idle")
PARTIALLY_IDLE = "partially-idle"
HELD_STATES = (GpuState.IDLE_HELD, GpuState.BUSY)
MAX_NAMED_GPUS = 16


@dataclass(frozen=True)
class Limits:
    """When a GPU counts as idle, and when its power proves otherwise.

    A GPU works if it draws more than `power_times` its lowest power, and more than `power_share` of the range from
    there to its limit: an open context alone doubles the power of a small GPU.
    """

    warning_after: Seconds = 1800.0
    critical_after: Seconds = 7200.0
    notebook_warning_after: Seconds = 1800.0
    notebook_critical_after: Seconds = 7200.0
    warm_up: Seconds = 900.0
    power_times: float = 1.5
    power_share: Ratio = 0.35
    io_wait_cores: float = 1.0


@dataclass(frozen=True)
class _HeldGpu:
    """A GPU of a live pod. `since` is the start of its idleness, None while it works."""

    gpu: GpuView
    holder: Holder
    pod: PodFact
    since: float | None

    def seconds(self, now: float) -> float:
        return max(0.0, now - self.since) if self.since is not None else 0.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs that a live pod holds without using them."""
    before = memory if isinstance(memory, dict) else {}
    reports = gpu_lib.reporting_agents(context)
    blind = gpu_lib.find_blind_spots(context, reports, "gpu", "pod_devices", kube=("pods",))
    samples, waiting = io_wait.update_samples(before.get("io"), reports)
    limits: Limits = context.limits.default
    power = track_power(before.get("power"), context, blind, (limits.power_times, limits.power_share))
    remembered = {"io": samples, "power": power}
    if blind.everything:
        return RuleResult(memory=remembered, blind=blind.scopes)
    findings: list[Finding] = []
    half_seen = _partly_hidden_jobs(context, blind)
    for job, group in _jobs(_held_gpus(context, power), context).items():
        if job not in half_seen:
            findings += _job_findings(group, context, reports, waiting)
    jobs = (
        Scope(labels={"namespace": label_value(namespace), "job": label_value(job)})
        for namespace, job in sorted(half_seen)
    )
    return RuleResult(findings=tuple(findings), memory=remembered, blind=(*blind.scopes, *jobs))


def _held_gpus(context: RuleContext, draws: PowerHistory) -> list[_HeldGpu]:
    """GPUs of jobs that have an idle one. Idleness counts from the start of the pod."""
    view, suspects = context.facts.view, _candidate_jobs(context)
    gpus = view.gpus if view and suspects else ()
    gpus_of_jobs = [
        gpu for gpu in gpus if _counts(gpu) and any(h.live and _holder_job(h) in suspects for h in gpu.holders)
    ]
    pods = gpu_lib.pods_by_uid(context, (h.pod_uid for gpu in gpus_of_jobs for h in gpu_lib.live_holders(gpu)))
    held_gpus = []
    for gpu in gpus_of_jobs:
        owners = [(h, pods[h.pod_uid]) for h in gpu_lib.live_holders(gpu) if h.pod_uid in pods]
        starts = [started for _, pod in owners if (started := started_at(pod)) is not None]
        if not owners or len(starts) < len(owners):
            continue
        began = (gpu.idle_since, max(starts), draws.get(gpu_lib.gpu_key(gpu), (0.0, 0.0))[1])
        since = max(began[0], began[1], began[2]) if began[0] is not None else None
        held_gpus.append(_HeldGpu(gpu, *owners[-1], since))
    return held_gpus


def _candidate_jobs(context: RuleContext) -> set[tuple[str | None, str | None]]:
    """Jobs with a GPU that has been idle for long; only these are examined."""
    every: list[Limits] = [context.limits.default, *(override.limits for override in context.limits.overrides)]
    shortest = min(min(limits.warning_after, limits.notebook_warning_after) for limits in every)
    view, latest = context.facts.view, context.now - shortest
    idle = (gpu for gpu in (view.gpus if view else ()) if gpu.idle_since is not None and gpu.idle_since <= latest)
    return {_holder_job(holder) for gpu in idle for holder in gpu.holders if holder.live}


def _holder_job(holder: Holder) -> tuple[str | None, str | None]:
    return holder.namespace, holder.job or holder.pod_uid


def _counts(gpu: GpuView) -> bool:
    """Whether the job could use the GPU; faulty or otherwise held ones have rules of their own."""
    return gpu.state in HELD_STATES or (gpu.state is GpuState.GHOST and gpu.idle_since is None)


def started_at(pod: PodFact) -> float | None:
    """Start of the newest container: a restarted one has to load everything again."""
    starts = [
        status.started_at for status in pod.statuses if status.state == "running" and status.started_at is not None
    ]
    return max(starts, default=pod.started_at if pod.started_at is not None else pod.created_at)


def _jobs(gpus: Iterable[_HeldGpu], context: RuleContext) -> dict[tuple[str, str], list[_HeldGpu]]:
    jobs: defaultdict[tuple[str, str], list[_HeldGpu]] = defaultdict(list)
    for held in gpus:
        jobs[job_of(held.pod, context)].append(held)
    return jobs


def job_of(pod: PodFact, context: RuleContext) -> tuple[str, str]:
    """Job of a pod; a pod without one is its own."""
    return pod.namespace, context.facts.identity(pod).job or pod.uid


def _partly_hidden_jobs(context: RuleContext, blind: gpu_lib.BlindSpots) -> set[tuple[str, str]]:
    """Jobs with pods on blind nodes: whether all of their GPUs are idle is unknown."""
    facts = context.facts
    pods = [pod for node in blind.nodes for pod in facts.bound.get(node, ()) if pod.requests.get(facts.resource)]
    return {job_of(pod, context) for pod in pods if facts.identity(pod).job}


def _job_findings(
    job: list[_HeldGpu], context: RuleContext, reports: Mapping[str, AgentFact], waiting: Mapping[str, float]
) -> list[Finding]:
    """One finding for a partially idle job, else one for each idle GPU."""
    now = context.now
    idle = [(held, level) for held in job if (level := _severity(held, context)) is not None]
    if not idle:
        return []
    limits: Limits = gpu_lib.gpu_limits(context, job[0].gpu, job[0].holder)
    # GPUs of a finished job do not stop in the same second: one that has just stopped does not count as working.
    if any(held.seconds(now) < limits.warning_after / 2 for held in job):
        return [_partial_finding(job, idle, now)]
    findings = []
    for held, level in idle:
        why = diagnose_idle(held.pod, held.gpu, context, reports.get(held.gpu.node), waiting, limits.io_wait_cores)
        findings.append(_finding(held, level, why, now))
    return findings


def _severity(held: _HeldGpu, context: RuleContext) -> Severity | None:
    """Severity of the idleness, or None if it is within the limits."""
    if held.since is None:
        return None
    limits: Limits = gpu_lib.gpu_limits(context, held.gpu, held.holder)
    notebook = is_notebook(held.pod, context)
    warning = limits.notebook_warning_after if notebook else limits.warning_after
    critical = limits.notebook_critical_after if notebook else limits.critical_after
    age = context.now - (started_at(held.pod) or context.now)
    seconds = held.seconds(context.now)
    if seconds < warning or age < limits.warm_up:
        return None
    return Severity.CRITICAL if seconds >= critical else Severity.WARNING


def _finding(held: _HeldGpu, severity: Severity, why: IdleCause, now: float) -> Finding:
    values = gpu_lib.gpu_values(held.gpu) | _pod_values(held) | {"seconds": held.seconds(now)}
    sole = gpu_lib.sole_holder(held.gpu)
    return Finding(
        rule="gpu-idle",
        severity=severity,
        cause=why.cause,
        labels=gpu_lib.gpu_labels(held.gpu, sole),
        headline=Text(key=f"gpu-idle.{why.cause}", values=values),
        evidence=(*why.evidence, *gpu_lib.memory_evidence(held.gpu), *gpu_lib.owner_evidence(sole)),
        advice=(Text(key=f"gpu-idle.{why.cause}.advice", values=values),),
        since=held.since,
    )


def _partial_finding(job: list[_HeldGpu], idle: list[tuple[_HeldGpu, Severity]], now: float) -> Finding:
    """The finding about a partially idle job."""
    first, shortest = job[0], min(held.seconds(now) for held, _ in idle)
    names = ", ".join(f"{held.gpu.node}:{held.gpu.index}" for held, _ in idle[:MAX_NAMED_GPUS])
    values: dict[str, Value] = _pod_values(first) | {"job": first.holder.job or gpu_lib.holder_pod_name(first.holder)}
    values |= {"idle": len(idle), "gpus": len(job), "seconds": shortest, "cards": names}
    labels = gpu_lib.holder_labels(first.holder)
    if len({held.pod.uid for held in job}) > 1:
        labels.pop("pod", None)
    critical = all(level is Severity.CRITICAL for _, level in idle)
    return Finding(
        rule="gpu-idle",
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        cause=PARTIALLY_IDLE,
        labels=labels,
        headline=Text(key=f"gpu-idle.{PARTIALLY_IDLE}", values=values),
        evidence=(Text(key="gpu-idle.cards", values=values), *gpu_lib.owner_evidence(first.holder)),
        advice=(Text(key=f"gpu-idle.{PARTIALLY_IDLE}.advice", values=values),),
        since=min(held.since for held, _ in idle if held.since is not None),
    )


def _pod_values(held: _HeldGpu) -> dict[str, Value]:
    return {"pod": held.pod.name, "namespace": held.pod.namespace}


RULE = Rule(
    "gpu-idle",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={ANY_CAUSE: Latency("warning_after", Delay.FIRST_SEEN)},
)
