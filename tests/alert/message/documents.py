# ruff: noqa: E501  # a finding is a row of a table
"""Realistic batches: findings with keys and values of the rules, in every kind of message."""

from __future__ import annotations

from typing import Any

import msgspec

from monitor.alert.message.locale import Locale
from monitor.alert.model import (
    Batch,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    Summary,
    Symptoms,
    alertname,
    fingerprint_of,
    worst_severity,
)
from monitor.alert.receivers.base import OwnerContact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

NOW = 1_759_345_920.0  # 2025-10-02 03:12 in Shanghai
GIB = 1024**3
OWNERS = {
    "zhang": OwnerContact(wecom="zhangsan", mobile="13800000000", feishu="ou_7d8a", slack="U024BE7LH"),
    "li": OwnerContact(wecom="lisi"),
}
LOCALES = {
    "en": Locale(lang="en", page="https://warden.example", cluster="prod", timezone="Asia/Shanghai"),
    "zh": Locale(lang="zh", page="https://warden.example", cluster="prod", timezone="Asia/Shanghai"),
}


def note(key: str, **values: str | float) -> Text:
    return Text(key=key, values=values)


def subject(finding: Finding, **more: Any) -> NotificationSubject:
    given: dict[str, Any] = {"phase": Phase.FIRING, "since": finding.since if finding.since is not None else NOW - 60}
    given["fingerprint"] = fingerprint_of(finding)
    return NotificationSubject(finding=finding, **(given | more))


def over(finding: Finding, lasted: float = 1500.0, **more: Any) -> NotificationSubject:
    return subject(finding, phase=Phase.RESOLVED, since=NOW - 60 - lasted, resolved_at=NOW - 60, **more)


def _group(*subjects: NotificationSubject) -> str:
    return f"{alertname(subjects[0].finding.rule)}/{subjects[0].finding.cause}" if subjects else "digest"


def notification(reason: NotificationReason, *subjects: NotificationSubject, **more: Any) -> Notification:
    firing = [each for each in subjects if each.phase is not Phase.RESOLVED]
    users = tuple(sorted({each.finding.labels["user"] for each in firing if "user" in each.finding.labels}))
    given: dict[str, Any] = {
        "id": "n1", "receiver": "ops", "group": _group(*subjects), "users": users, "at": NOW - 1,
        "severity": worst_severity([each.finding.severity for each in firing or subjects]),
    }  # fmt: skip
    return Notification(reason=reason, subjects=subjects, **(given | more))


def batch(*notifications: Notification, at: float = NOW) -> Batch:
    return Batch(id="p1", receiver="ops", notifications=notifications, at=at)


DISK = Finding(
    rule="disk-full", severity=Severity.CRITICAL, cause="images", labels={"node": "gpu03", "mount": "/var/lib/docker"}, since=NOW - 420,
    headline=note("disk-full.images", place="gpu03", mount="/var/lib/docker", share=0.934, available=61 * GIB, bytes=702 * GIB),
    evidence=(
        note("disk-space", used=866 * GIB, size=927 * GIB, available=61 * GIB),
        note("disk-part.images", bytes=702 * GIB, share=0.81),
        note("disk-part.logs", bytes=92 * GIB, share=0.11),
        note("disk-image.unused", image="harbor.lab/vision/train:v38", bytes=61 * GIB),
    ),
    advice=(note("disk-full.images.advice", node="gpu03", mount="/var/lib/docker", device="/dev/nvme0n1p2"),),
)  # fmt: skip
DISK_WARNING = msgspec.structs.replace(DISK, severity=Severity.WARNING)

