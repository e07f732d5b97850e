"""Test messages: an invented alert shows what a message looks like and whether it arrives."""

from __future__ import annotations

from string import Formatter

from monitor.alert.model import (
    Batch,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    fingerprint_of,
    notification_id,
)
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from monitor.i18n import CATALOGS

AGE_SECONDS = 600.0
LABELS = {"node": "gpu-01", "user": "zhang"}
# Values of placeholders: by their format if it has an example, else by their name.
BY_NAME: dict[str, Value] = {
    "node": "gpu-01", "gpu": "0", "pod": "bert-0", "namespace": "team-a", "user": "zhang", "job": "bert",
    "mount": "/data", "image": "harbor.lab/team/train:1", "registry": "harbor.lab", "queue": "default",
    "seconds": AGE_SECONDS, "count": 3, "error": "connection refused", "message": "no space left on device",
    "why": "connection refused", "service": "portal", "receiver": "wecom", "kind": "wecom", "source": "pods",
    "container": "main", "pid": 4242, "pids": "4242", "gpus": "0", "where": "gpu-01", "target": "harbor.lab",
}  # fmt: skip
BY_FORMAT: dict[str, Value] = {"duration": AGE_SECONDS, "bytes": 59 * 2**30, "percent": 0.97, "gpus": 8, "free-gpus": 8}


def sample_batch(receiver: str, rule: str, cause: str, now: float) -> Batch:
    """Test message for a rule and a cause. Raise ValueError if the catalogs have no text for them."""
    finding = sample_finding(rule, cause, now)
    subject = NotificationSubject(
        fingerprint=fingerprint_of(finding), finding=finding, phase=Phase.FIRING, since=now - AGE_SECONDS
    )  # fmt: skip
    sample_id = notification_id(f"sample {receiver} {rule} {now}")
    notification = Notification(
        id=sample_id,
        receiver=receiver,
        group=f"sample|{rule}",
        reason=NotificationReason.NEW,
        severity=finding.severity,
        at=now,
        subjects=(subject,),
        users=(LABELS["user"],),
        sample=True,
    )
    return Batch(id=sample_id, receiver=receiver, notifications=(notification,), at=now)


def sample_finding(rule: str, cause: str, now: float) -> Finding:
    """Invented finding of a rule and a cause. Raise ValueError if the catalogs have no text for them."""
    catalog, wanted = CATALOGS["en"], f"{rule}.{cause}"
    headline = next((key for key in (wanted, rule) if key in catalog), None)
    headline = headline or next((key for key in catalog if key.startswith((f"{wanted}.", f"{wanted}-"))), None)
    if headline is None:
        raise ValueError(f"there is no text for {wanted}")
    advice = next((key for key in (f"{wanted}.advice", f"{rule}.advice") if key in catalog), None)
    return Finding(
        rule=rule,
        severity=Severity.WARNING,
        cause=cause,
        labels=dict(LABELS),
        headline=_filled(headline),
        advice=(_filled(advice),) if advice is not None else (),
        since=now - AGE_SECONDS,
    )


def _filled(key: str) -> Text:
    """Text with a value for each placeholder."""
    values: dict[str, Value] = {}
    for _, name, form, _ in Formatter().parse(CATALOGS["en"][key]):
        if name is not None:
            values[name] = BY_FORMAT.get(form or "", 3 if "|" in (form or "") else BY_NAME.get(name, "…"))
    return Text(key=key, values=values)
