"""gpu-phantom: the kubelet counts a GPU as allocated although no pod uses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.lib import gpus
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

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


@dataclass(frozen=True)
class _Phantom:
    """A GPU allocated to a pod that is gone, and the pod refused because of it."""

    gpu: GpuView
    holder: Holder
    cause: str
    refused: str = ""

    @property
    def key(self) -> str:
        return f"{gpus.gpu_key(self.gpu)}/{self.cause}"


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs that Kubernetes counts as used but no live pod holds."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes", "pod_devices", kube=("pods",))
    phantoms = [] if blind.everything else [*_stale(context), *_terminal(context)]
    known = {phantom.key: phantom.gpu.since if phantom.cause == STALE else None for phantom in phantoms}
    since = gpus.track_since(memory, known, blind, context.now)
    findings = []
    for phantom in phantoms:
        limits: Limits = context.limits.of(gpus.gpu_labels(phantom.gpu))
        if context.now - since[phantom.key] >= limits.after:
            findings.append(_finding(phantom, since[phantom.key], context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _stale(context: RuleContext) -> Iterator[_Phantom]:
    for gpu in gpus.gpus_in_state(context, GpuState.PHANTOM):
        holder = next((holder for holder in gpu.holders if holder.live is False), None)
        if holder is not None:
            yield _Phantom(gpu, holder, STALE)


def _terminal(context: RuleContext) -> Iterator[_Phantom]:
    """GPUs allocated to finished pods on nodes that refuse pods for lack of GPUs."""
    refused = _refused_pods(context)
    for gpu in gpus.gpus_in_state(context, GpuState.FREE) if refused else ():
        holder = next((holder for holder in gpu.holders if holder.live is False), None)
        if holder is not None and gpu.node in refused:
            yield _Phantom(gpu, holder, TERMINAL, refused[gpu.node])


def _refused_pods(context: RuleContext) -> dict[str, str]:
    """The pod refused for lack of devices, by node."""
    pods = {}
    for pod in context.facts.pods:
        if pod.reason in REFUSAL_REASONS and pod.node is not None:
            limits: Limits = context.limits.of({"node": pod.node})
            if pod.created_at is not None and context.now - pod.created_at <= limits.refused_within:
                pods[pod.node] = f"{pod.namespace}/{pod.name}"
    return pods


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
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={
        STALE: Latency("after", Delay.POD_GONE, collector="pod_devices"),
        ANY_CAUSE: Latency("after", Delay.FIRST_SEEN, collector="pod_devices"),
    },
)
