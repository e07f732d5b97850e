"""pod-start-failed: a container cannot be created or started, or keeps exiting; or the kubelet removed its pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.pods import advice_keys, pod_labels, pod_values, raw_text
from monitor.explain import crash, finished, starting
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis
from monitor.explain.pod import CANNOT_START_REASONS, CONFIGURATION_REASONS
from monitor.explain.refused import EVICTED_CAUSES, REFUSED_CAUSES, refused
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text

# Causes of the explanations by cause of the finding; an explanation that is not in the table is "unknown".
_EXPLAINED = {
    "file-not-found": ("crash-no-command", "crash-no-file", "crash-no-module", "start-no-start-file", "start-workdir"),
    "not-executable": ("crash-not-executable", "crash-illegal", "start-not-executable", "start-exec-format"),
    "permission": ("crash-permission",),
    "out-of-memory": ("crash-out-of-memory", "crash-gpu-memory", "crash-killed"),
    "bus-error": ("crash-shm", "crash-segfault"),
    "gpu-driver": (
        "start-driver-mismatch", "start-driver-too-old", "start-driver-not-loaded", "start-driver-broken",
        "start-gpu-lost", "start-toolkit-broken", "start-cdi", "crash-gpu-gone",
    ),
    "node-trouble": (
        "start-cgroup", "start-keyring", "start-inotify", "start-pids-limit", "start-node-limit", "start-disk-full",
        "start-node-disk", "start-node-store", "start-runtime-broken", "start-runtime-slow", "start-device-missing",
        "sandbox-runtime-class", "crash-inotify",
    ),
    "security-profile": ("start-apparmor", "start-seccomp", "start-security-profile"),
    "volume": ("start-mount-kind", "start-subpath", "start-mount-dead", "start-read-only-root"),
    "config": ("bad-configuration", "start-user-missing", "start-memory-limit-low", "start-hook"),
    "refused": REFUSED_CAUSES,
    "evicted": EVICTED_CAUSES,
}  # fmt: skip
_CAUSES = {explained: cause for cause, several in _EXPLAINED.items() for explained in several}
_REMOVED_CAUSES = (*REFUSED_CAUSES, *EVICTED_CAUSES, "start-apparmor")
PROGRAM, UNKNOWN = "program", "unknown"
CAUSES = (*_EXPLAINED, PROGRAM, UNKNOWN)
_MESSAGE_KEYS = (Key.RUNTIME_SAYS.value, Key.LAST_WORDS.value)
FIRST_EXIT_GRACE_SECONDS = 60.0  # a first failure may not recur


@dataclass(frozen=True)
class Limits:
    """Runtime after a crash that counts as healthy, and how long a failed pod is reported."""

    steady: Seconds = 600.0
    failed_for: Seconds = 3600.0


def evaluate(pod: PodFact, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Containers that do not start or do not keep running. The memory holds since when each of them has failed."""
    if pod.deletion_at is not None or pod.phase == "Succeeded":
        return NOTHING
    before = memory if isinstance(memory, dict) else {}
    limits: Limits = context.limits.of({"namespace": pod.namespace, "pod": pod.name, "node": pod.node or ""})
    if (answer := _refused(pod)) is not None:
        ends = _ended(pod) + limits.failed_for
        return RuleResult((_pod_finding(pod, answer, context.facts),), next_at=ends) if now < ends else NOTHING
    findings, known, due = [], dict[str, float](), []
    for status in pod.statuses:
        known_since = before.get(status.name)
        answer, until = _diagnose(pod, status, limits, context, known_before=known_since is not None)
        due += [until] if until is not None else []
        if answer is not None:
            known[status.name] = min(known_since, now) if isinstance(known_since, int | float) else now
            findings.append(_finding(pod, status, answer, context.facts, known[status.name]))
    return RuleResult(tuple(findings), known or None, next_at=min(due, default=None))


def _refused(pod: PodFact) -> PodDiagnosis | None:
    """Why the kubelet refused or evicted the pod, if it did."""
    answer = refused(pod) if pod.phase == "Failed" else None
    return answer if answer is not None and answer.cause in _REMOVED_CAUSES else None


