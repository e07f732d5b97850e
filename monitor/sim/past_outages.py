"""Outages of the last seven days: what they did to the figures, and their alerts, all of them resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec.structs import replace

from monitor.alert.model import (
    Acknowledgement,
    Alert,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    alertname,
    fingerprint_of,
    notification_id,
)
from monitor.alert.notify import NotifyDecision
from monitor.alert.store import AlertStore
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from monitor.sim.node import GIB
from monitor.sim.past import DAY_SECONDS, HOUR_SECONDS, ClusterPast, PastJob

MINUTE_SECONDS = 60.0
HOT_CELSIUS = 91.0
FULL_RATIO = 0.93
RUNTIME_MOUNT = "/var/lib/docker"
RECEIVER = "ops"
DELIVERY_SECONDS = 1.0
ZOMBIE_SECONDS, ZOMBIE_WITHIN_SECONDS = 50 * MINUTE_SECONDS, 4 * DAY_SECONDS


@dataclass(frozen=True)
class PastOutage:
    """An outage: `ago` is how long before the demo it began, `fires_after` when its alert fired, all in seconds."""

    rule: str
    cause: str
    ago: float
    lasts: float
    fires_after: float
    labels: dict[str, str]
    values: dict[str, Value] = field(default_factory=dict)  # of headline, evidence and advice
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    severity: Severity = Severity.WARNING
    handled_by: str | None = None  # who acknowledged it
    comment: str = ""

    def covers(self, at: float, now: float) -> bool:
        """Whether the outage lasted at a time."""
        return now - self.ago <= at < now - self.ago + self.lasts

    def finding(self, now: float) -> Finding:
        """The finding, with its figures at the time when the alert fired."""
        values = self.labels | {"seconds": self.fires_after} | self.values
        headline, evidence, advice = (
            tuple(Text(key=key, values=dict(values)) for key in keys)
            for keys in ((f"{self.rule}.{self.cause}",), self.evidence, self.advice)
        )
        return Finding(
            rule=self.rule, severity=self.severity, cause=self.cause, labels=dict(self.labels), headline=headline[0],
            evidence=evidence, advice=advice, since=now - self.ago,
        )  # fmt: skip


def past_outages(past: ClusterPast) -> tuple[PastOutage, ...]:
    """The outages of a cluster, oldest first."""
    down, hot, full = (past.nodes[number % len(past.nodes)] for number in (5, 1, 3))
    outages = [
        PastOutage(
            "node-down", "kubelet-silent", 5 * DAY_SECONDS + 3 * HOUR_SECONDS, 42 * MINUTE_SECONDS, 60.0,
            {"node": down}, {"error": "no route to host", "count": 3, "gpus": 6},
            ("node-down.agent-silent", "node-down.pods"), ("node-down.kubelet-silent.advice",), Severity.CRITICAL,
            "zhao", "power supply replaced",
        ),
        PastOutage(
            "gpu-hot", "thermal", 3 * DAY_SECONDS + 6 * HOUR_SECONDS, 75 * MINUTE_SECONDS, 300.0,
            {"node": hot, "gpu": "1"}, {"celsius": HOT_CELSIUS, "watts": 290, "limit": 400, "megahertz": 1005},
            ("gpu-hot.temperature", "gpu-hot.power", "gpu-hot.clock"), ("gpu-hot.thermal.advice",),
            Severity.WARNING, "li", "fan cleaned",
        ),
        PastOutage(
            "disk-full", "images", 2 * DAY_SECONDS + 2 * HOUR_SECONDS, 35 * MINUTE_SECONDS, 5.0,
            {"node": full, "mount": RUNTIME_MOUNT},
            {
                "place": full, "share": FULL_RATIO, "available": 72 * GIB, "bytes": 780 * GIB,
                "used": 952 * GIB, "size": 1024 * GIB,
            },
            ("disk-space", "disk-part.images"), ("disk-full.images.advice",),
        ),
        PastOutage(
            "service-down", "status", 26 * HOUR_SECONDS, 6 * MINUTE_SECONDS, 30.0,
            {"service": "portal"}, {"status": 502, "target": "http://portal.lab/", "message": "502 Bad Gateway"},
            ("service-down.says",), ("service-down.status.advice",), Severity.CRITICAL,
        ),
    ]  # fmt: skip
    free = _longest_free(past)
    if free is not None:
        outages.append(_zombie(past.now, *free))
    return tuple(sorted(outages, key=lambda outage: -outage.ago))


def _longest_free(past: ClusterPast) -> tuple[PastJob, int] | None:
    """The job after which a GPU was free for the longest time in the last days, and that GPU."""
    gaps = [
        (after.begin - before.end, before, index)
        for gpus in past.gpus.values()
        for index, gpu in enumerate(gpus)
        for before, after in pairwise(gpu.jobs)
        if before.end is not None and before.end > past.now - ZOMBIE_WITHIN_SECONDS and len(before.gpus) == 1
    ]
    seconds, job, index = max(gaps, key=lambda gap: gap[0], default=(0.0, None, 0))
    return None if job is None or seconds < ZOMBIE_SECONDS else (job, index)


def _zombie(now: float, job: PastJob, gpu: int) -> PastOutage:
    """An outage whose finished pod kept a GPU that was free afterwards."""
    labels = {
        "node": job.node, "gpu": str(gpu), "namespace": job.team, "pod": "resnet-511-0", "user": job.user,
        "job": "resnet-511",
    }  # fmt: skip
    return PastOutage(
        "gpu-zombie", "pod-finished", now - (job.end or now), ZOMBIE_SECONDS, 120.0, labels,
        {"pod": f"{job.team}/resnet-511-0", "pid": 41235, "bytes": 56 * GIB},
        ("gpu-zombie.process", "card-memory"), ("gpu-zombie.advice",), Severity.WARNING, job.user, "released",
    )  # fmt: skip


def record_alerts(store: AlertStore, outages: Sequence[PastOutage], now: float) -> None:
    """Write the alerts with timelines and messages; none is left among the current alerts, and nothing is sent now."""
    for outage in sorted(outages, key=lambda each: -each.ago):
        finding, began = outage.finding(now), now - outage.ago
        fired, ended = began + outage.fires_after, began + outage.lasts
        alert = Alert(
            fingerprint=fingerprint_of(finding), finding=finding, phase=Phase.FIRING, first_seen_at=began,
            seen_at=fired, fired_at=fired, group=alertname(outage.rule), firings=(fired,), notified=(RECEIVER,),
        )  # fmt: skip
        store.record({alert.fingerprint: alert}, NotifyDecision(), fired)
        _deliver(store, alert, NotificationReason.NEW, fired)
        if outage.handled_by is not None:
            taken = fired + (ended - fired) / 4
            note = Acknowledgement(at=taken, by=outage.handled_by, comment=outage.comment)
            alert = replace(alert, acknowledged=note, seen_at=taken)
            store.record({alert.fingerprint: alert}, NotifyDecision(), taken)
        alert = replace(alert, phase=Phase.RESOLVED, resolved_at=ended, seen_at=ended)
        store.record({alert.fingerprint: alert}, NotifyDecision(), ended)
        _deliver(store, alert, NotificationReason.RESOLVED, ended)
        store.record({alert.fingerprint: None}, NotifyDecision(), ended)


def _deliver(store: AlertStore, alert: Alert, reason: NotificationReason, at: float) -> None:
    """Write a message about the alert as one that was delivered then."""
    subject = NotificationSubject(
        fingerprint=alert.fingerprint, finding=alert.finding, phase=alert.phase, since=alert.fired_at or at,
        resolved_at=alert.resolved_at,
    )  # fmt: skip
    group = alert.group or alertname(alert.finding.rule)
    notification = Notification(
        id=notification_id(RECEIVER, alert.fingerprint, reason, str(at)), receiver=RECEIVER, group=group,
        reason=reason, severity=alert.finding.severity, at=at, subjects=(subject,),
    )  # fmt: skip
    store.record({}, NotifyDecision(notifications=(notification,)), at)
    waiting = store.outbox.queue(RECEIVER, DELIVERY_SECONDS, at).waiting
    batch = store.outbox.claim(RECEIVER, [entry.sequence for entry in waiting], at)
    store.outbox.sent(batch, "ok", at + DELIVERY_SECONDS)
