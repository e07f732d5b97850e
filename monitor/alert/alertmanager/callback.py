"""Webhook calls from an Alertmanager, forwarded to chats that it cannot reach itself.

Alertmanager has already grouped, silenced and repeated. What remains: replicas that call with the same content count
once, and our own alerts are reported in our own words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated

import msgspec

from monitor.alert.announced import CAUSE, SEVERITY
from monitor.alert.model import (
    EXTERNAL,
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationLogEntry,
    NotificationReason,
    NotificationSubject,
    Phase,
    alertname,
    alerts_by_key,
    fingerprint_of,
    fingerprint_of_key,
    former_key,
    has_escalated,
    notification_id,
    worst_severity,
)
from monitor.base.bounded_json import decode_bounded
from monitor.base.text import shorten, shorten_name
from monitor.detect.bounds import bounded_finding
from monitor.facts.base import LONG_LIST, BoundedText, Identifier
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.text import Text

REPLICA_WINDOW_SECONDS = 300.0  # identical calls within this come from replicas; a later one is a repetition
MAX_ANNOTATION_CHARS = 1000
MAX_GROUP_CHARS = 1000
MAX_LOGGED_GROUPS = 10_000
SEVERITIES = {
    **dict.fromkeys(("critical", "page", "emergency", "fatal", "disaster", "error"), Severity.CRITICAL),
    **dict.fromkeys(("info", "none", "debug", "low"), Severity.INFO),
}
Subjects = list[NotificationSubject]


class CallbackAlert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert in the payload of Alertmanager's webhook."""

    status: BoundedText
    labels: dict[BoundedText, BoundedText]
    fingerprint: Identifier
    starts_at: datetime
    annotations: dict[BoundedText, BoundedText] = msgspec.field(default_factory=dict)
    ends_at: datetime | None = None


class CallbackPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Payload of Alertmanager's webhook, version 4, as far as it is used here."""

    group_key: BoundedText
    alerts: Annotated[tuple[CallbackAlert, ...], LONG_LIST]
    version: Identifier = "4"


class NotificationLog(msgspec.Struct, frozen=True, kw_only=True):
    """Notifications about Alertmanager's calls; saved, so that a restart repeats none."""

    told: tuple[NotificationLogEntry, ...] = ()


@dataclass(frozen=True)
class OwnAlerts:
    """Alerts of this daemon by fingerprint, its rules, and the cluster's name."""

    alerts: Mapping[str, Alert] = field(default_factory=dict)
    rules: Collection[str] = ()
    cluster: str | None = None

    @cached_property
    def by_key(self) -> dict[str, Alert]:
        """Alerts by the keys of their findings."""
        return alerts_by_key(self.alerts.values())

    def fingerprint(self, finding: Finding) -> str:
        """Fingerprint of the alert of one of our findings."""
        known = self.by_key.get(finding.key)
        return known.fingerprint if known is not None else fingerprint_of(finding)


@dataclass(frozen=True)
class CallbackResult:
    """Notifications to send, and the log after that."""

    notifications: tuple[Notification, ...]
    log: NotificationLog


_decoder = msgspec.json.Decoder(CallbackPayload)


def read_payload(body: bytes) -> CallbackPayload:
    """Payload of a call. Raise ValueError with a message for the caller."""
    try:
        payload = decode_bounded(_decoder, body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"this is not a payload of Alertmanager's webhook: {error}") from None
    if payload.version != "4":
        raise ValueError(f"version {payload.version!r} of Alertmanager's webhook is not supported; only 4 is")
    return payload


def process_callback(
    payload: CallbackPayload, receivers: Iterable[str], before: NotificationLog, own: OwnAlerts, now: float
) -> CallbackResult:
    """Notifications to `receivers` about a call, given the log of previous ones."""
    findings = [_finding(alert, own) for alert in payload.alerts]
    log = {(entry.receiver, entry.group): entry for entry in _with_present_fingerprints(before.told, findings, own)}
    subjects = _deduplicated(
        _subject(alert, finding, own, now) for alert, finding in zip(payload.alerts, findings, strict=True)
    )
    notifications = []
    for receiver in receivers:
        key = receiver, shorten_name(f"{EXTERNAL}|{payload.group_key}", MAX_GROUP_CHARS)
        notification = _notification(*key, subjects, log.get(key), now)
        if notification is not None:
            notifications.append(notification)
            log[key] = NotificationLogEntry(receiver=receiver, group=key[1], at=now, firing=_firing(subjects))
    return CallbackResult(
        tuple(notifications), NotificationLog(told=_latest(entry for entry in log.values() if entry.firing))
    )


def _with_present_fingerprints(
    entries: Iterable[NotificationLogEntry], findings: Iterable[Finding], own: OwnAlerts
) -> Iterable[NotificationLogEntry]:
    """Entries with the present fingerprints of our alerts, which an older version logged by all their labels."""
    present = {
        fingerprint_of_key(former_key(finding.rule, finding.labels)): own.fingerprint(finding)
        for finding in findings
        if finding.rule in own.rules
    }
    for entry in entries:
        firing = {present.get(fingerprint, fingerprint): severity for fingerprint, severity in entry.firing.items()}
        yield entry if firing.keys() == entry.firing.keys() else msgspec.structs.replace(entry, firing=firing)


def _latest(entries: Iterable[NotificationLogEntry]) -> tuple[NotificationLogEntry, ...]:
    """Entries within the limit; a group that is left out would be notified as a new one."""
    kept = tuple(entries)
    if len(kept) <= MAX_LOGGED_GROUPS:
        return kept
    return tuple(sorted(kept, key=lambda entry: entry.at)[-MAX_LOGGED_GROUPS:])


