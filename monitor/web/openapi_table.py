"""Operations of the JSON API: method, path, role, parameters, body and response.

A test compares the table with the served routes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from monitor.access.audit import AuditEntry
from monitor.access.principal import Role
from monitor.actions.plan import UserActionOutcome
from monitor.alert.silences import Silence
from monitor.alert.store import Delivery
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.facts import NodeSnapshot
from monitor.facts.base import Fact
from monitor.facts.cluster import ClusterView
from monitor.history.heatmap import HeatMap
from monitor.history.model import MAX_NAME_CHARS, HistorySubject
from monitor.leader.elector import LeaseState
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent, ReceiverTestResult
from monitor.present.cleanup import ShownPlan, ShownRun
from monitor.present.findings import LocalizedFinding
from monitor.present.incident import Incident
from monitor.queries.alerts import AcknowledgeRequest, SilenceRequest
from monitor.queries.cluster import PodExplanation
from monitor.queries.fits import MAX_GPUS, MAX_TOLERATIONS, FitsAnswer
from monitor.queries.history import HistoryAnswer
from monitor.report.model import Report
from monitor.web.actions_api import DeletePodsRequest, NodesRequest, PlanChanged, ReleaseGpuRequest
from monitor.web.alerts_api import MAX_ROWS as MAX_ALERT_ROWS
from monitor.web.alerts_api import SendTestRequest
from monitor.web.audit_api import MAX_ROWS as MAX_AUDIT_ROWS
from monitor.web.cleanup_api import MAX_ROWS as MAX_CLEANUP_ROWS
from monitor.web.cleanup_api import ReleaseRequest, RestoreRequest, RunRequest, ScanRequest
from monitor.web.login import CurrentUser

# Class -> name of its schema in the published document.
SCHEMA_NAMES = {
    "CleanupRun": "Run", "JournalEntry": "Entry", "KeptItem": "Kept", "ReportRow": "Row", "IncidentCount": "Incidents",
    "AuditEntry": "Deed", "CurrentUser": "Me", "DeletePodsRequest": "WantedDeletePods", "ErrorResponse": "Refusal",
    "LocalizedAlert": "SaidAlert", "LocalizedAlertEvent": "SaidEvent", "LocalizedFinding": "SaidFinding",
    "NodesRequest": "WantedNodes", "PlanChanged": "Changed", "PodExplanation": "Why", "ReceiverTestResult": "Tried",
    "ReleaseGpuRequest": "WantedReleaseGpu", "ReleaseRequest": "WantedRelease", "RestoreRequest": "WantedRestore",
    "RunRequest": "WantedRun", "RunStarted": "Started", "ScanRequest": "WantedScan", "ScanStopped": "Stopped",
    "SendTestRequest": "WantedTest", "SilenceEnded": "Ended", "SilenceRequest": "NewSilence", "Text": "Note",
    "NotificationReason": "Reason",
    "UserActionOutcome": "Outcome", "UserActionStep": "Step", "WebhookResult": "Messages",
}  # fmt: skip


class ErrorResponse(Fact, frozen=True, kw_only=True):
    """Why a request was rejected or failed."""

    error: str


class SilenceEnded(Fact, frozen=True, kw_only=True):
    """The id of the expired silence."""

    ended: str


class AlertAcknowledged(Fact, frozen=True, kw_only=True):
    """The fingerprint of the acknowledged alert."""

    acknowledged: str


class WebhookResult(Fact, frozen=True, kw_only=True):
    """The number of messages that a webhook call resulted in."""

    messages: int


class RunStarted(Fact, frozen=True, kw_only=True):
    """The nodes on which a policy has been started."""

    started: tuple[str, ...]


class ScanStopped(Fact, frozen=True, kw_only=True):
    """Whether a scan was in progress."""

    stopped: bool


class LoginLink(Fact, frozen=True, kw_only=True):
    """The path of a one-time login as admin."""

    path: str


@dataclass(frozen=True)
class Parameter:
    """A parameter in the query or in the path."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: str = "query"
    required: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation. `also` lists response media types in addition to JSON."""

    method: str
    path: str
    name: str
    summary: str
    response: Any = None
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    body_required: bool = True
    status: HTTPStatus = HTTPStatus.OK
    role: Role = Role.VIEWER
    also: tuple[str, ...] = ()
    errors: Mapping[HTTPStatus, Any] = field(default_factory=dict)


def _limit(maximum: int) -> Parameter:
    return Parameter("limit", {"type": "integer", "minimum": 1, "maximum": maximum})


LANG = Parameter("lang", {"type": "string", "enum": ["en", "zh"]})
POLICY = Parameter("policy")
SINCE = Parameter("since", {"type": "string", "description": "How far back: 90m, 24h, 7d."})
BY = Parameter("by", {"type": "string", "enum": ["user", "queue", "node"]})
FORMAT = Parameter("format", {"type": "string", "enum": ["json", "csv", "html"]})
INCIDENT_FORMAT = Parameter("format", {"type": "string", "enum": ["json", "markdown", "html"]})
FINGERPRINT = Parameter("fingerprint", where="path")
SILENCE_ID = Parameter("own", where="path")
TRASH_ID = Parameter("trash", where="path")
BEFORE = Parameter("before", {"type": "integer", "minimum": 1, "description": "Only entries with a smaller id."})
WHY = (Parameter("name", required=True), Parameter("namespace"), LANG)
FITS = (
    Parameter("gpus", {"type": "integer", "minimum": 1, "maximum": MAX_GPUS}, required=True),
    Parameter(
        "per_node",
        {"type": "integer", "minimum": 1, "maximum": MAX_GPUS, "description": "GPUs of each pod; default: all."},
    ),
    Parameter("resource", {"type": "string", "description": "Default: the GPU resource of the configuration."}),
    Parameter("model", {"type": "string", "description": "A part of the name of the GPU model."}),
    Parameter("queue"),
    Parameter("namespace", {"type": "string", "description": "Whose ResourceQuotas count."}),
    Parameter("cpu", {"type": "string", "description": "Of each pod: 8, 500m."}),
    Parameter("memory", {"type": "string", "description": "Of each pod: 64Gi."}),
    Parameter(
        "tolerate",
        {"type": "array", "items": {"type": "string"}, "maxItems": MAX_TOLERATIONS, "description": "Taints."},
    ),
    LANG,
)
SPAN = Parameter("span", {"type": "string", "description": "How far back: 1h, 24h, 7d."})
UNTIL = Parameter("until", {"type": "integer", "minimum": 0, "description": "End as Unix time; default: now."})
HISTORY = (
    Parameter("subject", {"type": "string", "enum": [subject.value for subject in HistorySubject]}, required=True),
    Parameter("name", {"type": "string", "maxLength": MAX_NAME_CHARS, "description": "Unless it is the cluster."}),
    SPAN, UNTIL, LANG,
)  # fmt: skip
HEAT_MAP = (
    SPAN, UNTIL,
    Parameter("first", {"type": "string", "maxLength": MAX_NAME_CHARS, "description": "First node; default: all."}),
    Parameter("last", {"type": "string", "maxLength": MAX_NAME_CHARS, "description": "Last node; default: all."}),
)  # fmt: skip
# Statuses whose response is an error of JSON-RPC.
JSON_RPC_ERRORS = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE)
ADMIN = Role.ADMIN
ACTION: dict[str, Any] = {
    "response": UserActionOutcome, "parameters": (LANG,), "role": Role.USER,
    "errors": {HTTPStatus.CONFLICT: PlanChanged},
}  # fmt: skip

GENERAL_OPERATIONS = (
    Operation("GET", "/v1/openapi.json", "openapi", "This document.", dict[str, Any]),
    Operation("GET", "/v1/me", "me", "The current user and role.", CurrentUser),
    Operation("GET", "/v1/view", "view", "The cluster: nodes, GPUs, pods, queues, users.", ClusterView),
    Operation("GET", "/v1/findings", "findings", "Current findings.", tuple[LocalizedFinding, ...], (LANG,)),
    Operation("GET", "/v1/why", "why", "Why a pod, a job or the pods of a user are so.", PodExplanation, WHY),
    Operation("GET", "/v1/fits", "fits", "Whether a job that does not exist yet would fit.", FitsAnswer, FITS),
    Operation("GET", "/v1/snapshot", "snapshot", "Snapshot of the agent in this process, if any.", NodeSnapshot),
    Operation("GET", "/v1/lease", "lease", "Which replica is the leader.", LeaseState),
    Operation(
        "GET", "/v1/report", "report", "GPU hours, disks, cleanup and incidents.", Report, (SINCE, BY, FORMAT, LANG),
        also=("text/csv", "text/html"),
    ),
    Operation(
        "GET", "/v1/incidents/{fingerprint}", "incident", "An alert with its cause, its symptoms and their timeline.",
        Incident, (FINGERPRINT, INCIDENT_FORMAT, LANG), also=("text/markdown", "text/html"),
    ),
    Operation("GET", "/v1/history", "history", "Figures of one entity over time.", HistoryAnswer, HISTORY),
    Operation(
        "GET", "/v1/history/nodes", "historyNodes", "GPU utilisation of all nodes over time, for a heat map.", HeatMap,
        HEAT_MAP,
    ),
    Operation(
        "POST", "/v1/mcp", "mcp", "Questions of assistants: a JSON-RPC message of the Model Context Protocol.",
        dict[str, Any], body=dict[str, Any], errors=dict.fromkeys(JSON_RPC_ERRORS, dict[str, Any]),
    ),
    Operation(
        "GET", "/v1/audit", "audit", "The audit log, newest first.", tuple[AuditEntry, ...],
        (_limit(MAX_AUDIT_ROWS), BEFORE), role=ADMIN,
    ),
)  # fmt: skip
ALERT_OPERATIONS = (
    Operation("GET", "/v1/alerts", "alerts", "All alerts.", tuple[LocalizedAlert, ...], (LANG,)),
    Operation(
        "GET", "/v1/alerts/history", "alertsHistory", "Alert events, newest first.", tuple[LocalizedAlertEvent, ...],
        (SINCE, _limit(MAX_ALERT_ROWS), LANG),
    ),
    Operation(
        "POST", "/v1/alerts/test", "alertsTest", "Send a test message.", tuple[ReceiverTestResult, ...],
        body=SendTestRequest, body_required=False, role=ADMIN,
    ),
    Operation(
        "POST", "/v1/alerts/acknowledge/{fingerprint}", "acknowledge", "Say that you take care of an alert.",
        AlertAcknowledged, (FINGERPRINT,), body=AcknowledgeRequest, body_required=False, role=Role.USER,
    ),
    Operation(
        "GET", "/v1/deliveries", "deliveries", "Deliveries, newest first.", tuple[Delivery, ...],
        (_limit(MAX_ALERT_ROWS),),
    ),
    Operation("GET", "/v1/silences", "silences", "Active silences.", tuple[Silence, ...]),
    Operation(
        "POST", "/v1/silences", "silence", "Create a silence.", Silence, body=SilenceRequest,
        status=HTTPStatus.CREATED, role=ADMIN,
    ),
    Operation(
        "DELETE", "/v1/silences/{own}", "unsilence", "Expire a silence.", SilenceEnded, (SILENCE_ID,), role=ADMIN
    ),
    Operation(
        "POST", "/v1/alertmanager", "alertmanager", "Webhook of an Alertmanager, which may have its own token.",
        WebhookResult, body=dict[str, Any], role=ADMIN,
    ),
)  # fmt: skip
CLEANUP_OPERATIONS = (
    Operation(
        "GET", "/v1/cleanup/plan", "cleanupPlan", "Plans of the policies.", tuple[ShownPlan, ...], (POLICY, LANG)
    ),
    Operation(
        "GET", "/v1/cleanup/history", "cleanupHistory", "Runs of the policies, newest first.", tuple[ShownRun, ...],
        (_limit(MAX_CLEANUP_ROWS), POLICY),
    ),
    Operation("GET", "/v1/cleanup/scan", "cleanupScan", "Progress of a scan.", ScanProgress, (POLICY,)),
    Operation(
        "POST", "/v1/cleanup/scan", "cleanupBeginScan", "Start a scan.", ScanProgress, body=ScanRequest,
        status=HTTPStatus.ACCEPTED, role=ADMIN,
    ),
    Operation(
        "POST", "/v1/cleanup/scan/stop", "cleanupStopScan", "Stop a scan.", ScanStopped, body=ScanRequest, role=ADMIN
    ),
    Operation(
        "POST", "/v1/cleanup/run", "cleanupRun", "Run a policy.", RunStarted, body=RunRequest,
        status=HTTPStatus.ACCEPTED, role=ADMIN,
    ),
    Operation(
        "POST", "/v1/cleanup/release", "cleanupRelease", "Release a GPU.", ShownRun, body=ReleaseRequest, role=ADMIN
    ),
    Operation(
        "POST", "/v1/cleanup/restore/{trash}", "cleanupRestore", "Restore from the trash.", ShownRun, (TRASH_ID,),
        body=RestoreRequest, body_required=False, role=ADMIN,
    ),
)  # fmt: skip
ACTION_OPERATIONS = (
    Operation(
        "POST", "/v1/actions/release-gpu", "releaseGpu", "Release a GPU from holders that do not use it.",
        body=ReleaseGpuRequest, **ACTION,
    ),
    Operation("POST", "/v1/actions/delete-pods", "deletePods", "Delete pods.", body=DeletePodsRequest, **ACTION),
    Operation("POST", "/v1/actions/cordon", "cordon", "Cordon nodes.", body=NodesRequest, **ACTION),
    Operation("POST", "/v1/actions/uncordon", "uncordon", "Uncordon nodes.", body=NodesRequest, **ACTION),
    Operation(
        "POST", "/v1/login-link", "loginLink", "Create a one-time login link for an admin.", LoginLink,
        status=HTTPStatus.CREATED, role=ADMIN,
    ),
)  # fmt: skip
OPERATIONS = GENERAL_OPERATIONS + ALERT_OPERATIONS + CLEANUP_OPERATIONS + ACTION_OPERATIONS
