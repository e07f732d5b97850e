"""gpu-underused: a job hardly uses its GPUs; with what it seems to wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from monitor.detect.base import NOTHING, Delay, Latency, Ratio, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib import io_wait
from monitor.detect.lib.gpu_cost import cost_of_window
from monitor.detect.lib.gpu_idle_why import is_notebook
from monitor.detect.lib.gpu_underused_why import CAUSES, UnderusedPod, diagnose_underuse
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

BUCKET_COUNT = 4  # per window
MAX_GAP_SECONDS = 120.0  # longer gaps between evaluations do not count
BUCKET_FIELD_COUNT = 3
SAMPLE_SECONDS = 30.0
# Time of the last sample, then the buckets, flattened: start, sum of ratio x seconds, seconds.
Record = list[float]


@dataclass(frozen=True)
class Limits:
    """Mean utilization that is too low, over which window; and the I/O wait that explains it."""

    below: Ratio = 0.2
    window: Seconds = 7200.0
    io_wait_cores: float = 1.0


def evaluate(pod: PodFact, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A pod that has underused its GPUs for long. Idle GPUs are reported by gpu-idle.

    Notebooks are exempt, and inference services: their load is what their users ask for.
    """
    held = context.facts.gpus_by_pod.get(pod.uid)
    if not held or pod.phase != "Running" or is_notebook(pod, context) or context.facts.identity(pod).inference:
        return NOTHING
    before = memory if isinstance(memory, dict) else {}
    gpus = [gpu for gpu in held if _is_busy(gpu, pod)]
    if not gpus:
        return RuleResult(memory=before or None)
    limits: Limits = gpu_lib.gpu_limits(context, gpus[0], gpu_lib.sole_holder(gpus[0]))
    agents = gpu_lib.agents_of(gpus, context.facts)
    samples, waiting = io_wait.update_samples(before.get("io"), agents)
    ratio = sum(gpu.utilization_ratio or 0.0 for gpu in gpus) / len(gpus)
    record = _add_sample(before.get("record"), ratio, now, limits.window)
    result = RuleResult(memory={"io": samples, "record": record}, next_at=now + SAMPLE_SECONDS)
    mean = _mean(record, limits.window)
    if mean is None or mean >= limits.below:
        return result
    job = UnderusedPod(pod, gpus, mean, limits.window, limits.io_wait_cores)
    cost = cost_of_window(context.prices, gpus, limits.window)
    return replace(result, findings=(_finding(job, agents, waiting, cost),))


def _is_busy(gpu: GpuView, pod: PodFact) -> bool:
    """Whether a pod holds a GPU exclusively and uses it."""
    holder = gpu_lib.sole_holder(gpu)
    exclusive = holder is not None and holder.pod_uid == pod.uid
    return exclusive and gpu.state is GpuState.BUSY and gpu.utilization_ratio is not None


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
    job: UnderusedPod, agents: Mapping[str, AgentFact], waiting: Mapping[str, float], cost: tuple[Text, ...]
) -> Finding:
    gpus, pod, holder = job.gpus, job.pod, gpu_lib.sole_holder(job.gpus[0])
    cause, evidence = diagnose_underuse(job, gpu_lib.gpu_facts(agents), agents.get(gpus[0].node), waiting)
    values: dict[str, Value] = {"pod": pod.name, "namespace": pod.namespace, "node": gpus[0].node, "gpus": len(gpus)}
    values |= {"ratio": job.mean, "window": job.window}
    labels = {"node": gpu_lib.gpu_labels(gpus[0])["node"]} | (gpu_lib.holder_labels(holder) if holder else {})
    figures = f"mean utilisation {job.mean:.3f} over {job.window:.0f} s on {len(gpus)} GPUs"
    return make_finding(
        "gpu-underused", cause, labels, values, evidence=(*evidence, *cost, *gpu_lib.owner_evidence(holder)),
        raw=figures if cause == "unknown" else None,
    )  # fmt: skip


RULE = Rule(
    "gpu-underused", Limits, CAUSES, evaluate, SubjectKind.POD,
    needs=("gpu", "pod_devices"), refines=("host", "container_usage", "shm"), kube=("pods",),
    suppressed_by=("node-down",), latency=Latency("window", Delay.FIRST_SEEN, collector="pod_devices"),
)  # fmt: skip
