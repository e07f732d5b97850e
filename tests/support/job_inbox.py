"""Receives messages about the ends of jobs from a daemon, and knows when it follows the cluster."""

from __future__ import annotations

import json

from tests.support import wait_until
from tests.support.command import get
from tests.support.receivers.http_server import LocalServer

SOON = 60.0
JobMessage = tuple[str, str, str]  # job, rule and cause


class JobInbox(LocalServer):
    """Receives messages as JSON."""

    def all(self) -> list[JobMessage]:
        labels = [alert["labels"] for asked in tuple(self.asked) for alert in asked.json["alerts"]]
        return [
            (each["job"], each["alertname"], each["cause"]) for each in labels if each["alertname"].startswith("Job")
        ]

    def about(self, job: str) -> list[JobMessage]:
        return [message for message in self.all() if message[0] == job]

    def description(self, job: str) -> str:
        """Evidence in the only message about a job."""
        alerts = [alert for asked in self.asked for alert in asked.json["alerts"] if alert["labels"].get("job") == job]
        (alert,) = alerts
        return str(alert["annotations"]["description"])

    def wait(self, *expected: JobMessage) -> None:
        """Wait for exactly these messages."""
        wait_until(lambda: len(self.all()) >= len(expected), SOON, f"{len(expected)} messages")
        assert sorted(self.all()) == sorted(expected)


def sees_jobs(page: str) -> bool:
    """Whether a daemon follows pods and Jobs."""
    try:
        view = json.loads(get(f"{page}/v1/view")[2])
    except OSError:
        return False
    return {"pods", "jobs.batch"} <= {source["name"] for source in view["sources"] if source["ok"]}
