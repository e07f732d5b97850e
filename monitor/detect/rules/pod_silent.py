"""pod-silent: a running container with GPUs logs nothing, or has stopped logging."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib.pods import blind_scopes, live_pods, pod_labels, pod_values, raw_text
from monitor.detect.visibility import clock_skew
from monitor.explain.fit import gpu_resource, requested_gpus
from monitor.explain.keys import Key
from monitor.facts.agents import AgentFact
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text
from monitor.facts.workload import LogFact

CAUSES = ("never-logged", "stopped-logging", "log-unreadable")
INTERACTIVE = "Notebook"  # its users watch the screen, not the log


@dataclass(frozen=True)
class Limits:
    """How long a log may stay empty after the start, and how long it may not grow."""

    empty: Seconds = 900.0
    stopped: Seconds = 3600.0


@dataclass(frozen=True)
class LogSilence:
    """What is wrong with a log, and since when."""

    cause: str
    since: float
    error: str | None = None


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Containers with GPUs whose log is empty, has stopped, or cannot be read."""
    facts, agents = context.facts, context.facts.agent_of_node
    logs: dict[str, dict[str, LogFact] | None] = {}
    findings = []
    for pod in live_pods(facts.pods):
        node = pod.node or ""
        if pod.phase != "Running" or not _counts(pod, facts):
            continue
        if node not in logs:
            logs[node] = _logs(agents.get(node))
        limits: Limits = context.limits.of({"node": node, "namespace": pod.namespace, "pod": pod.name})
        for status in _with_gpus(pod, facts):
            log = (logs[node] or {}).get(status.container_id or "")
            silence = _silence(status, log, clock_skew(agents[node]), limits, context.now) if log else None
            if silence is not None:
                findings.append(_finding(pod, status, silence, facts, context.now))
    blind = tuple(Scope(labels={"node": node}) for node, known in sorted(logs.items()) if known is None)
    return RuleResult(tuple(findings), None, (*blind_scopes(context), *blind))


def _counts(pod: PodFact, facts: ClusterFacts) -> bool:
    return bool(requested_gpus(pod, facts)) and facts.identity(pod).workload_kind != INTERACTIVE


def _logs(agent: AgentFact | None) -> dict[str, LogFact] | None:
    """Logs of a node by container, or None while unknown."""
    if agent is None or agent.silent_since is not None or agent.snapshot is None or agent.snapshot.logs is None:
        return None
    return {log.container_id: log for log in agent.snapshot.logs}


def _with_gpus(pod: PodFact, facts: ClusterFacts) -> Iterable[ContainerStatusFact]:
    """Running containers that requested the GPUs: a sidecar that logs does not count."""
    resource = gpu_resource(pod, facts)
    names = {
        container.name
        for container in pod.containers
        if container.requests.get(resource) or container.limits.get(resource)
    }
    for status in pod.statuses:
        if status.state == "running" and not status.init and (not names or status.name in names):
            yield status


def _silence(status: ContainerStatusFact, log: LogFact, behind: float, limits: Limits, now: float) -> LogSilence | None:
    """Problem of a log. Its times and that of the start are in the node's clock."""
    if status.started_at is None:
        return None
    started = status.started_at + behind
    if log.error is not None:
        return LogSilence("log-unreadable", started, log.error) if now - started > limits.empty else None
    if log.size_bytes == 0:
        return LogSilence("never-logged", started) if now - started > limits.empty else None
    if log.written_at is None:
        return None
    written = max(log.written_at + behind, started)
    return LogSilence("stopped-logging", written) if now - written > limits.stopped else None


def _finding(
    pod: PodFact, status: ContainerStatusFact, silence: LogSilence, facts: ClusterFacts, now: float
) -> Finding:
    gpus = requested_gpus(pod, facts)
    values = pod_values(pod, facts, container=status.name, gpus=gpus, seconds=now - silence.since)
    return Finding(
        rule="pod-silent",
        severity=Severity.WARNING,
        cause=silence.cause,
        labels=pod_labels(pod, facts, container=status.name),
        headline=Text(key=f"pod-silent.{silence.cause}", values=values),
        evidence=tuple(_utilization_evidence(pod, facts)),
        advice=(Text(key=f"pod-silent.{silence.cause}.advice", values=values),),
        since=silence.since,
        raw=raw_text(silence.error),
    )


def _utilization_evidence(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    gpus = facts.gpus_by_pod.get(pod.uid, ())
    ratios = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    if ratios:
        memory = sum(gpu.memory_used_bytes or 0 for gpu in gpus)
        yield Text(Key.GPU_USE, {"ratio": sum(ratios) / len(ratios), "size": memory})


RULE = Rule(
    "pod-silent",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={"stopped-logging": Latency("stopped", collector="logs"), ANY_CAUSE: Latency("empty", collector="logs")},
)
