"""The labels under which an alert is known elsewhere, and those by which it is routed.

Both are those of its first notification. Alertmanager identifies an alert by all its labels, so they stay for as long
as it fires; only a worse severity replaces the previous one. Routes follow changed labels with the next notification.
Both are empty while they equal those of the finding.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from monitor.alert.model import SEVERITY_RANK, Alert, NotificationSubject, Phase, alertname, labels_of
from monitor.facts.findings import Finding, Severity

SEVERITY, CAUSE = "severity", "cause"


def with_finding(alert: Alert, finding: Finding) -> Alert:
    """The alert with its latest finding."""
    announced, routed = alert.announced, alert.routed
    if alert.phase is Phase.FIRING and alert.notified:
        announced = _unless_equal(_announced(alert, finding), _state(finding))
        routed = _unless_equal(routed or alert.finding.labels, finding.labels)
    return replace(alert, finding=finding, announced=announced, routed=routed)


def announced_labels(subject: NotificationSubject, cluster: str | None) -> dict[str, str]:
    """All labels under which an alert was announced; those of its finding in the first notification."""
    labels = labels_of(subject.finding, cluster)
    if not subject.announced:
        return labels
    common = {"cluster": cluster} if cluster is not None else {}
    return common | subject.announced | {"alertname": alertname(subject.finding.rule)}


def changed_labels(subject: NotificationSubject, announced: Mapping[str, str]) -> dict[str, str]:
    """Labels that have appeared or changed since an alert was announced; its cluster does not."""
    current = labels_of(subject.finding, None)
    return {name: value for name, value in current.items() if value and announced.get(name) != value}


def worse_severity(one: str, other: str) -> str:
    """The worse of two severities."""
    return min(one, other, key=lambda severity: SEVERITY_RANK[Severity(severity)])


def _announced(alert: Alert, finding: Finding) -> dict[str, str]:
    labels = alert.announced or _state(alert.finding)
    return labels | {SEVERITY: worse_severity(labels[SEVERITY], finding.severity)}


def _state(finding: Finding) -> dict[str, str]:
    return finding.labels | {SEVERITY: finding.severity.value, CAUSE: finding.cause}


def _unless_equal(labels: Mapping[str, str], current: Mapping[str, str]) -> dict[str, str]:
    return {} if labels == current else dict(labels)
