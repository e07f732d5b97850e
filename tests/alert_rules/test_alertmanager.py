"""The example configurations: amtool check, routing, inhibition, and the callback to the daemon."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from monitor.alert.alertmanager.callback import NotificationLog, OwnAlerts, process_callback, read_payload
from monitor.detect.rules import RULES
from tests.alert_rules.rules import ALERTS
from tests.support import need, wait_until
from tests.support.receivers import real_alertmanager as support
from tests.support.receivers.http_server import LocalServer
from tests.support.receivers.real_alertmanager import RealAlertmanager, real_alertmanager

EXAMPLES = tuple(sorted(ALERTS.glob("alertmanager*.example.yml")))
PROMETHEUS, DAEMON = ALERTS / "alertmanager.example.yml", ALERTS / "alertmanager.daemon.example.yml"
HOOK = "http://gpuwarden.monitoring.svc:9836/v1/alertmanager"
TOKEN_FILE = "/etc/alertmanager/gpuwarden-callback-token"
DISK = {"alertname": "DiskFull", "severity": "critical", "cause": "space", "node": "gpu1", "mount": "/"}


def amtool(*arguments: str | Path) -> str:
    need(shutil.which("amtool") is not None, "amtool (Debian package prometheus-alertmanager)")
    command = ["amtool", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_alertmanager_takes_it(path: Path) -> None:
    assert "SUCCESS" in amtool("check-config", path)


@pytest.mark.parametrize(
    ("path", "labels", "receivers"),
    [
        (PROMETHEUS, ["alertname=DiskFull", "severity=warning"], "gpuwarden"),
        (PROMETHEUS, ["alertname=DiskFull", "severity=critical"], "gpuwarden"),
        (PROMETHEUS, ["alertname=GpuwardenDaemonDown", "severity=critical"], "without-gpuwarden"),
        (PROMETHEUS, ["alertname=ReceiverFailing", "severity=warning"], "without-gpuwarden"),
        (DAEMON, ["alertname=DiskFull", "severity=warning"], "operators"),
        (DAEMON, ["alertname=DiskFull", "severity=critical"], "on-call"),
        (DAEMON, ["alertname=GpuFault", "severity=info"], "nobody"),
    ],
)
def test_where_alerts_go(path: Path, labels: list[str], receivers: str) -> None:
    assert amtool("config", "routes", "test", "--config.file", path, *labels).strip() == receivers


@dataclass(frozen=True)
class Lab:
    alertmanager: RealAlertmanager
    hook: LocalServer

    def send(self, *alerts: dict[str, str]) -> None:
        self.alertmanager.post("/api/v2/alerts", [{"labels": labels, "annotations": {}} for labels in alerts])

    def inhibited(self, labels: dict[str, str]) -> bool:
        found = [alert for alert in self.alertmanager.alerts() if alert["labels"] == labels]
        return bool(found and found[0]["status"]["inhibitedBy"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The example with only addresses, token and intervals replaced."""
    folder = tmp_path_factory.mktemp("am")
    (folder / "token").write_text("of-the-callback")
    text = PROMETHEUS.read_text(encoding="utf-8").replace("group_wait: 10s", "group_wait: 0s")
    text = text.replace("{", "{{").replace("}", "}}").replace(HOOK, "{hook}").replace(TOKEN_FILE, str(folder / "token"))
    with pytest.MonkeyPatch.context() as patch, LocalServer() as hook:
        patch.setattr(support, "CONFIG", text)
        with real_alertmanager(folder, f"{hook.base}/v1/alertmanager") as running:
            yield Lab(running, hook)


def test_the_daemon_is_called_with_its_token_and_knows_the_alert(lab: Lab) -> None:
    lab.send(DISK)
    wait_until(lambda: lab.hook.asked, 10, "it has called")
    asked = lab.hook.asked[0]
    assert (asked.path, asked.headers["authorization"]) == ("/v1/alertmanager", "Bearer of-the-callback")
    told = process_callback(
        read_payload(asked.body), ["wecom"], NotificationLog(), OwnAlerts(rules=[rule.rule for rule in RULES]), 2e9
    )
    (subject,) = told.notifications[0].subjects
    assert subject.finding.rule == "disk-full"
    assert subject.finding.labels == {"node": "gpu1", "mount": "/"}


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [
        (DISK, {"alertname": "DiskFilling", "severity": "warning", "node": "gpu1", "mount": "/"}),
        (DISK, DISK | {"severity": "warning"}),
        (
            {"alertname": "MountLost", "severity": "critical", "mount": "/nas"},
            {"alertname": "MountLost", "severity": "critical", "mount": "/nas", "node": "gpu2"},
        ),
        (
            {"alertname": "RegistryUnreachable", "severity": "warning", "service": "harbor.lab"},
            {"alertname": "RegistryUnreachable", "severity": "warning", "service": "harbor.lab", "node": "gpu2"},
        ),
        (
            {"alertname": "GpuFault", "severity": "critical", "cause": "driver-hung", "node": "gpu3"},
            {"alertname": "AgentSilent", "severity": "warning", "node": "gpu3", "service": "gpu"},
        ),
        (
            {"alertname": "GpuFault", "severity": "critical", "cause": "card-lost", "node": "gpu4", "gpu": "1"},
            {"alertname": "GpuIdle", "severity": "warning", "node": "gpu4", "gpu": "1"},
        ),
        (
            {"alertname": "NodeDown", "severity": "critical", "node": "gpu5"},
            {"alertname": "AgentSilent", "severity": "warning", "node": "gpu5"},
        ),
    ],
    ids=lambda labels: labels["alertname"],
)
def test_a_symptom_is_not_told_beside_its_cause(lab: Lab, cause: dict[str, str], symptom: dict[str, str]) -> None:
    elsewhere = symptom | ({"node": "elsewhere"} if "node" in symptom else {}) | {"cluster": "other"}
    lab.send(cause, symptom, elsewhere)
    wait_until(lambda: lab.inhibited(symptom), 10, "it is inhibited")
    assert not lab.inhibited(cause)
    assert not lab.inhibited(elsewhere)
