"""pod-start-failed: a container cannot be created or started, or keeps exiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib.pods import blind_scopes, pod_labels, pod_values, raw_text
from monitor.explain import crash, finished, starting
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis
from monitor.explain.pod import CANNOT_START_REASONS, CONFIGURATION_REASONS
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text

CAUSES = ("file-not-found", "not-executable", "permission", "out-of-memory", "bus-error", "config")
# Cause of the explanation -> cause of the finding; any other one is "config".
_CAUSES = {
    "crash-no-command": "file-not-found",
    "crash-no-file": "file-not-found",
    "crash-no-module": "file-not-found",
    "start-no-start-file": "file-not-found",
    "start-workdir": "file-not-found",
    "crash-not-executable": "not-executable",
    "crash-illegal": "not-executable",
    "start-not-executable": "not-executable",
    "start-exec-format": "not-executable",
    "crash-permission": "permission",
    "crash-out-of-memory": "out-of-memory",
    "crash-gpu-memory": "out-of-memory",
    "crash-killed": "out-of-memory",
    "crash-shm": "bus-error",
    "crash-segfault": "bus-error",
}
_MESSAGE_KEYS = (Key.RUNTIME_SAYS.value, Key.LAST_WORDS.value)
FIRST_EXIT_GRACE_SECONDS = 60.0  # a first failure may not recur


@dataclass(frozen=True)
class Limits:
    """Runtime after a crash that counts as healthy, and how long a failed pod is reported."""

    steady: Seconds = 600.0
    failed_for: Seconds = 3600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Containers that do not start or do not keep running."""
    before: dict[str, float] = memory if isinstance(memory, dict) else {}
    findings, known = [], dict[str, float]()
    for pod in context.facts.pods:
        for status in pod.statuses if pod.deletion_at is None else ():
            name = f"{pod.uid}/{status.name}"
            answer = _diagnose(pod, status, context, known_before=name in before)
            if answer is not None:
                known[name] = before.get(name, context.now)
                findings.append(_finding(pod, status, answer, context.facts, known[name]))
    return RuleResult(tuple(findings), known, blind_scopes(context))


def _diagnose(
    pod: PodFact, status: ContainerStatusFact, context: RuleContext, *, known_before: bool
) -> PodDiagnosis | None:
    """Why a container fails, or None."""
    facts, now = context.facts, context.now
    if pod.phase == "Succeeded" or (status.state == "running" and not known_before):
        return None
    if status.state == "waiting":
        return _diagnose_waiting(pod, status, facts)
    limits: Limits = context.limits.of({"namespace": pod.namespace, "pod": pod.name, "node": pod.node or ""})
    if status.state == "running":
        # A container runs for a while between two crashes.
        fresh = status.started_at is not None and now - status.started_at < limits.steady
        return (
            _diagnose_exit(pod, status, facts) if fresh and status.last is not None and status.last.exit_code else None
        )
    if status.state != "terminated" or not status.exit_code:
        return None
    answer, ago = _diagnose_exit(pod, status, facts), now - (status.finished_at or now)
    if pod.phase == "Failed":
        return (
            answer if answer.cause in _CAUSES and _failed_by_itself(pod, facts) and ago <= limits.failed_for else None
        )
    return answer if answer.cause in _CAUSES or ago >= FIRST_EXIT_GRACE_SECONDS or status.restart_count else None


def _diagnose_waiting(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> PodDiagnosis | None:
    if status.reason in CONFIGURATION_REASONS:
        return starting.bad_configuration(pod, status, facts)
    if status.reason in CANNOT_START_REASONS:
        return crash.cannot_start(pod, status, facts)
    return _diagnose_exit(pod, status, facts) if status.reason == "CrashLoopBackOff" else None


def _diagnose_exit(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> PodDiagnosis:
    failed = crash.last_termination(status).reason in crash.START_FAILED_REASONS
    return crash.cannot_start(pod, status, facts) if failed else crash.crashed(pod, status, facts)


def _failed_by_itself(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether a failed pod was not evicted, which also kills its containers."""
    return finished.finished(pod, facts).cause.startswith(("crash-", "start-"))


def _finding(
    pod: PodFact, status: ContainerStatusFact, answer: PodDiagnosis, facts: ClusterFacts, since: float
) -> Finding:
    cause = _CAUSES.get(answer.cause, "config")
    values = pod_values(pod, facts, container=status.name, restarts=status.restart_count)
    evidence = (answer.headline, *answer.evidence)
    return Finding(
        rule="pod-start-failed",
        severity=Severity.WARNING,
        cause=cause,
        labels=pod_labels(pod, facts, container=status.name),
        headline=Text(key=f"pod-start-failed.{cause}", values=values),
        evidence=evidence,
        advice=answer.advice,
        since=since,
        raw=raw_text(next(_messages(evidence, status), None)),
    )


def _messages(evidence: Iterable[Text], status: ContainerStatusFact) -> Iterator[str]:
    yield from (str(item.values["message"]) for item in evidence if item.key in _MESSAGE_KEYS)
    end = crash.last_termination(status)
    yield f"{end.reason or status.reason or '?'}, exit code {end.exit_code}"


# Keys of the advice that monitor.explain gives for a cause.
ADVICE = {
    "file-not-found": (
        "crash_no_command_advice",
        "crash_no_file_advice",
        "crash_no_module_advice",
        "start_no_start_file_advice",
        "start_workdir_advice",
    ),
    "not-executable": (
        "crash_not_executable_advice",
        "crash_illegal_advice",
        "start_not_executable_advice",
        "start_exec_format_advice",
    ),
    "permission": ("crash_permission_advice",),
    "out-of-memory": ("crash_out_of_memory_advice", "crash_gpu_memory_advice", "crash_killed_advice"),
    "bus-error": ("crash_shm_advice", "crash_segfault_advice"),
    "config": (
        "config_object_missing_advice",
        "config_key_missing_advice",
        "config_root_advice",
        "start_other_advice",
        "crash_error_advice",
    ),
}
RULE = Rule(
    "pod-start-failed",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("disk-full", "node-down"),
    advice=ADVICE,
)