def _notification(
    receiver: str, group: str, subjects: Subjects, before: NotificationLogEntry | None, now: float
) -> Notification | None:
    known = before.firing if before is not None else {}
    resolved = [entry for entry in subjects if entry.phase is Phase.RESOLVED and entry.fingerprint in known]
    firing = [entry for entry in subjects if entry.phase is Phase.FIRING]
    reason = _reason(before, firing, resolved, now)
    if reason is None:
        return None
    included = [_marked(entry, known, reason) for entry in (*firing, *resolved)]
    included.sort(
        key=lambda entry: (not entry.fresh, SEVERITY_RANK[entry.finding.severity], entry.since, entry.fingerprint)
    )
    logged_at = repr(before.at if before is not None else None)
    return Notification(
        # Without the time: a call that is repeated after a crash gets the same id.
        id=notification_id(receiver, group, reason.value, logged_at, *map(_description, included)),
        receiver=receiver,
        group=group,
        reason=reason,
        severity=worst_severity([entry.finding.severity for entry in firing or resolved]),
        at=now,
        subjects=tuple(included),
        users=tuple(sorted({entry.finding.labels["user"] for entry in firing if "user" in entry.finding.labels})),
    )


def _reason(
    before: NotificationLogEntry | None, firing: Subjects, resolved: Subjects, now: float
) -> NotificationReason | None:
    if before is None:
        return NotificationReason.NEW if firing else None
    if any(_escalated(entry, before.firing) for entry in firing):
        return NotificationReason.WORSE
    if any(entry.fingerprint not in before.firing for entry in firing):
        return NotificationReason.MORE
    if resolved:
        return NotificationReason.RESOLVED
    repeated = firing and abs(now - before.at) >= REPLICA_WINDOW_SECONDS
    return NotificationReason.REPEAT if repeated else None


def _escalated(subject: NotificationSubject, known: Mapping[str, Severity]) -> bool:
    return has_escalated(subject.fingerprint, subject.finding.severity, known)


def _marked(
    subject: NotificationSubject, known: Mapping[str, Severity], reason: NotificationReason
) -> NotificationSubject:
    news = subject.phase is Phase.RESOLVED or subject.fingerprint not in known or _escalated(subject, known)
    return msgspec.structs.replace(subject, fresh=news and reason is not NotificationReason.REPEAT)


def _firing(subjects: Subjects) -> dict[str, Severity]:
    return {entry.fingerprint: entry.finding.severity for entry in subjects if entry.phase is Phase.FIRING}


def _description(subject: NotificationSubject) -> str:
    return f"{subject.fingerprint} {subject.phase} {subject.finding.severity} {subject.since}"


def _deduplicated(subjects: Iterable[NotificationSubject]) -> Subjects:
    """One subject per fingerprint: firing before resolved, then the most severe.

    For Alertmanager an alert that got worse is another alert, because the severity is a label.
    """
    by_fingerprint: dict[str, NotificationSubject] = {}
    for subject in subjects:
        known = by_fingerprint.get(subject.fingerprint, subject)
        by_fingerprint[subject.fingerprint] = min(known, subject, key=_precedence)
    return list(by_fingerprint.values())


def _precedence(subject: NotificationSubject) -> tuple[bool, int]:
    return subject.phase is not Phase.FIRING, SEVERITY_RANK[subject.finding.severity]


def _subject(alert: CallbackAlert, finding: Finding, own: OwnAlerts, now: float) -> NotificationSubject:
    """Subject of a received alert with its finding. One of our own gets our fingerprint and our finding.

    If severity or cause differ from those announced, another replica may have seen the change sooner, so the received
    alert counts.
    """
    resolved = alert.status == "resolved"
    is_own = finding.rule in own.rules
    known = own.by_key.get(finding.key) if is_own else None
    return NotificationSubject(
        fingerprint=own.fingerprint(finding) if is_own else alert.fingerprint,
        finding=known.finding if known is not None and _same(known, finding) else finding,
        phase=Phase.RESOLVED if resolved else Phase.FIRING,
        since=min(alert.starts_at.timestamp(), now),
        resolved_at=min(alert.ends_at.timestamp(), now) if resolved and alert.ends_at is not None else None,
    )


def _same(known: Alert, received: Finding) -> bool:
    severity, cause = known.announced.get(SEVERITY), known.announced.get(CAUSE)
    expected = (severity or known.finding.severity, cause or known.finding.cause)
    return expected == (received.severity, received.cause)


def _finding(alert: CallbackAlert, own: OwnAlerts) -> Finding:
    labels = alert.labels
    texts = {name: shorten(text, MAX_ANNOTATION_CHARS) for name, text in alert.annotations.items()}
    name = labels.get("alertname", EXTERNAL)
    rule = next((rule for rule in own.rules if alertname(rule) == name), name)
    subject = {key: labels[key] for key in LABELS if labels.get(key)}
    if subject.get("cluster") == own.cluster:
        subject.pop("cluster", None)
    if not subject and "instance" in labels:
        subject["service"] = labels["instance"]
    headline = texts.get("summary") or texts.get("description") or texts.get("message") or name
    detail = texts.get("description")
    advice = [text for text in (texts.get("advice"), texts.get("runbook_url")) if text]
    finding = Finding(
        rule=rule,
        severity=SEVERITIES.get(labels.get("severity", "").lower(), Severity.WARNING),
        cause=labels.get("cause", EXTERNAL),
        labels=subject,
        headline=_text(headline),
        evidence=(_text(detail),) if detail and detail != headline else (),
        advice=tuple(_text(text) for text in advice),
    )
    return bounded_finding(finding)


def _text(text: str) -> Text:
    return Text(key=EXTERNAL, values={"text": text})
