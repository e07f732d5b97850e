"""What an Alertmanager tells us -> what is told to chats that it cannot speak to itself. Pure.

Alertmanager has grouped, silenced and repeated already. What is left to do: of several replicas that call with the same
news only the first is heard, and news about our own alerts is told in our own words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from monitor.alert.model import (
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationLogEntry,
    NotificationReason,
    NotificationSubject,
    Phase,
    alertname,
    fingerprint_of,
    worst_severity,
)
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.text import Text

REPLICA_WINDOW_SECONDS = (
    300.0  # replicas of one Alertmanager have all called within this; what comes later is meant as a repetition
)
EXTERNAL = "external"
MAX_ANNOTATION_CHARS = 1000
SEVERITIES = {
    **dict.fromkeys(("critical", "page", "emergency", "fatal", "disaster", "error"), Severity.CRITICAL),
    **dict.fromkeys(("info", "none", "debug", "low"), Severity.INFO),
}


class CallbackAlert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert in the payload of an Alertmanager's webhook."""

    status: str
    labels: dict[str, str]
    fingerprint: str
    starts_at: datetime
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    ends_at: datetime | None = None


class CallbackPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an Alertmanager's webhook sends, version 4; of it, what is needed here."""

    group_key: str
    alerts: tuple[CallbackAlert, ...]
    version: str = "4"


class NotificationLog(msgspec.Struct, frozen=True, kw_only=True):
    """What was told of what Alertmanager told us. Saved, so that a restart repeats nothing."""

    told: tuple[NotificationLogEntry, ...] = ()


@dataclass(frozen=True)
class OwnAlerts:
    """What is known here: our own alerts by fingerprint, our rules, the cluster's name."""

    alerts: Mapping[str, Alert] = field(default_factory=dict)
    rules: Collection[str] = ()
    cluster: str | None = None


@dataclass(frozen=True)
class CallbackResult:
    """What to send, and what was told after that."""

    notifications: tuple[Notification, ...]
    told: NotificationLog


def read_payload(body: bytes) -> CallbackPayload:
    """Given the body of an Alertmanager's call, return what it says. Raise ValueError in plain words."""
    try:
        payload = msgspec.json.decode(body, type=CallbackPayload)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"this is not what an Alertmanager's webhook sends: {error}") from None
    if payload.version != "4":
        raise ValueError(f"version {payload.version!r} of an Alertmanager's webhook is not understood; only 4 is")
    return payload


def process_callback(
    payload: CallbackPayload, receivers: Iterable[str], before: NotificationLog, ours: OwnAlerts, now: float
) -> CallbackResult:
    """Given a call, whom it is for and what was told before, return what is to be told now."""
    told = {(each.receiver, each.group): each for each in before.told}
    subjects = _one_each(_subject(alert, ours, now) for alert in payload.alerts)
    notifications = []
    for receiver in receivers:
        key = receiver, f"{EXTERNAL}|{payload.group_key}"
        news = _notification(*key, subjects, told.get(key), now)
        if news is not None:
            notifications.append(news)
            told[key] = NotificationLogEntry(receiver=receiver, group=key[1], at=now, firing=_firing(subjects))
    left = tuple(each for each in told.values() if each.firing)
    return CallbackResult(tuple(notifications), NotificationLog(told=left))


def _notification(
    receiver: str, group: str, subjects: list[NotificationSubject], before: NotificationLogEntry | None, now: float
) -> Notification | None:
    known = before.firing if before is not None else {}
    over = [each for each in subjects if each.phase is Phase.RESOLVED and each.fingerprint in known]
    firing = [each for each in subjects if each.phase is Phase.FIRING]
    reason = _reason(before, firing, over, now)
    if reason is None:
        return None
    told = [_fresh(each, known, reason) for each in (*firing, *over)]
    told.sort(key=lambda each: (not each.fresh, SEVERITY_RANK[each.finding.severity], each.since, each.fingerprint))
    return Notification(
        id=_id(receiver, group, reason, before, told),
        receiver=receiver,
        group=group,
        reason=reason,
        severity=worst_severity([each.finding.severity for each in firing or over]),
        at=now,
        subjects=tuple(told),
        users=tuple(sorted({each.finding.labels["user"] for each in firing if "user" in each.finding.labels})),
    )


