from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from monitor.alert.alertmanager.callback import (
    REPLICA_WINDOW_SECONDS,
    CallbackResult,
    NotificationLog,
    OwnAlerts,
    process_callback,
    read_payload,
)
from monitor.alert.model import (
    Alert,
    NotificationLogEntry,
    NotificationReason,
    Phase,
    fingerprint_of,
    fingerprint_of_key,
    former_key,
)
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

NOW = 1_700_000_000.0
RULES = ("disk-full", "image-pull")


def alert(name: str, status: str = "firing", severity: str = "warning", **more: Any) -> dict[str, Any]:
    labels = {"alertname": "HostDown", "instance": name, "severity": severity} | more.pop("labels", {})
    return {
        "status": status,
        "labels": labels,
        "annotations": {"summary": f"{name} is down", "description": "no answer for 5m"} | more.pop("annotations", {}),
        "startsAt": "2023-11-14T22:00:00.123456789Z",
        "endsAt": "2023-11-14T22:10:00Z" if status == "resolved" else "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus.lab/graph",
        "fingerprint": f"fp-{name}",
    } | more


def body(*alerts: dict[str, Any], **more: Any) -> bytes:
    payload = {
        "version": "4",
        "groupKey": '{}:{alertname="HostDown"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "gpuwarden",
        "groupLabels": {"alertname": "HostDown"},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://am.lab",
        "alerts": list(alerts),
    }
    return json.dumps(payload | more).encode()


class Callee:
    """Processes one call after the other like the daemon, with the log stored as JSON in between."""

    def __init__(self, *receivers: str, own: OwnAlerts | None = None) -> None:
        self._receivers = receivers or ("wecom",)
        self._own = own or OwnAlerts(rules=RULES)
        self._log = b"{}"
        self.now = NOW

    def call(self, *alerts: dict[str, Any], later: float = 1.0) -> CallbackResult:
        self.now += later
        before = msgspec.json.decode(self._log, type=NotificationLog)
        result = process_callback(read_payload(body(*alerts)), self._receivers, before, self._own, self.now)
        self._log = msgspec.json.encode(result.log)
        return result

    def reasons(self, *alerts: dict[str, Any], later: float = 1.0) -> list[NotificationReason]:
        return [each.reason for each in self.call(*alerts, later=later).notifications]


Step = tuple[list[dict[str, Any]], float, list[NotificationReason]]
a, b = alert("a"), alert("b")
SCENARIOS: list[tuple[str, list[Step]]] = [
    (
        "new, then over",
        [([a], 1, [NotificationReason.NEW]), ([alert("a", "resolved")], 60, [NotificationReason.RESOLVED])],
    ),
    ("two replicas", [([a], 1, [NotificationReason.NEW]), ([a], 2, [])]),
    (
        "two replicas say that it is over",
        [
            ([a], 1, [NotificationReason.NEW]),
            ([alert("a", "resolved")], 9, [NotificationReason.RESOLVED]),
            ([alert("a", "resolved")], 9, []),
        ],
    ),
    (
        "repeated by Alertmanager",
        [([a], 1, [NotificationReason.NEW]), ([a], REPLICA_WINDOW_SECONDS, [NotificationReason.REPEAT]), ([a], 2, [])],
    ),
    ("more of them", [([a], 1, [NotificationReason.NEW]), ([a, b], 9, [NotificationReason.MORE]), ([a, b], 9, [])]),
    ("worse", [([a], 1, [NotificationReason.NEW]), ([alert("a", severity="critical")], 9, [NotificationReason.WORSE])]),
    ("milder is no news", [([alert("a", severity="critical")], 1, [NotificationReason.NEW]), ([a], 9, [])]),
    (
        "one of two is over",
        [
            ([a, b], 1, [NotificationReason.NEW]),
            ([a, alert("b", "resolved")], 9, [NotificationReason.RESOLVED]),
            ([alert("a", "resolved")], 9, [NotificationReason.RESOLVED]),
        ],
    ),
    ("over before anybody was told", [([alert("a", "resolved")], 1, [])]),
    (
        "back again",
        [
            ([a], 1, [NotificationReason.NEW]),
            ([alert("a", "resolved")], 9, [NotificationReason.RESOLVED]),
            ([a], 9, [NotificationReason.NEW]),
        ],
    ),
    (
        "a clock that jumps back",
        [([a], 1, [NotificationReason.NEW]), ([a], -REPLICA_WINDOW_SECONDS, [NotificationReason.REPEAT])],
    ),
    ("nothing at all", [([], 1, [])]),
]


