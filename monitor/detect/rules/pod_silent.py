"""pod-silent: a running container with GPUs logs nothing, or has stopped logging."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, UNKNOWN, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.pods import combined, is_live, pod_labels, pod_values, raw_text
from monitor.detect.visibility import clock_skew
from monitor.explain.fit import gpu_resource, gpus_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text
from monitor.facts.workload import LogFact

CAUSES = ("never-logged", "stopped-logging", "log-unreadable")
NEVER, STOPPED, UNREADABLE = CAUSES
INTERACTIVE = "Notebook"  # its users watch the screen, not the log


@dataclass(frozen=True)
class Limits:
    """How long a log may stay empty after the start, and how long it may not grow."""

    empty: Seconds = 900.0
    stopped: Seconds = 3600.0


def evaluate(pod: PodFact, context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    """Containers with GPUs whose log is empty, has stopped, or cannot be read."""
    facts = context.facts
    if pod.phase != "Running" or not is_live(pod) or not requested_gpus(pod, facts):
        return NOTHING
    identity = facts.identity(pod)
    if identity.workload_kind == INTERACTIVE or identity.inference:  # a service without requests logs nothing
        return NOTHING
    agent = facts.agent_of_node.get(pod.node or "")
    if agent is None or agent.snapshot is None:
        return UNKNOWN
    logs = {log.container_id: log for log in agent.snapshot.logs or ()}
    watched = [(status, logs.get(status.container_id or "")) for status in _with_gpus(pod, facts)]
    return combined(_judge(pod, status, log, clock_skew(agent), context) for status, log in watched if log is not None)


def _with_gpus(pod: PodFact, facts: ClusterFacts) -> Iterable[ContainerStatusFact]:
    """Running containers that requested the GPUs: a sidecar that logs does not count."""
    resource = gpu_resource(pod, facts)
    names = {each.name for each in pod.containers if each.requests.get(resource) or each.limits.get(resource)}
    for status in pod.statuses:
        if status.state == "running" and not status.init and (not names or status.name in names):
            yield status


def _judge(pod: PodFact, status: ContainerStatusFact, log: LogFact, behind: float, context: RuleContext) -> RuleResult:
    """What is known about one log. Its times and that of the start are in the node's clock."""
    limits: Limits = context.limits.of({"node": pod.node or "", "namespace": pod.namespace, "pod": pod.name})
    if status.started_at is None:
        return NOTHING
    since, limit = status.started_at + behind, limits.empty
    if log.error is not None:
        cause = UNREADABLE
    elif log.size_bytes == 0:
        cause = NEVER
    elif log.written_at is not None:
        cause, since, limit = STOPPED, max(log.written_at + behind, since), limits.stopped
    else:
        return NOTHING
    if context.now - since < limit:
        return RuleResult(next_at=since + limit)
    return RuleResult((_finding(pod, status, log, cause, since, context.facts),))


def _finding(
    pod: PodFact, status: ContainerStatusFact, log: LogFact, cause: str, since: float, facts: ClusterFacts
) -> Finding:
    values = pod_values(pod, facts, container=status.name, gpus=gpus_in_words(pod, facts))
    labels, evidence = pod_labels(pod, facts, container=status.name), _utilization_evidence(pod, facts)
    raw = raw_text(log.error)
    return make_finding("pod-silent", cause, labels, values, evidence=evidence, since=since, raw=raw)


def _utilization_evidence(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    gpus = facts.gpus_by_pod.get(pod.uid, ())
    ratios = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    if ratios:
        memory = sum(gpu.memory_used_bytes or 0 for gpu in gpus)
        yield Text(Key.GPU_USE, {"ratio": sum(ratios) / len(ratios), "size": memory})


EMPTY = Latency("empty", collector="logs")
LATENCY = {NEVER: EMPTY, STOPPED: Latency("stopped", collector="logs"), UNREADABLE: EMPTY}
RULE = Rule(
    "pod-silent", Limits, CAUSES, evaluate, SubjectKind.POD,
    needs=("logs",), uses=("agent",), refines=("gpus",), kube=("pods",), suppressed_by=("node-down",), latency=LATENCY,
)  # fmt: skip