REGISTRY = Finding(
    rule="registry-unreachable", severity=Severity.WARNING, cause="node-cannot-resolve", labels={"node": "gpu07"}, since=NOW - 95,
    headline=note("registry-unreachable.node-cannot-resolve", nodes="gpu07", registries="harbor.lab"),
    evidence=(
        note("registry-unreachable.probes", count=1, error="lookup harbor.lab on 10.0.0.2:53: no such host"),
        note("registry-unreachable.others", count=11),
        note("registry-unreachable.pulls", pods=12, images=3),
    ),
    advice=(note("registry-unreachable.node-cannot-resolve.advice", node="gpu07", registry="harbor.lab"),),
)  # fmt: skip
WAITING = tuple({"namespace": "vision", "pod": f"train-{number}", "node": "gpu07"} for number in range(5))

ZOMBIE = Finding(
    rule="gpu-zombie", severity=Severity.WARNING, cause="pod-deleted", since=NOW - 1260,
    labels={"node": "gpu11", "gpu": "3", "namespace": "nlp", "pod": "llama-sft-0", "user": "zhang", "job": "llama-sft"},
    headline=note("gpu-zombie.pod-deleted", gpu="3", node="gpu11", pod="llama-sft-0", seconds=1260.0),
    evidence=(note("gpu-zombie.process", pid=48213), note("card-memory", bytes=71 * GIB), note("card-owner", user="zhang", job="llama-sft")),
    advice=(note("gpu-zombie.advice", node="gpu11", gpu="3", pid=48213),),
)  # fmt: skip


def failed_pull(number: int) -> Finding:
    user, pod, node = ("zhang", "li", "wang")[number % 3], f"train-{number:03}", f"gpu{number % 7:02}"
    values: dict[str, str | float] = {
        "user": user,
        "pod": pod,
        "node": node,
        "namespace": "vision",
        "image": "harbor.lab/vision/base:2.4",
        "host": "harbor.lab",
        "registry": "harbor.lab",
        "container": "main",
    }
    return Finding(
        rule="image-pull", severity=Severity.WARNING, cause="not-found", since=NOW - 30 - number, headline=note("image-pull.not-found", **values),
        labels={"namespace": "vision", "pod": pod, "node": node, "user": user, "image": "harbor.lab/vision/base:2.4", "service": "harbor.lab"},
        evidence=(note("pull_says", message="rpc error: code = NotFound desc = failed to pull and unpack image: harbor.lab/vision/base:2.4: not found"),),
        advice=(note("pull_not_found_advice", **values),),
    )  # fmt: skip


NODE = Finding(
    rule="node-down", severity=Severity.CRITICAL, cause="kubelet-silent", labels={"node": "gpu05"}, since=NOW - 200,
    headline=note("node-down.kubelet-silent", node="gpu05", seconds=200.0),
    evidence=(note("node-down.agent-silent", error="connect timeout"), note("node-down.pods", count=9, gpus=8)),
    advice=(note("node-down.kubelet-silent.advice", node="gpu05"),),
)  # fmt: skip
RECEIVER = Finding(
    rule="receiver-failing", severity=Severity.CRITICAL, cause="parked", labels={"service": "receiver/wecom-ops"}, since=NOW - 30,
    headline=note("receiver-failing.parked", receiver="wecom-ops", kind="wecom", error="errcode 93000: invalid webhook url", count=3, seconds=30.0),
    advice=(note("receiver-failing.advice", receiver="wecom-ops"),),
)  # fmt: skip
BLIND = Finding(
    rule="monitor-blind", severity=Severity.CRITICAL, cause="api-server", labels={"service": "monitor/pods"}, since=NOW - 130,
    headline=note("monitor-blind.api-server", source="pods", why="connection refused", seconds=130.0),
    advice=(note("monitor-blind.api-server.advice", source="pods", why="connection refused", seconds=130.0),),
)  # fmt: skip
EVIL = '<font color="warning"><@all></font> [free](http://evil.example) `@all` **x** <!channel> <at id=all></at>\n# big &lt;b&gt;'
HOSTILE = Finding(
    rule="pod-silent", severity=Severity.WARNING, cause="stopped-logging", since=NOW - 900,
    labels={"namespace": EVIL, "pod": EVIL, "node": "gpu01", "user": "<@all>", "job": EVIL},
    headline=note("external", text=EVIL), evidence=(note("external", text=EVIL),),
    advice=(note("pod-silent.stopped-logging.advice", user=EVIL, pod=EVIL, namespace="x`y", container="<a>"),),
)  # fmt: skip

