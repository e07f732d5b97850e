"""pod-start-failed: a container cannot be created or started, or keeps exiting; or the kubelet removed its pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.job_failures import explain_by_first
from monitor.detect.lib.pods import pod_labels, pod_values, raw_text
from monitor.detect.lib.shared_causes import explain_by_node
from monitor.detect.lib.start_failures import (
    ADVICE,
    CAUSES,
    DISTRIBUTED,
    PROGRAM,
    UNKNOWN,
    FailingContainer,
    cause_of,
)
from monitor.explain import crash, finished, starting
from monitor.explain.keys import Key
from monitor.explain.log_tail import log_counts, log_tail_of
from monitor.explain.model import PodDiagnosis, deciding_containers
from monitor.explain.pod import CANNOT_START_REASONS, CONFIGURATION_REASONS
from monitor.explain.refused import EVICTED_CAUSES, REFUSED_CAUSES, refused
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text

_REMOVED_CAUSES = (*REFUSED_CAUSES, *EVICTED_CAUSES, "start-apparmor")
# Programs fail, and so do the other processes of their jobs: not reported unless the container is restarted.
_ORDINARY = frozenset({PROGRAM, DISTRIBUTED, UNKNOWN})
_MESSAGE_KEYS = (Key.RUNTIME_SAYS.value, Key.LOG_SAYS.value, Key.LAST_WORDS.value)
LOG_READ_SECONDS = 10.0
FIRST_EXIT_GRACE_SECONDS = 60.0  # a first failure may not recur


@dataclass(frozen=True)
class Limits:
    """Runtime after a crash that counts as healthy, and how long a failed pod is reported."""

    steady: Seconds = 600.0
    failed_for: Seconds = 3600.0


def evaluate(pod: PodFact, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Containers that do not start or do not keep running.

    The memory holds since when each of them has failed, and what its log said: the agent may fall silent, and the log
    of the next failure is read a moment after it.
    """
    if pod.deletion_at is not None or pod.phase == "Succeeded":
        return NOTHING
    before = memory if isinstance(memory, dict) else {}
    limits: Limits = context.limits.of({"namespace": pod.namespace, "pod": pod.name, "node": pod.node or ""})
    if (answer := _refused(pod)) is not None:
        ends = _ended(pod) + limits.failed_for
        return RuleResult((_pod_finding(pod, answer, context.facts),), next_at=ends) if now < ends else NOTHING
    findings, known, due = [], dict[str, Any](), []
    for status in deciding_containers(pod):
        remembered = FailingContainer.load(before.get(status.name))
        answer, until = _diagnose(pod, status, limits, context, remembered)
        due += [until] if until is not None else []
        if answer is not None:
            failing = remembered.updated(pod, status, context)
            known[status.name] = failing.dump()
            findings.append(_finding(pod, status, answer, context.facts, failing.since or now))
    return RuleResult(tuple(findings), known or None, next_at=min(due, default=None))


def _refused(pod: PodFact) -> PodDiagnosis | None:
    """Why the kubelet refused or evicted the pod, if it did."""
    answer = refused(pod) if pod.phase == "Failed" else None
    return answer if answer is not None and answer.cause in _REMOVED_CAUSES else None


def _ended(pod: PodFact) -> float:
    times = [status.finished_at for status in pod.statuses] + [condition.since for condition in pod.conditions]
    return max(time for time in (*times, pod.started_at, pod.created_at, 0.0) if time is not None)


def _diagnose(
    pod: PodFact, status: ContainerStatusFact, limits: Limits, context: RuleContext, known: FailingContainer
) -> tuple[PodDiagnosis | None, float | None]:
    """Why a container fails, if it does, and when time alone may change that."""
    if known.since is None and (tail_due := _tail_due(pod, status, context)) is not None:
        return None, tail_due
    if status.state == "waiting":
        return _diagnose_waiting(pod, status, context.facts, known), None
    if status.state == "running":
        # A container runs for a while between two crashes.
        steady_at = status.started_at + limits.steady if status.started_at is not None else context.now
        failed = status.last is not None and status.last.exit_code
        fails = known.since is not None and context.now < steady_at and failed
        return (_diagnose_exit(pod, status, context.facts, known), steady_at) if fails else (None, None)
    if status.state != "terminated" or not status.exit_code:
        return None, None
    return _diagnose_terminated(pod, status, limits, context, known)


