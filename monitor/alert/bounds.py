"""Limits of what alerting stores and sends, whatever the number of alerts."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from monitor.alert.model import Alert, Notification, NotificationSubject, Phase
from monitor.facts.findings import Finding

MAX_NOTIFICATION_BYTES = 1 << 20  # some 1,000 alerts; a chat shows the first five of them
MAX_USERS = 500


def stored_alert(alert: Alert) -> Alert:
    """The alert as it is stored."""
    return replace(alert, finding=_stored_finding(alert.finding)) if alert.finding.explains else alert


def stored_notification(notification: Notification) -> Notification:
    """The notification within its limit: the last subjects are left out and counted, but never the first."""
    subjects: list[NotificationSubject] = []
    room = MAX_NOTIFICATION_BYTES
    for subject in notification.subjects:
        short = replace(subject, finding=_stored_finding(subject.finding)) if subject.finding.explains else subject
        room -= len(msgspec.json.encode(short))
        if room < 0 and subjects:
            break
        subjects.append(short)
    if all(subject.phase is Phase.RESOLVED for subject in subjects):  # or the group would count as resolved
        subjects += [subject for subject in notification.subjects[len(subjects) :] if subject.phase is Phase.FIRING][:1]
    omitted = notification.omitted + len(notification.subjects) - len(subjects)
    users = notification.users[:MAX_USERS]
    return replace(notification, subjects=tuple(subjects), omitted=omitted, users=users)


def _stored_finding(finding: Finding) -> Finding:
    """The finding without the scopes that it explains, which may be thousands: they were applied when it was found."""
    return replace(finding, explains=())