@pytest.mark.parametrize(("name", "scenario"), SCENARIOS, ids=[row[0] for row in SCENARIOS])
def test_what_is_told_of_what_is_called(name: str, scenario: list[Step]) -> None:
    callee = Callee()
    assert [callee.reasons(*alerts, later=later) for alerts, later, _ in scenario] == [
        expect for _, _, expect in scenario
    ]


def test_what_a_notification_holds() -> None:
    (told,) = Callee().call(alert("a", severity="critical", annotations={"advice": "reboot it"})).notifications
    (subject,) = told.subjects
    assert (told.receiver, told.severity, told.reason) == ("wecom", Severity.CRITICAL, NotificationReason.NEW)
    assert (subject.fingerprint, subject.phase, subject.resolved_at) == ("fp-a", Phase.FIRING, None)
    assert subject.since == pytest.approx(1699999200.123, abs=0.01)
    assert subject.finding == Finding(
        rule="HostDown",
        severity=Severity.CRITICAL,
        cause="external",
        labels={"service": "a"},
        headline=Text(key="external", values={"text": "a is down"}),
        evidence=(Text(key="external", values={"text": "no answer for 5m"}),),
        advice=(Text(key="external", values={"text": "reboot it"}),),
    )


def test_everybody_is_told_and_each_message_has_its_own_id() -> None:
    told = Callee("wecom", "dingtalk").call(alert("a", labels={"user": "zhang"})).notifications
    assert [(each.receiver, each.users) for each in told] == [("wecom", ("zhang",)), ("dingtalk", ("zhang",))]
    assert len({each.id for each in told}) == 2


def test_a_call_that_is_answered_again_after_a_crash_makes_the_same_message() -> None:
    first, again = Callee(), Callee()
    again.now += 7.0  # the log of the first call is lost
    assert [each.id for each in first.call(alert("a")).notifications] == [
        each.id for each in again.call(alert("a")).notifications
    ]


def test_our_own_alerts_are_told_in_our_own_words() -> None:
    own = Finding(
        rule="disk-full",
        severity=Severity.CRITICAL,
        cause="images",
        labels={"node": "n1", "mount": "/"},
        headline=Text(key="disk-full.images", values={"node": "n1"}),
    )
    known = Alert(
        fingerprint=fingerprint_of(own), finding=own, phase=Phase.FIRING, first_seen_at=NOW, seen_at=NOW
    )  # fmt: skip
    labels = {"alertname": "DiskFull", "node": "n1", "mount": "/", "cluster": "lab", "cause": "images", "instance": ""}
    callee = Callee(own=OwnAlerts({known.fingerprint: known}, RULES, "lab"))
    (told,) = callee.call(alert("a", severity="critical", labels=labels)).notifications
    assert [(each.fingerprint, each.finding) for each in told.subjects] == [(known.fingerprint, own)]
    callee._own = OwnAlerts({}, RULES, "lab")  # forgotten in between: still the same alert
    (over,) = callee.call(alert("a", "resolved", labels=labels)).notifications
    assert (over.reason, over.subjects[0].fingerprint) == (NotificationReason.RESOLVED, known.fingerprint)


