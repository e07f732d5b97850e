"""The OpenAPI document matches the served routes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from monitor.access.audit import AuditLog
from monitor.access.principal import Role
from monitor.access.settings import AccessSettings
from monitor.history.heatmap import HeatMap, NameRange
from monitor.history.model import HistorySubject
from monitor.queries.history import HistoryAnswer
from monitor.report.model import Report
from monitor.web.app import create_app
from monitor.web.audit_api import AUDITED_ACTIONS
from monitor.web.authenticator import Authenticator
from monitor.web.openapi import PATH, document, served
from monitor.web.openapi_table import OPERATIONS
from monitor.web.security import Security
from tests.support.snapshots import full_snapshot
from tests.web import test_alerts_api, test_cleanup_api
from tests.web.cluster import Client, FakeActions, site
from tests.web.test_app import FakeCluster

QUESTIONS = ("mcp",)  # these are sent like changes, and change nothing
SELF_AUDITED = ("alertmanager", "releaseGpu", "deletePods", "cordon", "uncordon")  # these write their own entries


class Reports:
    """Reports without data."""

    def report(self, _seconds: float, _by: str) -> Report:
        raise ValueError("nothing is recorded")


class Histories:
    """A history without data."""

    def answer(
        self, subject: HistorySubject, name: str, _span: float, _until: float | None, _lang: str
    ) -> HistoryAnswer:
        return HistoryAnswer(subject=subject, name=name, start=0, step_seconds=60)

    def heat_map(self, _span: float, _until: float | None, _nodes: NameRange) -> HeatMap:
        return HeatMap(start=0, step_seconds=60, nodes=0)


def routes_of(app: Any) -> list[BaseRoute]:
    """The routes of an application behind its middleware."""
    while not isinstance(app, Starlette):
        app = getattr(app, "_app", None) or app.app
    return list(app.routes)


@pytest.fixture
def routes(tmp_path: Path) -> list[BaseRoute]:
    audit = AuditLog(str(tmp_path / "audit.db"))
    security = Security(Authenticator(AccessSettings()), audit, FakeActions())
    app = create_app(
        FakeCluster(),
        full_snapshot,
        test_alerts_api.FakeAlerts(),
        None,
        test_cleanup_api.FakeCleanup(),
        Reports(),
        security,
        history=Histories(),
    )
    audit.close()
    return routes_of(app)


def test_every_route_is_in_the_table_and_every_row_is_a_route(routes: list[BaseRoute]) -> None:
    assert sorted(served(routes)) == sorted((each.method, each.path) for each in OPERATIONS)


def test_names_are_names() -> None:
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)
    assert all(each.name.isidentifier() and each.summary.endswith(".") for each in OPERATIONS)


def test_every_change_is_written_down() -> None:
    """Every change needs a role above viewer, and is audited."""
    acting = [each for each in OPERATIONS if each.method != "GET" and each.name not in QUESTIONS]
    changes = {(each.method, each.path.partition("{")[0]) for each in acting}
    self_audited = {(each.method, each.path) for each in OPERATIONS if each.name in SELF_AUDITED}
    assert changes - self_audited == set(AUDITED_ACTIONS)
    assert all(each.role is not Role.VIEWER for each in acting)


def test_only_what_is_served_is_in_the_document() -> None:
    with site({}) as url:
        content = Client(url).get(PATH).json
    assert "/v1/view" in content["paths"]
    assert PATH in content["paths"]
    assert "/v1/alerts" not in content["paths"]  # not served here
    assert content["openapi"] == "3.1.0"


def test_every_reference_leads_somewhere() -> None:
    content = document((each.method, each.path) for each in OPERATIONS)
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.update([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    look(content)
    known = {f"#/components/schemas/{name}" for name in content["components"]["schemas"]}
    assert found <= known
    assert len(found) > 20
