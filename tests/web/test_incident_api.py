"""Incidents over HTTP."""

from __future__ import annotations

import json

import pytest

from tests.support.command import get
from tests.web.test_alerts_api import FakeAlerts, serving
from tests.web.test_app import EVIL


def test_an_incident_is_data_a_page_or_markdown() -> None:
    with serving(FakeAlerts()) as url:
        status, _, body = get(f"{url}/v1/incidents/abc")
        found = json.loads(body)
        assert (status, found["alert"]["rule"], len(found["timeline"])) == (200, "disk-full", 3)
        for form, title in (("html", "<h1>"), ("markdown", "# ")):
            status, headers, text = get(f"{url}/v1/incidents/abc?format={form}&lang=zh")
            assert (status, headers["content-type"]) == (200, f"text/{form}; charset=utf-8")
            assert headers["content-disposition"].startswith("attachment; ")
            assert title in text
            assert "时间线" in text
            assert EVIL not in text


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("other", 404, "there is no such alert on record"),
        ("abc?format=pdf", 400, "format is one of json, markdown, html"),
        ("abc?lang=fr", 400, "lang is en or zh"),
    ],
)
def test_wrong_requests_say_what_is_wrong(path: str, status: int, error: str) -> None:
    with serving(FakeAlerts()) as url:
        answer = get(f"{url}/v1/incidents/{path}")
        assert (answer[0], json.loads(answer[2])) == (status, {"error": error})


def test_an_incident_of_an_alert_that_an_upgrade_merged() -> None:
    alerts = FakeAlerts()
    alerts.merged["old"] = "abc"
    with serving(alerts) as url:
        status, _, body = get(f"{url}/v1/incidents/old")
        assert (status, json.loads(body)["alert"]["fingerprint"]) == (200, "abc")