def test_one_of_ours_that_becomes_worse_is_told_as_worse_and_its_end_once() -> None:
    """The severity is a label, so for Alertmanager it is another alert; another replica saw it first."""
    where = {"alertname": "DiskFull", "node": "n1", "mount": "/", "cause": "images"}
    own = Finding(
        rule="disk-full",
        severity=Severity.WARNING,
        cause="images",
        labels={"node": "n1", "mount": "/"},
        headline=Text(key="disk-full.images", values={"node": "n1"}),
    )
    known = Alert(
        fingerprint=fingerprint_of(own), finding=own, phase=Phase.FIRING, first_seen_at=NOW, seen_at=NOW
    )  # fmt: skip
    callee = Callee(own=OwnAlerts({known.fingerprint: known}, RULES))

    def disk(status: str, severity: str) -> dict[str, Any]:
        return alert("", status, severity, labels=where | {"severity": severity}, fingerprint=f"am-{severity}")

    assert callee.reasons(disk("firing", "warning")) == [NotificationReason.NEW]
    (worse,) = callee.call(disk("resolved", "warning"), disk("firing", "critical")).notifications
    assert (worse.reason, worse.severity) == (NotificationReason.WORSE, Severity.CRITICAL)
    assert [(each.phase, each.finding.severity) for each in worse.subjects] == [(Phase.FIRING, Severity.CRITICAL)]
    assert callee.reasons(disk("firing", "warning"), disk("firing", "critical")) == [], "a replica that lags behind"
    assert callee.reasons(disk("resolved", "critical")) == [NotificationReason.RESOLVED]
    assert callee.reasons(disk("resolved", "warning")) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        body(version="3"),
        body(alerts=[{"status": "firing"}]),
        body(alert("a", startsAt="yesterday")),
        b"[" * 100_000,
        b'{"new": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_call_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="webhook"):
        read_payload(content)


POD = {"node": "n1", "namespace": "ml", "pod": "p"}
SHM = {"alertname": "ShmPressure", "cause": "nearly-full", **POD}
QUEUED = {"job": "train", "queue": "batch"}


def shm(**more: Any) -> Alert:
    """Our alert that was announced without job and queue."""
    found = Finding(
        rule="shm-pressure",
        severity=Severity.WARNING,
        cause="default-size",
        labels=POD | QUEUED,
        headline=Text(key="x"),
    )
    announced = POD | {"severity": "warning", "cause": "nearly-full"}
    values = {"fingerprint": fingerprint_of(found), "announced": announced, **more}
    return Alert(finding=found, phase=Phase.FIRING, first_seen_at=NOW, seen_at=NOW, **values)


def test_an_alert_that_has_other_labels_here_by_now_is_told_as_it_is_now() -> None:
    known = shm()
    callee = Callee(own=OwnAlerts({known.fingerprint: known}, ("shm-pressure",)))
    (told,) = callee.call(alert("", labels=SHM)).notifications
    assert [(each.fingerprint, each.finding) for each in told.subjects] == [(known.fingerprint, known.finding)]
    assert callee.reasons(alert("", labels=SHM), alert("", labels=SHM | QUEUED)) == []


@pytest.mark.parametrize("severity", ["critical", "info"])
def test_another_severity_than_announced_counts(severity: str) -> None:
    known = shm()
    callee = Callee(own=OwnAlerts({known.fingerprint: known}, ("shm-pressure",)))
    (told,) = callee.call(alert("", severity=severity, labels=SHM)).notifications
    assert told.subjects[0].finding.severity == severity


@pytest.mark.parametrize(
    ("own", "expect"),
    [
        pytest.param({"former": shm(fingerprint="former")}, "former", id="an upgraded alert keeps its fingerprint"),
        pytest.param({}, fingerprint_of(shm().finding), id="of another cluster or replica"),
    ],
)
def test_the_log_of_an_older_version_is_understood(own: dict[str, Alert], expect: str) -> None:
    """It named alerts by all their labels: by those that Alertmanager keeps sending until they resolve."""
    labels = SHM | QUEUED
    former = fingerprint_of_key(former_key("shm-pressure", POD | QUEUED))
    group = 'external|{}:{alertname="HostDown"}'
    logged = NotificationLogEntry(receiver="wecom", group=group, at=NOW, firing={former: Severity.WARNING})
    callee = Callee(own=OwnAlerts(own, ("shm-pressure",)))
    callee._log = msgspec.json.encode(NotificationLog(told=(logged,)))
    assert callee.reasons(alert("", labels=labels)) == []
    (over,) = callee.call(alert("", "resolved", labels=labels)).notifications
    assert (over.reason, over.subjects[0].fingerprint) == (NotificationReason.RESOLVED, expect)
