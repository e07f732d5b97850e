"""Snapshots, schemas of wire and disk formats, the OpenAPI document, the HTTP routes."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Mount, Route

import monitor
from monitor.access.audit import AuditLog
from monitor.access.settings import AccessSettings
from monitor.agent.journal import JournalLine
from monitor.agent.routes import ACTIONS_PATH, ActionsDisabled, AgentRoutes
from monitor.alert.alertmanager.callback import CallbackPayload, NotificationLog
from monitor.alert.delivery.backoff import ReceiverHealth
from monitor.alert.model import Alert, Notification, NotificationLogEntry
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent
from monitor.cleanup.journal_records import CleanupRun, JournalEntry
from monitor.cleanup.model import CleanupPlan
from monitor.cluster.view_memory import SavedViewMemory
from monitor.daemon.history_files import SavedFindings, SavedMemory
from monitor.facts import NodeSnapshot
from monitor.facts.actions import ActionFact, ActionRequest
from monitor.facts.datasets import PurgeFact, ScanFact, TrashFact
from monitor.leader.ledger import ActionLedger
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.openapi import document, served
from monitor.web.openapi_table import OPERATIONS
from monitor.web.security import Security
from tests.golden.schemas import without_class_names
from tests.golden.text import as_json, of_json, rows
from tests.support.snapshots import full_snapshot
from tests.web import test_alerts_api, test_cleanup_api
from tests.web.cluster import FakeActions
from tests.web.test_app import FakeCluster
from tests.web.test_openapi import Histories, Reports, routes_of

VERSION = "VERSION"
# Values on disk or on the Lease, by location.
KEPT: Mapping[str, Any] = {
    "alerts.db/alerts": Alert,
    "alerts.db/told": NotificationLogEntry,
    "alerts.db/silences": Silence,
    "alerts.db/history": AlertEvent,
    "alerts.db/outbox": Notification,
    "alerts.db/health": ReceiverHealth,
    "alerts.db/notes/called": NotificationLog,
    "cleanup.db/runs.body": CleanupRun,
    "cleanup.db/runs.plan": CleanupPlan,
    "cleanup.db/items": JournalEntry,
    "findings.json": SavedFindings,
    "memory.json": SavedMemory,
    "view.json": SavedViewMemory,
    "lease/ran": ActionLedger,
    "agent/journal": JournalLine,
    "agent/trash": TrashFact,
}


def snapshot() -> str:
    """JSON of a node with every fact known."""
    return of_json(msgspec.json.encode(full_snapshot()))


def snapshot_schema() -> str:
    """Schema of a snapshot."""
    return _schema(NodeSnapshot)


def action_schemas() -> str:
    """Schemas of action requests and results."""
    kinds = {
        "request": ActionRequest, "answer": ActionFact, "result/scan": ScanFact, "result/trash": TrashFact,
        "result/purge": PurgeFact,
    }  # fmt: skip
    return as_json({name: json.loads(_schema(kind)) for name, kind in kinds.items()})


def callback_schema() -> str:
    """Schema of Alertmanager's webhook."""
    return _schema(CallbackPayload)


def kept_schemas() -> str:
    """Schema of each persistent value."""
    return as_json({name: json.loads(_schema(kind)) for name, kind in KEPT.items()})


def openapi() -> str:
    """OpenAPI document of a daemon with all features, without class names and version."""
    made = _openapi()[0]
    assert made["info"]["version"] == monitor.__version__
    return as_json(made | {"info": made["info"] | {"version": VERSION}})


def openapi_components() -> str:
    """Component names in the OpenAPI document, each with its replacement here.

    The names are class names. Generated clients see them, so renaming a class shows up here.
    """
    return rows(_openapi()[1].items())


def routes() -> str:
    """Method and path of every page and API route; for the API also operation, role and status."""
    known = {(each.method, each.path): each for each in OPERATIONS}
    table: list[list[str]] = []
    for route in _routes():
        if isinstance(route, Mount):
            table.append(["MOUNT", route.path])
        elif isinstance(route, Route):
            for method in sorted(route.methods or ()):
                row = known.get((method, route.path))
                about = [row.name, row.role.value, str(row.status.value)] if row is not None else []
                table.append([method, route.path, *about])
    return rows(table)


def agent_pages() -> str:
    """Status and content type of the agent's responses, and short bodies."""
    pages = AgentRoutes(full_snapshot, "the-token")
    asked = [("/metrics", ""), ("/metrics", "Bearer the-token"), ("/v1/snapshot", "bearer the-token")]
    asked += [("/healthz", ""), ("/nothing", "Bearer the-token")]
    answers: list[dict[str, Any]] = []
    for path, authorization in asked:
        reply = pages.answer(path, authorization)
        answer: dict[str, Any] = {"path": path, "authorization": authorization, "status": reply.status.value}
        answer["content_type"] = reply.content_type
        answers.append(answer | ({"body": json.loads(reply.body)} if len(reply.body) < 200 else {}))
    status, body, _ = ActionsDisabled().answer("POST", ACTIONS_PATH, "", "", b"")
    answers.append({"path": ACTIONS_PATH, "authorization": "", "status": status.value, "body": json.loads(body)})
    return as_json(answers)


def _schema(kind: Any) -> str:
    return as_json(without_class_names(msgspec.json.schema(kind))[0])


@functools.cache
def _routes() -> list[BaseRoute]:
    """Routes of a daemon with all features."""
    with tempfile.TemporaryDirectory() as folder:
        audit = AuditLog(str(Path(folder) / "audit.db"))
        guard = Security(Authenticator(AccessSettings()), audit, FakeActions())
        alerts, cleanup = test_alerts_api.FakeAlerts(), test_cleanup_api.FakeCleanup()
        app = create_app(
            FakeCluster(), full_snapshot, alerts, None, cleanup, Reports(), guard, metrics=lambda: b"up 1\n",
            history=Histories(),
        )  # fmt: skip
        audit.close()
    return routes_of(app)


@functools.cache
def _openapi() -> tuple[dict[str, Any], dict[str, str]]:
    return without_class_names(document(served(_routes())), "#/components/schemas/")
