"""gpu-phantom: the kubelet counts a card as used, and nobody is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Delay, Latency, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib import gpus
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("stale-allocation", "terminal-pod")
STALE, TERMINAL = CAUSES
REFUSAL_REASONS = ("UnexpectedAdmissionError", "OutOfnvidia.com/gpu")


@dataclass(frozen=True)
class Limits:
    """How long it has to last, and how long a pod that the node refused is proof.

    A kubelet gives back the cards of finished pods when it needs them, not before: that alone is no fault. It is one
    when the node refuses new pods for want of cards at the same time.
    """

    after: Seconds = 600.0
    refused_within: Seconds = 3600.0


@dataclass(frozen=True)
class _Phantom:
    """A card that is on the kubelet's books for a pod that is not there; and the pod that was refused because of it."""

    gpu: GpuView
    holder: Holder
    cause: str
    refused: str = ""

    @property
    def key(self) -> str:
        return f"{gpus.gpu_key(self.gpu)}/{self.cause}"


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the cards that Kubernetes counts as used and that nobody holds."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes", "pod_devices", kube=("pods",))
    found = [] if blind.everything else [*_stale(context), *_terminal(context)]
    known = {each.key: each.gpu.since if each.cause == STALE else None for each in found}
    since = gpus.track_since(memory, known, blind, context.now)
    findings = []
    for each in found:
        limits: Limits = context.limits.of(gpus.gpu_labels(each.gpu))
        if context.now - since[each.key] >= limits.after:
            findings.append(_finding(each, since[each.key], context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _stale(context: RuleContext) -> Iterator[_Phantom]:
    for gpu in gpus.gpus_in_state(context, GpuState.PHANTOM):
        holder = next((each for each in gpu.holders if each.live is False), None)
        if holder is not None:
            yield _Phantom(gpu, holder, STALE)


def _terminal(context: RuleContext) -> Iterator[_Phantom]:
    """Yield the cards kept for finished pods, on nodes that refuse pods for want of cards."""
    refused = _refused_pods(context)
    for gpu in gpus.gpus_in_state(context, GpuState.FREE) if refused else ():
        holder = next((each for each in gpu.holders if each.live is False), None)
        if holder is not None and gpu.node in refused:
            yield _Phantom(gpu, holder, TERMINAL, refused[gpu.node])


def _refused_pods(context: RuleContext) -> dict[str, str]:
    """Return the nodes that refused a pod for want of devices, and the pod."""
    found = {}
    for pod in context.facts.pods:
        if pod.reason in REFUSAL_REASONS and pod.node is not None:
            limits: Limits = context.limits.of({"node": pod.node})
            if pod.created_at is not None and context.now - pod.created_at <= limits.refused_within:
                found[pod.node] = f"{pod.namespace}/{pod.name}"
    return found


def _finding(phantom: _Phantom, since: float, now: float) -> Finding:
    gpu, holder = phantom.gpu, phantom.holder
    values: dict[str, Value] = gpus.gpu_values(gpu) | {"pod": gpus.holder_pod_name(holder), "seconds": now - since}
    refused = (Text(key="gpu-phantom.refused", values={"pod": phantom.refused}),) if phantom.refused else ()
    return Finding(
        rule="gpu-phantom",
        severity=Severity.WARNING,
        cause=phantom.cause,
        labels=gpus.gpu_labels(gpu, holder),
        headline=Text(key=f"gpu-phantom.{phantom.cause}", values=values),
        evidence=(*refused, *gpus.owner_evidence(holder)),
        advice=(Text(key="gpu-phantom.advice", values=values),),
        since=since,
    )


RULE = Rule(
    "gpu-phantom",
    Limits,
    CAUSES,
    detect,
    suppressed_by=("node-down",),
    latency={
        STALE: Latency("after", Delay.POD_GONE, collector="pod_devices"),
        ANY_CAUSE: Latency("after", Delay.FIRST_SEEN, collector="pod_devices"),
    },
)
