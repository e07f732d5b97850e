"""gpu-phantom: the kubelet or a ResourceClaim counts a GPU as allocated although no pod uses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from monitor.cluster.holders import RESOURCE_CLAIM
from monitor.detect.base import NOTHING, Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.lib import gpu_cost, gpus
from monitor.detect.subjects import GpuSubject
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.prices import GpuPrices
from monitor.facts.text import Text

CAUSES = ("stale-allocation", "terminal-pod")
STALE, TERMINAL = CAUSES
REFUSAL_REASONS = ("UnexpectedAdmissionError", "OutOfnvidia.com/gpu")


@dataclass(frozen=True)
class Limits:
    """How long it has to persist, and how long a refused pod counts as evidence.

    A kubelet releases GPUs of finished pods only when it needs them, which alone is not a fault. It is one if the node
    refuses new pods for lack of GPUs at the same time.
    """

    after: Seconds = 600.0
    refused_within: Seconds = 3600.0


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU that Kubernetes counts as used but no live pod holds."""
    view, holder = gpu.view, next((holder for holder in gpu.view.holders if holder.live is False), None)
    if holder is None or view.state not in (GpuState.PHANTOM, GpuState.FREE):
        return NOTHING
    limits: Limits = gpus.gpu_limits(context, view)
    if view.state is GpuState.PHANTOM:
        cost = partial(_cost, view, holder, context.prices)
        return lasting(
            STALE, limits.after, memory, now, lambda since: _finding(view, holder, since, cost(since)), view.since
        )
    # The kubelet frees the GPUs of finished pods on demand: a fault only if it refuses pods for lack of GPUs.
    refused = _refused_pod(context.facts.finished.get(view.node, ()))
    counts_until = (refused.created_at or 0.0) + limits.refused_within if refused is not None else 0.0
    if refused is None or now >= counts_until:
        return NOTHING
    result = lasting(TERMINAL, limits.after, memory, now, lambda since: _finding(view, holder, since, (), refused))
    return replace(result, next_at=min(result.next_at or counts_until, counts_until))


def _refused_pod(finished: Iterable[PodFact]) -> PodFact | None:
    """The newest pod that a node refused for lack of devices."""
    refused = [pod for pod in finished if pod.reason in REFUSAL_REASONS]
    return max(refused, key=lambda pod: pod.created_at or 0.0, default=None)


def _cost(gpu: GpuView, holder: Holder, prices: GpuPrices | None, since: float) -> tuple[Text, ...]:
    return gpu_cost.cost_so_far(prices, [gpu_cost.zombie_gpu(gpu, since, holder)])


def _finding(
    gpu: GpuView, holder: Holder, since: float, cost: tuple[Text, ...], refused: PodFact | None = None
) -> Finding:
    cause = TERMINAL if refused else STALE
    values, evidence = {"pod": gpus.holder_pod_name(holder)}, list(cost)
    if refused is not None:
        evidence.append(Text("gpu-phantom.refused", {"pod": f"{refused.namespace}/{refused.name}"}))
    advice_key = "gpu-phantom.claim.advice" if holder.by == (RESOURCE_CLAIM,) else "gpu-phantom.advice"
    return gpus.gpu_finding(
        "gpu-phantom", cause, gpu, holder, values, evidence=evidence, advice_key=advice_key, since=since
    )


LATENCY = {
    STALE: Latency("after", Delay.POD_GONE, collector="pod_devices"),
    TERMINAL: Latency("after", Delay.FIRST_SEEN, collector="pod_devices"),
}
RULE = Rule(
    "gpu-phantom", Limits, CAUSES, evaluate, SubjectKind.GPU,
    needs=("gpu", "gpu_processes", "pod_devices"), uses=("pods",), kube=("pods",),
    suppressed_by=("node-down",), latency=LATENCY,
)  # fmt: skip
