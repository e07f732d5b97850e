"""Parts of the benchmark of failures: which messages count."""

from __future__ import annotations

import time

import pytest
import requests

from bench.alert_hook import serve
from bench.failures import Inbox, reported_programs


def test_the_first_right_message_about_a_pod_counts() -> None:
    def send(pod: str, cause: str, status: str = "firing") -> None:
        alerts = [{"status": status, "labels": {"alertname": "ImagePull", "pod": pod, "cause": cause}}]
        requests.post(url, json={"alerts": alerts}, timeout=60).raise_for_status()

    inbox = Inbox()
    with serve(inbox.note) as url:
        send("pod-1", "unknown")
        between = time.time()
        send("pod-1", "proxy")
        send("pod-1", "proxy")
        send("pod-2", "proxy", status="resolved")
        arrived = inbox.wait("pod-1", lambda alert: alert["labels"]["cause"] == "proxy", 1.0)
        assert between <= arrived <= time.time()
        with pytest.raises(RuntimeError, match="pod-2"):
            inbox.wait("pod-2", lambda _alert: True, 0.2)


def test_ten_programs_and_more_are_reported_at_their_first_exit() -> None:
    assert len(reported_programs()) >= 10