def _ended(pod: PodFact) -> float:
    times = [status.finished_at for status in pod.statuses] + [condition.since for condition in pod.conditions]
    return max(time for time in (*times, pod.started_at, pod.created_at, 0.0) if time is not None)


def _diagnose(
    pod: PodFact, status: ContainerStatusFact, limits: Limits, context: RuleContext, *, known_before: bool
) -> tuple[PodDiagnosis | None, float | None]:
    """Why a container fails, if it does, and when time alone may change that."""
    if status.state == "waiting":
        return _diagnose_waiting(pod, status, context.facts), None
    if status.state == "running":
        # A container runs for a while between two crashes.
        steady_at = status.started_at + limits.steady if status.started_at is not None else context.now
        fails = known_before and context.now < steady_at and status.last is not None and status.last.exit_code
        return (_diagnose_exit(pod, status, context.facts), steady_at) if fails else (None, None)
    if status.state != "terminated" or not status.exit_code:
        return None, None
    return _diagnose_terminated(pod, status, limits, context)


def _diagnose_terminated(
    pod: PodFact, status: ContainerStatusFact, limits: Limits, context: RuleContext
) -> tuple[PodDiagnosis | None, float | None]:
    answer, now = _diagnose_exit(pod, status, context.facts), context.now
    ended = status.finished_at if status.finished_at is not None else now
    if pod.phase == "Failed":
        reported = answer.cause in _CAUSES and now < ended + limits.failed_for and _failed_by_itself(pod, context.facts)
        return (answer, ended + limits.failed_for) if reported else (None, None)
    if answer.cause in _CAUSES or status.restart_count or now >= ended + FIRST_EXIT_GRACE_SECONDS:
        return answer, None
    return None, ended + FIRST_EXIT_GRACE_SECONDS


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
    program = PROGRAM if answer.cause.startswith("crash-") else UNKNOWN
    cause = _CAUSES.get(answer.cause, program)
    values = pod_values(pod, facts, container=status.name, restarts=status.restart_count)
    labels = pod_labels(pod, facts, container=status.name)
    evidence = (answer.headline, *answer.evidence)
    return make_finding(
        "pod-start-failed", cause, labels, values, evidence=evidence, advice=answer.advice, since=since,
        raw=raw_text(next(_messages(evidence, status), None)),
    )  # fmt: skip


def _pod_finding(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts) -> Finding:
    """Finding about a pod that the kubelet refused or evicted as a whole."""
    values = pod_values(pod, facts, container=pod.name, restarts=0)
    return make_finding(
        "pod-start-failed", _CAUSES[answer.cause], pod_labels(pod, facts), values,
        evidence=(answer.headline, *answer.evidence), advice=answer.advice, since=_ended(pod),
        raw=raw_text(pod.message) or pod.reason,
    )  # fmt: skip


def _messages(evidence: Iterable[Text], status: ContainerStatusFact) -> Iterator[str]:
    yield from (str(item.values["message"]) for item in evidence if item.key in _MESSAGE_KEYS)
    end = crash.last_termination(status)
    yield f"{end.reason or status.reason or '?'}, exit code {end.exit_code}"


_CONFIG = ("config-object-missing", "config-key-missing", "config-root", *_EXPLAINED["config"][1:])
_REFUSED = ("devices", "devices-ill", "node-refused", "admission-topology", "admission-affinity", "admission-other")
_EVICTED = ("evicted", "evicted-disk", *EVICTED_CAUSES[1:])
ADVICE = {cause: advice_keys(*causes) for cause, causes in _EXPLAINED.items()} | {
    "config": advice_keys(*_CONFIG),
    "refused": advice_keys(*_REFUSED),
    "evicted": advice_keys(*_EVICTED),
    PROGRAM: advice_keys("crash-error", "crash-usage", "crash-aborted", "crash-ended"),
    UNKNOWN: advice_keys("start-other"),
}
RULE = Rule(
    "pod-start-failed", Limits, CAUSES, evaluate, SubjectKind.POD, kube=("pods",),
    suppressed_by=("disk-full", "node-down"), advice=ADVICE,
)  # fmt: skip