def _tail_due(pod: PodFact, status: ContainerStatusFact, context: RuleContext) -> float | None:
    """Until when the agent may still read the log of a container that has just failed: the first report waits."""
    end, snapshot = crash.last_termination(status), context.facts.snapshots.get(pod.node or "")
    if snapshot is None or snapshot.log_tails is None or end.finished_at is None:
        return None
    if not log_counts(end) or end.reason in crash.START_FAILED_REASONS:
        return None
    if status.state == "running" or end.container_id is None or log_tail_of(pod, end, context.facts) is not None:
        return None
    due = end.finished_at + LOG_READ_SECONDS
    return due if end.finished_at <= context.now < due else None


def _diagnose_terminated(
    pod: PodFact, status: ContainerStatusFact, limits: Limits, context: RuleContext, known: FailingContainer
) -> tuple[PodDiagnosis | None, float | None]:
    answer, now = _diagnose_exit(pod, status, context.facts, known), context.now
    remarkable = cause_of(answer) not in _ORDINARY
    ended = status.finished_at if status.finished_at is not None else now
    if pod.phase == "Failed":
        reported = remarkable and now < ended + limits.failed_for and _failed_by_itself(pod, context.facts)
        return (answer, ended + limits.failed_for) if reported else (None, None)
    if remarkable or status.restart_count or now >= ended + FIRST_EXIT_GRACE_SECONDS:
        return answer, None
    return None, ended + FIRST_EXIT_GRACE_SECONDS


def _diagnose_waiting(
    pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts, known: FailingContainer
) -> PodDiagnosis | None:
    if status.reason in CONFIGURATION_REASONS:
        return starting.bad_configuration(pod, status, facts)
    if status.reason in CANNOT_START_REASONS:
        return crash.cannot_start(pod, status, facts)
    return _diagnose_exit(pod, status, facts, known) if status.reason == "CrashLoopBackOff" else None


def _diagnose_exit(
    pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts, known: FailingContainer
) -> PodDiagnosis:
    end = crash.last_termination(status)
    if end.reason in crash.START_FAILED_REASONS:
        return crash.cannot_start(pod, status, facts)
    return crash.crashed(pod, status, facts, known.tail_of(end))


def _failed_by_itself(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether a failed pod was not evicted, which also kills its containers."""
    return finished.finished(pod, facts).cause.startswith(("crash-", "start-"))


def _finding(
    pod: PodFact, status: ContainerStatusFact, answer: PodDiagnosis, facts: ClusterFacts, since: float
) -> Finding:
    values = pod_values(pod, facts, container=status.name, restarts=status.restart_count)
    labels = pod_labels(pod, facts, container=status.name)
    # How many pods of the node share the fault is found once all of them have been evaluated.
    evidence = (answer.headline, *(text for text in answer.evidence if text.key != Key.START_SHARED))
    return make_finding(
        "pod-start-failed", cause_of(answer), labels, values, evidence=evidence, advice=answer.advice, since=since,
        raw=raw_text(next(_messages(evidence, status), None)),
    )  # fmt: skip


def _pod_finding(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts) -> Finding:
    """Finding about a pod that the kubelet refused or evicted as a whole."""
    values = pod_values(pod, facts, container=pod.name, restarts=0)
    return make_finding(
        "pod-start-failed", cause_of(answer), pod_labels(pod, facts), values,
        evidence=(answer.headline, *answer.evidence), advice=answer.advice, since=_ended(pod),
        raw=raw_text(pod.message) or pod.reason,
    )  # fmt: skip


def _messages(evidence: Iterable[Text], status: ContainerStatusFact) -> Iterator[str]:
    yield from (str(item.values["message"]) for item in evidence if item.key in _MESSAGE_KEYS)
    end = crash.last_termination(status)
    yield f"{end.reason or status.reason or '?'}, exit code {end.exit_code}"


def correlate(findings: Sequence[Finding], context: RuleContext) -> Sequence[Finding]:
    """The failures; those that a node or the first failure of a job causes are explained by it."""
    return explain_by_node(explain_by_first(findings, context))


RULE = Rule(
    "pod-start-failed", Limits, CAUSES, evaluate, SubjectKind.POD, uses=("log_tails",), kube=("pods",),
    suppressed_by=("disk-full", "node-down"), advice=ADVICE, correlate=correlate,
)  # fmt: skip
