"""The message about the end of a job."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from monitor.alert.model import (
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    notification_id,
)
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from monitor.job_results.model import JobEnding, JobOutcome

RULES = tuple(outcome.value for outcome in JobOutcome)
HOUR_SECONDS = 3600.0
_MAX_LABEL_CHARS = 200


def result_notifications(
    ending: JobEnding, utilization: float | None, receivers: Sequence[str], now: float
) -> tuple[Notification, ...]:
    """One notification per receiver; `utilization` is the mean of the job's GPUs, if known."""
    finding = result_finding(ending, utilization)
    subject = NotificationSubject(
        fingerprint=ending.id,
        finding=finding,
        phase=Phase.FIRING,
        since=ending.ended_at if ending.started_at is None else ending.started_at,
        resolved_at=ending.ended_at if ending.started_at is not None else None,
    )
    return tuple(
        Notification(
            id=notification_id("job-result", ending.id, receiver),
            receiver=receiver,
            group=f"job-result|{ending.id}",
            reason=NotificationReason.NEW,
            severity=finding.severity,
            at=now,
            subjects=(subject,),
            users=(ending.user,) if ending.user else (),
            page=f"why?q={quote(f'{ending.namespace}/{ending.pod}', safe='')}",
        )
        for receiver in receivers
    )


def result_finding(ending: JobEnding, utilization: float | None) -> Finding:
    """What the message says: the cause, what the job used, and the pod that failed first."""
    labels = {"namespace": ending.namespace, "job": ending.job, "user": ending.user}  # a queue would be its place
    return Finding(
        rule=ending.outcome.value,
        severity=Severity.INFO if ending.outcome is JobOutcome.FINISHED else Severity.WARNING,
        cause=ending.why.cause,
        labels={name: value[:_MAX_LABEL_CHARS] for name, value in labels.items() if value},
        headline=ending.why.headline,
        evidence=(*ending.why.evidence[:1], *_usage(ending, utilization), *_pods(ending), *ending.why.evidence[1:]),
        advice=ending.why.advice,
        since=ending.started_at,
    )


def _usage(ending: JobEnding, utilization: float | None) -> tuple[Text, ...]:
    if not ending.gpu_seconds:
        return ()
    values: dict[str, Value] = {"hours": round(ending.gpu_seconds / HOUR_SECONDS, 2)}
    if utilization is None:
        return (Text("job-result.gpu-hours", values),)
    return (Text("job-result.gpu-hours-used", values | {"ratio": utilization}),)


def _pods(ending: JobEnding) -> tuple[Text, ...]:
    """Of a job of several pods, which one decided."""
    if ending.count <= 1:
        return ()
    values: dict[str, Value] = {"count": ending.count, "pod": ending.pod, "node": ending.node or "?"}
    if ending.outcome is JobOutcome.FINISHED:
        return (Text("job-result.pods", values),)
    if ending.others:
        return (Text("job-result.first-of", values | {"others": ending.others}),)
    return (Text("job-result.pod-of", values),)
