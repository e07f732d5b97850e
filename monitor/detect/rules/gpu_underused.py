"""gpu-underused: a job hardly uses its GPUs; with what it seems to wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib import io_wait
from monitor.detect.lib.gpu_idle_why import is_notebook
from monitor.detect.lib.gpu_underused_why import CAUSES, UnderusedPod, diagnose_underuse
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

BUCKET_COUNT = 4  # per window
MAX_GAP_SECONDS = 120.0  # longer gaps between evaluations do not count
BUCKET_FIELD_COUNT = 3
# Time of the last sample, then the buckets, flattened: start, sum of ratio x seconds, seconds.
Record = list[float]


@dataclass(frozen=True)
class Limits:
    """Mean utilization that is too low, over which window; and the I/O wait that explains it."""

    below: Ratio = 0.2
    window: Seconds = 7200.0
    io_wait_cores: float = 1.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Pods that have underused their GPUs for long. Idle GPUs are reported by gpu-idle."""
    before = memory if isinstance(memory, dict) else {}
    reports = gpu_lib.reporting_agents(context)
    blind = gpu_lib.find_blind_spots(context, reports, "gpu", "pod_devices", kube=("pods",))
    samples, waiting = io_wait.update_samples(before.get("io"), reports)
    known = before.get("pods")
    records: dict[str, Record] = known if isinstance(known, dict) else {}
    if blind.everything:
        return RuleResult(memory={"io": samples, "pods": records}, blind=blind.scopes)
    updated = _records_to_keep(records, context, blind)
    low = []
    for pod, gpus in _pods(context, _busy_gpus(context)):
        limits: Limits = gpu_lib.gpu_limits(context, gpus[0], gpu_lib.sole_holder(gpus[0]))
        updated[pod.uid] = record = _add_sample(
            records.get(pod.uid), _mean_utilization(gpus), context.now, limits.window
        )
        mean = _mean(record, limits.window)
        if mean is not None and mean < limits.below:
            low.append(UnderusedPod(pod, gpus, mean, limits.window, limits.io_wait_cores))
    facts = gpu_lib.gpu_facts(context) if low else {}
    findings = tuple(_finding(job, facts, reports.get(job.gpus[0].node), waiting) for job in low)
    return RuleResult(findings=findings, memory={"io": samples, "pods": updated}, blind=blind.scopes)


def _mean_utilization(gpus: list[GpuView]) -> float:
    return sum(gpu.utilization_ratio or 0.0 for gpu in gpus) / len(gpus)


def _busy_gpus(context: RuleContext) -> dict[str, list[GpuView]]:
    """GPUs that pods hold exclusively and use, by pod."""
    busy: dict[str, list[GpuView]] = {}
    for gpu in gpu_lib.gpus_in_state(context, GpuState.BUSY):
        holder = gpu_lib.sole_holder(gpu)
        if holder is not None and holder.pod_uid is not None and gpu.utilization_ratio is not None:
            busy.setdefault(holder.pod_uid, []).append(gpu)
    return busy


def _pods(context: RuleContext, working: Mapping[str, list[GpuView]]) -> Iterator[tuple[PodFact, list[GpuView]]]:
    """Running job pods with their GPUs; notebooks are exempt, as people pause."""
    for pod in context.facts.pods:
        if pod.uid in working and pod.phase == "Running" and not is_notebook(pod, context):
            yield pod, working[pod.uid]


def _records_to_keep(
    records: Mapping[str, Record], context: RuleContext, blind: gpu_lib.BlindSpots
) -> dict[str, Record]:
    """Records of pods that are not busy now: their node is hidden, or they pause."""
    nodes = {pod.uid: pod.node for pod in context.facts.pods if pod.uid in records and pod.phase == "Running"}
    return {
        uid: records[uid] for uid, node in nodes.items() if blind.covers(node or "") or uid in context.facts.gpus_by_pod
    }


def _add_sample(record: Any, ratio: float, now: float, window: float) -> Record:
    """The record with one more sample; a new one if it is malformed, as an older version may have left."""
    try:
        return _extended(record, ratio, now, window)
    except (TypeError, ValueError, IndexError, KeyError):
        return [now, now, 0.0, 0.0]


def _extended(record: Any, ratio: float, now: float, window: float) -> Record:
    passed, length = now - record[0], window / BUCKET_COUNT
    longer: Record = [now, *record[1:]]
    while len(longer) > BUCKET_FIELD_COUNT + 1 and longer[1] < now - window - length:
        del longer[1 : BUCKET_FIELD_COUNT + 1]
    if now - longer[-BUCKET_FIELD_COUNT] >= length:
        longer += (now, 0.0, 0.0)
    if 0.0 <= passed <= MAX_GAP_SECONDS:
        longer[-2] += ratio * passed
        longer[-1] += passed
    return longer


def _mean(record: Record, window: float) -> float | None:
    """Mean utilization, once the window is covered."""
    seconds = sum(record[3::BUCKET_FIELD_COUNT])
    return sum(record[2::BUCKET_FIELD_COUNT]) / seconds if seconds >= window else None


def _finding(
    job: UnderusedPod,
    facts: Mapping[tuple[str, int], GpuFact],
    agent: AgentFact | None,
    waiting: Mapping[str, float],
) -> Finding:
    gpus, pod = job.gpus, job.pod
    holder = gpu_lib.sole_holder(gpus[0])
    cause, evidence = diagnose_underuse(job, facts, agent, waiting)
    values: dict[str, Value] = {"pod": pod.name, "namespace": pod.namespace, "node": gpus[0].node, "gpus": len(gpus)}
    values |= {"ratio": job.mean, "seconds": job.window}
    labels = {"node": gpu_lib.gpu_labels(gpus[0])["node"]} | (gpu_lib.holder_labels(holder) if holder else {})
    return Finding(
        rule="gpu-underused",
        severity=Severity.WARNING,
        cause=cause,
        labels=labels,
        headline=Text(key=f"gpu-underused.{cause}", values=values),
        evidence=(*evidence, *gpu_lib.owner_evidence(holder)),
        advice=(Text(key=f"gpu-underused.{cause}.advice", values=values),),
        raw=f"mean utilisation {job.mean:.3f} over {job.window:.0f} s on {len(gpus)} GPUs"
        if cause == "unknown"
        else None,
    )


RULE = Rule(
    "gpu-underused",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={ANY_CAUSE: Latency("window", Delay.FIRST_SEEN, collector="pod_devices")},
)
