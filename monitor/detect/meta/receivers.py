"""receiver-failing: a receiver rejects notifications, or has been unreachable for long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.detect.base import NoLimits, RuleMetadata
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("parked", "retrying")
PARKED, RETRYING = CAUSES
RETRYING_AFTER_SECONDS = 600.0
PARKED_FOR_SECONDS = 900.0  # a rejected notification is reported at least this long, and until the next success

# Without prometheus_alert: alerts/findings.rules.yml derives ReceiverFailing from the delivery metrics.
RULE = RuleMetadata("receiver-failing", NoLimits, CAUSES, prometheus_alert=False)


@dataclass(frozen=True)
class ReceiverStatus:
    """Delivery to one receiver. `parked` counts notifications rejected for good since the last success."""

    receiver: str
    kind: str
    error: str | None = None
    failing_since: float | None = None
    unsent: int = 0
    parked: int = 0
    parked_at: float | None = None


def receiver_findings(receivers: Iterable[ReceiverStatus], now: float) -> tuple[Finding, ...]:
    """A finding for each receiver that rejects notifications or keeps failing."""
    findings = (_evaluate(status, now) for status in receivers)
    return tuple(finding for finding in findings if finding is not None)


def _evaluate(status: ReceiverStatus, now: float) -> Finding | None:
    since = status.parked_at
    if since is not None and (status.parked > 0 or now - since < PARKED_FOR_SECONDS):
        return _finding(status, PARKED, Severity.CRITICAL, since, max(1, status.parked), now)
    since = status.failing_since
    if since is not None and now - since >= RETRYING_AFTER_SECONDS:
        return _finding(status, RETRYING, Severity.WARNING, since, status.unsent, now)
    return None


def _finding(status: ReceiverStatus, cause: str, severity: Severity, since: float, count: int, now: float) -> Finding:
    values: dict[str, Value] = {
        "receiver": status.receiver,
        "kind": status.kind,
        "error": status.error or "",
        "count": count,
        "seconds": max(0.0, now - since),
    }
    return Finding(
        rule=RULE.rule,
        severity=severity,
        cause=cause,
        labels={"service": f"receiver/{status.receiver}"},
        headline=Text(key=f"{RULE.rule}.{cause}", values=values),
        advice=(Text(key=f"{RULE.rule}.advice", values=values),),
        since=since,
    )