PULLS = tuple(subject(failed_pull(number), fresh=number < 3) for number in range(100))
DAY = Summary(
    since=NOW - 86400, until=NOW, still_firing=7, resolved={"image-pull": 40, "gpu-idle": 4, "disk-full": 1},
    fired={"image-pull": 41, "gpu-idle": 9, "disk-full": 2, "node-down": 1, "gpu-zombie": 1, "shm-pressure": 1},
)  # fmt: skip


def _digest(count: int) -> tuple[Notification, ...]:
    told = (
        notification(NotificationReason.NEW, subject(REGISTRY), id="a"),
        notification(NotificationReason.NEW, subject(NODE), id="b"),
        notification(NotificationReason.RESOLVED, over(DISK), id="c"),
        notification(NotificationReason.MORE, *PULLS[:12], id="d"),
        notification(NotificationReason.REPEAT, subject(ZOMBIE), id="e"),
    )
    pods = (
        notification(NotificationReason.NEW, subject(failed_pull(number)), id=f"f{number}")
        for number in range(count - len(told))
    )
    return (*told, *pods)


EXPLAINS = (Symptoms(rule="image-pull", count=12, examples=WAITING),)
CASES: dict[str, Batch] = {
    "disk_full": batch(notification(NotificationReason.NEW, subject(DISK), symptoms=(Symptoms(rule="pod-start-failed", count=2, examples=WAITING[:2]),))),
    "disk_worse": batch(notification(NotificationReason.WORSE, subject(DISK))),
    "registry_by_cause": batch(notification(NotificationReason.NEW, subject(REGISTRY), symptoms=EXPLAINS)),
    "zombie": batch(notification(NotificationReason.NEW, subject(ZOMBIE))),
    "zombie_repeat_flapping": batch(notification(NotificationReason.REPEAT, subject(ZOMBIE, flapping=True))),
    "hundred_pods": batch(notification(NotificationReason.NEW, *(msgspec.structs.replace(each, fresh=True) for each in PULLS))),
    "more_pods": batch(notification(NotificationReason.MORE, *PULLS[:4])),
    "partly_resolved": batch(notification(NotificationReason.RESOLVED, over(failed_pull(1), 300.0), *PULLS[3:5])),
    "resolved": batch(notification(NotificationReason.RESOLVED, over(DISK))),
    "resolved_many": batch(notification(NotificationReason.RESOLVED, *(over(failed_pull(number), 60.0 * number) for number in range(1, 9)))),
    "late": batch(notification(NotificationReason.NEW, subject(NODE, since=NOW - 980), at=NOW - 780)),
    "held": batch(notification(NotificationReason.NEW, subject(msgspec.structs.replace(NODE, held=True)))),
    "digest": batch(*_digest(30), at=NOW + 150),
    "digest_few": batch(*_digest(5)[:3]),
    "summary": batch(notification(NotificationReason.NEW, subject(NODE), subject(ZOMBIE), severity=Severity.INFO, summary=DAY)),
    "summary_calm": batch(notification(NotificationReason.NEW, severity=Severity.INFO, summary=Summary(since=NOW - 86400, until=NOW))),
    "sample": batch(notification(NotificationReason.NEW, subject(DISK), sample=True)),
    "receiver_failing": batch(notification(NotificationReason.NEW, subject(RECEIVER))),
    "monitor_blind": batch(notification(NotificationReason.NEW, subject(BLIND))),
    "hostile": batch(notification(NotificationReason.NEW, subject(HOSTILE))),
}  # fmt: skip
