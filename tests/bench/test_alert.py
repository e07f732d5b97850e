"""Parts of the alert benchmark: arrivals of messages, and a kube-state-metrics that is waited for."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

import pytest
import requests

from bench import kube_state_metrics as exporter
from bench.alert_hook import ALERTS, hook

SERVE = f"""\
#!{sys.executable}
import http.server, sys
options = dict(each.split("=", 1) for each in sys.argv[1:])
assert (options["--kubeconfig"], options["--resources"], options["--telemetry-host"]) == ("k", "pods", "127.0.0.1")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"# TYPE {exporter.WAITING_REASON} gauge\\n")

http.server.HTTPServer((options["--host"], int(options["--port"])), Handler).serve_forever()
"""


def program(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setattr(exporter, "go_peer", lambda _name: path)


def test_kube_state_metrics_is_waited_for_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "program", SERVE, monkeypatch)
    with exporter.kube_state_metrics("k", tmp_path) as address:
        assert address.startswith("127.0.0.1:")
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as response:
            assert exporter.WAITING_REASON in response.read().decode()
    assert not exporter.is_serving(address)


def test_kube_state_metrics_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "program", "#!/bin/sh\necho no such server >&2\n", monkeypatch)
    monkeypatch.setattr(exporter, "START_LIMIT_SECONDS", 1.0)
    with pytest.raises(RuntimeError, match="no such server"), exporter.kube_state_metrics("k", tmp_path):
        pass


def test_the_first_message_of_each_notifier_counts() -> None:
    def message(who: str, pod: str, name: str = ALERTS[0], status: str = "firing") -> None:
        alerts = [{"status": status, "labels": {"alertname": name, "pod": pod}}]
        requests.post(server.address(who), json={"alerts": alerts}, timeout=60).raise_for_status()

    with hook() as server:
        message("ours", "pod-1")
        first = server.arrived("ours", "pod-1")
        message("ours", "pod-1")
        message("ours", "pod-2", status="resolved")
        message("theirs", "pod-1", name="Watchdog")
        message("theirs", "pod-3", name=ALERTS[1])
        assert first is not None
        assert server.arrived("ours", "pod-1") == first
        assert (server.arrived("ours", "pod-2"), server.arrived("theirs", "pod-1")) == (None, None)
        assert server.arrived("theirs", "pod-3") is not None
