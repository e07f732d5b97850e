"""Against Debian's Alertmanager: whatever happens to the labels of an alert, it is one alert there, notified once.

Labels appear later, the daemon restarts with and without its state, replicas disagree, and a firing alert is upgraded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from monitor.alert.delivery.sender import Sender
from monitor.alert.dispatcher import Dispatcher
from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.model import Phase
from monitor.alert.receivers.alertmanager import Alertmanager
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.store import AlertStore
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from tests.alert.receivers.batches import batch, notification, receiver, subject
from tests.alert.schema_1 import CRASH, DISK, IDLE, SHM, findings, restore
from tests.support import wait_until
from tests.support.receivers.http_server import LocalServer
from tests.support.receivers.real_alertmanager import RealAlertmanager, real_alertmanager

QUEUED = {"job": "train", "queue": "batch"}
RESEND_SECONDS = 4.0  # an alert that is not sent again ends after five of them
INTERVALS_SECONDS = 2.5  # more than two group intervals of this Alertmanager


@dataclass(frozen=True)
class Lab:
    alertmanager: RealAlertmanager
    hook: LocalServer  # its webhook

    def called(self, pod: str, status: str) -> list[dict[str, str]]:
        """Labels of an alert in each webhook call that says so for the first time."""
        told: list[dict[str, str]] = []
        for asked in self.hook.asked:
            for alert in asked.json["alerts"]:
                if alert["labels"].get("pod") == pod and alert["status"] == status and alert["labels"] not in told:
                    told.append(alert["labels"])
        return told

    def active(self, pod: str) -> list[dict[str, Any]]:
        return [alert for alert in self.alertmanager.alerts() if alert["labels"].get("pod") == pod]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with LocalServer() as hook, real_alertmanager(tmp_path_factory.mktemp("am"), f"{hook.base}/call") as running:
        yield Lab(running, hook)


def found(pod: str, **labels: str) -> Finding:
    return Finding(
        rule="shm-pressure",
        severity=Severity.WARNING,
        cause="nearly-full",
        labels={"node": "gpu-01", "namespace": "ml", "pod": pod} | labels,
        headline=Text(key="x"),
    )


def ours(lab: Lab) -> Alertmanager:
    to = cast("Alertmanager", receiver("alertmanager", lab.alertmanager.url))
    to.resend_every = RESEND_SECONDS
    return to


@contextmanager
def daemon(lab: Lab, path: Path) -> Iterator[Dispatcher]:
    policy = NotifyPolicy(routes=(Route(("ops",), group_wait=0.0, group_interval=0.0),))
    with closing(AlertStore(str(path))) as store:
        sender = Sender(store, [ours(lab)])
        running = Dispatcher(store, sender, lambda: policy, AlertTimings(AlertTiming(keep=0.0)))
        running.start()
        try:
            yield running
        finally:
            running.stop()


def annotated(lab: Lab, pod: str, name: str) -> list[str]:
    return [alert["annotations"].get(name) for alert in lab.active(pod)]


def check_notified_once(lab: Lab, pod: str, *running: Dispatcher) -> None:
    """One active alert, one notification that it fires, and one that it resolved."""
    assert len(lab.active(pod)) == 1
    time.sleep(INTERVALS_SECONDS)
    assert len(lab.called(pod, "firing")) == 1
    assert lab.called(pod, "resolved") == []
    for each in running:
        each.update([])
    wait_until(lambda: lab.called(pod, "resolved"), 120, "that it resolved is notified")
    time.sleep(INTERVALS_SECONDS)
    assert lab.active(pod) == []
    assert lab.called(pod, "resolved") == lab.called(pod, "firing")
    assert len(lab.called(pod, "firing")) == 1


def test_a_label_that_appears_later(lab: Lab, tmp_path: Path) -> None:
    with daemon(lab, tmp_path / "alerts.db") as running:
        running.update([found("later")])
        wait_until(lambda: lab.called("later", "firing"), 120, "it is notified")
        running.update([found("later", **QUEUED)])
        wait_until(lambda: annotated(lab, "later", "queue") == ["batch"], 120, "the queue is an annotation")
        running.update([found("later", **QUEUED | {"queue": "night"})])
        wait_until(lambda: annotated(lab, "later", "queue") == ["night"], 120, "the other queue is an annotation")
        check_notified_once(lab, "later", running)
    assert "queue" not in lab.called("later", "firing")[0]


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_a_restart_after_which_there_are_other_labels(lab: Lab, tmp_path: Path, state: str) -> None:
    pod = f"restart-{state}"
    with daemon(lab, tmp_path / "alerts.db") as running:
        running.update([found(pod)])
        wait_until(lambda: lab.called(pod, "firing"), 120, "it is notified")
    with daemon(lab, tmp_path / ("alerts.db" if state == "kept" else "new.db")) as running:
        running.update([found(pod, **QUEUED)])
        wait_until(lambda: annotated(lab, pod, "queue") == ["batch"], 120, "the new one has sent it")
        check_notified_once(lab, pod, running)


def test_it_resolves_after_a_restart_without_state(lab: Lab) -> None:
    ours(lab).deliver(batch(notification(subject(found("forgot"), since=time.time() - 60))))
    over = subject(found("forgot", **QUEUED), since=time.time() - 60)
    ended = replace(over, phase=Phase.RESOLVED, resolved_at=time.time())
    assert len(lab.active("forgot")) == 1
    ours(lab).deliver(batch(notification(ended)))
    assert lab.active("forgot") == []


def test_two_replicas_with_different_labels(lab: Lab, tmp_path: Path) -> None:
    with daemon(lab, tmp_path / "one.db") as one, daemon(lab, tmp_path / "two.db") as two:
        one.update([found("replicas")])
        wait_until(lambda: lab.called("replicas", "firing"), 120, "it is notified")
        two.update([found("replicas", **QUEUED)])
        wait_until(lambda: annotated(lab, "replicas", "queue") == ["batch"], 120, "the other one has sent it, too")
        check_notified_once(lab, "replicas", one, two)


def test_replicas_that_announced_at_the_same_moment_agree(lab: Lab) -> None:
    one, two, since = ours(lab), ours(lab), time.time() - 60
    first = subject(found("race"), since=since)
    second = subject(found("race", **QUEUED), since=since)
    one._send([(first, False)], one._active([]), time.time(), {})
    two._send([(second, False)], two._active([]), time.time(), {})
    assert len(lab.active("race")) == 2
    for _ in range(2):
        one.resend([first], time.time())
        two.resend([second], time.time())
    (left,) = lab.active("race")
    one.resend([first], time.time())
    assert [alert["labels"] for alert in lab.active("race")] == [left["labels"]]


def test_a_worse_severity_is_the_only_other_alert(lab: Lab) -> None:
    one, two, since = ours(lab), ours(lab), time.time() - 60
    mild = subject(found("worse"), since=since)
    severe = subject(replace(found("worse", **QUEUED), severity=Severity.CRITICAL), since=since)
    one.deliver(batch(notification(mild)))
    two.deliver(batch(notification(severe)))
    one.resend([mild], time.time())
    two.resend([severe], time.time())
    (left,) = lab.active("worse")
    assert (left["labels"]["severity"], "queue" in left["labels"]) == ("critical", False)
    assert left["annotations"]["queue"] == "batch"


def test_an_alert_of_prometheus_is_not_continued(lab: Lab) -> None:
    labels = {"alertname": "ShmPressure", "severity": "critical", "cause": "nearly-full", "rule": "shm-pressure"}
    named = labels | found("of-prometheus").labels
    lab.alertmanager.post("/api/v2/alerts", [{"labels": named}])
    ours(lab).deliver(batch(notification(subject(found("of-prometheus"), since=time.time() - 60))))
    assert sorted("rule" in alert["labels"] for alert in lab.active("of-prometheus")) == [False, True]


def sent_by_schema_1(alert: Finding) -> dict[str, Any]:
    """An alert as the older version sent it to Alertmanager."""
    name = "".join(word.capitalize() for word in alert.rule.split("-"))
    labels = {"alertname": name, "severity": alert.severity.value, "cause": alert.cause}
    ends = datetime.fromtimestamp(time.time() + 300, UTC).isoformat()
    return {"labels": alert.labels | labels, "annotations": {"summary": "x"}, "endsAt": ends}


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_an_upgrade_with_firing_alerts(tmp_path: Path, state: str) -> None:
    """What fires is continued under the labels that the older version sent; its two alerts of one pod become one."""
    restore(tmp_path / "alerts.db")
    with closing(AlertStore(str(tmp_path / "alerts.db"))) as store:
        before, now = store.load().alerts, findings(store)
    restore(tmp_path / "upgraded.db")
    older = [before[name].finding for name in (SHM, CRASH, IDLE, DISK)]
    older.append(replace(older[0], labels=older[0].labels | QUEUED))
    with LocalServer() as hook, real_alertmanager(tmp_path, f"{hook.base}/call") as running:
        lab = Lab(running, hook)
        running.post("/api/v2/alerts", [sent_by_schema_1(finding) for finding in older])
        wait_until(lambda: len(lab.called("train-0", "firing")) == 3, 120, "the older version's alerts are notified")
        wait_until(lambda: lab.called("eval-0", "firing"), 120, "the idle GPU is notified")
        with daemon(lab, tmp_path / ("upgraded.db" if state == "kept" else "new.db")) as upgraded:
            upgraded.update([now[name] for name in (SHM, CRASH, IDLE, DISK)])
            wait_until(lambda: annotated(lab, "eval-0", "queue") == ["batch"], 120, "the new version has sent it")
            wait_until(lambda: len(lab.active("train-0")) == 2, 120, "the second alert of the pod is ended")
            time.sleep(INTERVALS_SECONDS)
            assert [len(lab.called(pod, "firing")) for pod in ("train-0", "eval-0")] == [3, 1]
            assert lab.called("eval-0", "resolved") == []
            assert len(running.alerts()) == 4
            upgraded.update([])
            wait_until(lambda: running.alerts() == [], 120, "all resolve")
            wait_until(lambda: lab.called("eval-0", "resolved"), 120, "that it resolved is notified")
        assert lab.called("eval-0", "resolved") == lab.called("eval-0", "firing")
        assert len(lab.called("train-0", "firing")) == 3