def _reason(
    before: NotificationLogEntry | None, firing: list[NotificationSubject], over: list[NotificationSubject], now: float
) -> NotificationReason | None:
    if before is None:
        return NotificationReason.NEW if firing else None
    if any(_worse(each, before.firing) for each in firing):
        return NotificationReason.WORSE
    if any(each.fingerprint not in before.firing for each in firing):
        return NotificationReason.MORE
    if over:
        return NotificationReason.RESOLVED
    return NotificationReason.REPEAT if firing and abs(now - before.at) >= REPLICA_WINDOW_SECONDS else None


def _worse(subject: NotificationSubject, known: Mapping[str, Severity]) -> bool:
    before = known.get(subject.fingerprint)
    return before is not None and SEVERITY_RANK[subject.finding.severity] < SEVERITY_RANK[before]


def _fresh(
    subject: NotificationSubject, known: Mapping[str, Severity], reason: NotificationReason
) -> NotificationSubject:
    news = subject.phase is Phase.RESOLVED or subject.fingerprint not in known or _worse(subject, known)
    return msgspec.structs.replace(subject, fresh=news and reason is not NotificationReason.REPEAT)


def _firing(subjects: list[NotificationSubject]) -> dict[str, Severity]:
    return {each.fingerprint: each.finding.severity for each in subjects if each.phase is Phase.FIRING}


def _id(
    receiver: str,
    group: str,
    reason: NotificationReason,
    before: NotificationLogEntry | None,
    subjects: list[NotificationSubject],
) -> str:
    """Return what a notification is known by: the same if the same call has to be answered again after a crash."""
    parts = [receiver, group, reason.value, repr(before.at if before is not None else None)]
    parts += [f"{each.fingerprint} {each.phase} {each.finding.severity} {each.since}" for each in subjects]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _one_each(subjects: Iterable[NotificationSubject]) -> list[NotificationSubject]:
    """Return each once: to Alertmanager, one that became worse is another alert. What fires counts, and the worst."""
    found: dict[str, NotificationSubject] = {}
    for each in subjects:
        known = found.get(each.fingerprint)
        found[each.fingerprint] = each if known is None else min(known, each, key=_weight)
    return list(found.values())


def _weight(subject: NotificationSubject) -> tuple[bool, int]:
    return subject.phase is not Phase.FIRING, SEVERITY_RANK[subject.finding.severity]


def _subject(alert: CallbackAlert, ours: OwnAlerts, now: float) -> NotificationSubject:
    """Return a called alert. One of ours goes by our own name for it, and is told as we know it.

    Another replica may have seen sooner that it is worse: then what is called counts.
    """
    over = alert.status == "resolved"
    finding = _finding(alert, ours)
    fingerprint = fingerprint_of(finding) if finding.rule in ours.rules else alert.fingerprint
    own = ours.alerts.get(fingerprint)
    return NotificationSubject(
        fingerprint=fingerprint,
        finding=own.finding if own is not None and _same(own.finding, finding) else finding,
        phase=Phase.RESOLVED if over else Phase.FIRING,
        since=min(alert.starts_at.timestamp(), now),
        resolved_at=min(alert.ends_at.timestamp(), now) if over and alert.ends_at is not None else None,
    )


def _same(own: Finding, called: Finding) -> bool:
    return (own.severity, own.cause) == (called.severity, called.cause)


def _finding(alert: CallbackAlert, ours: OwnAlerts) -> Finding:
    labels, said = alert.labels, {name: text[:MAX_ANNOTATION_CHARS] for name, text in alert.annotations.items()}
    name = labels.get("alertname", EXTERNAL)
    rule = next((rule for rule in ours.rules if alertname(rule) == name), name)
    subject = {key: labels[key] for key in LABELS if labels.get(key)}
    if subject.get("cluster") == ours.cluster:
        subject.pop("cluster", None)
    if not subject and "instance" in labels:
        subject["service"] = labels["instance"]
    headline = said.get("summary") or said.get("description") or said.get("message") or name
    detail = said.get("description")
    advice = [text for text in (said.get("advice"), said.get("runbook_url")) if text]
    return Finding(
        rule=rule,
        severity=SEVERITIES.get(labels.get("severity", "").lower(), Severity.WARNING),
        cause=labels.get("cause", EXTERNAL),
        labels=subject,
        headline=_note(headline),
        evidence=(_note(detail),) if detail and detail != headline else (),
        advice=tuple(_note(text) for text in advice),
    )


def _note(text: str) -> Text:
    return Text(key=EXTERNAL, values={"text": text})
