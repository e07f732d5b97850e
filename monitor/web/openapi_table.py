"""Everything that the JSON API answers to: method, path, who may, what is sent and what comes back.

A test compares it with the routes that are served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from monitor.access.audit import Deed
from monitor.access.principal import Role
from monitor.actions.plan import Outcome
from monitor.alert.silences import Silence
from monitor.alert.store import Delivery
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.cleanup.shown import ShownPlan, ShownRun
from monitor.facts import NodeSnapshot
from monitor.facts.base import Fact
from monitor.facts.cluster import ClusterView
from monitor.leader.elector import LeaseState
from monitor.present.alerts import SaidAlert, SaidEvent, Tried
from monitor.present.findings import SaidFinding
from monitor.queries.alerts import NewSilence
from monitor.queries.cluster import Why
from monitor.report.model import Report
from monitor.web.actions_api import Changed, WantedDeletePods, WantedNodes, WantedReleaseGpu
from monitor.web.alerts_api import MOST_ROWS, WantedTest
from monitor.web.audit_api import MOST_ROWS as MOST_DEEDS
from monitor.web.cleanup_api import MOST_RUNS, WantedRelease, WantedRestore, WantedRun, WantedScan
from monitor.web.login import Me

# Class -> its name among the components of the published document.
SCHEMA_NAMES = {"Text": "Note", "NotificationReason": "Reason"}


class Refusal(Fact, frozen=True, kw_only=True):
    """Why something is not answered, in a sentence."""

    error: str


class Ended(Fact, frozen=True, kw_only=True):
    """The silence that is over."""

    ended: str


class Messages(Fact, frozen=True, kw_only=True):
    """How many messages an Alertmanager's call has made."""

    messages: int


class Started(Fact, frozen=True, kw_only=True):
    """Where a policy has begun to run."""

    started: tuple[str, ...]


class Stopped(Fact, frozen=True, kw_only=True):
    """Whether there was a scan to stop."""

    stopped: bool


class LoginLink(Fact, frozen=True, kw_only=True):
    """The path by which a browser is signed in as admin, once."""

    path: str


@dataclass(frozen=True)
class Parameter:
    """Something in the query or in the path."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: str = "query"
    required: bool = False


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked for. `also` are kinds of content that it can be had as, beside JSON."""

    method: str
    path: str
    name: str
    summary: str
    answer: Any = None
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    body_required: bool = True
    status: HTTPStatus = HTTPStatus.OK
    role: Role = Role.VIEWER
    also: tuple[str, ...] = ()
    refusals: Mapping[HTTPStatus, Any] = field(default_factory=dict)


def _limit(most: int) -> Parameter:
    return Parameter("limit", {"type": "integer", "minimum": 1, "maximum": most})


LANG = Parameter("lang", {"type": "string", "enum": ["en", "zh"]})
POLICY = Parameter("policy")
SINCE = Parameter("since", {"type": "string", "description": "How far back: 90m, 24h, 7d."})
BY = Parameter("by", {"type": "string", "enum": ["user", "queue", "node"]})
FORMAT = Parameter("format", {"type": "string", "enum": ["json", "csv", "html"]})
OWN = Parameter("own", where="path")
TRASH = Parameter("trash", where="path")
BEFORE = Parameter("before", {"type": "integer", "minimum": 1, "description": "The id of a deed: those before it."})
WHY = (Parameter("name", required=True), Parameter("namespace"), LANG)
A = Role.ADMIN
ACT: dict[str, Any] = {
    "answer": Outcome, "parameters": (LANG,), "role": Role.USER, "refusals": {HTTPStatus.CONFLICT: Changed},
}  # fmt: skip

READING = (
    Operation("GET", "/v1/openapi.json", "openapi", "This document.", dict[str, Any]),
    Operation("GET", "/v1/me", "me", "Who asks, and what they may do.", Me),
    Operation("GET", "/v1/view", "view", "The cluster: nodes, cards, pods, queues, users.", ClusterView),
    Operation("GET", "/v1/findings", "findings", "What is wrong, in words.", tuple[SaidFinding, ...], (LANG,)),
    Operation("GET", "/v1/why", "why", "Why a pod or job is as it is.", Why, WHY),
    Operation("GET", "/v1/snapshot", "snapshot", "This machine, if its agent is in this process.", NodeSnapshot),
    Operation("GET", "/v1/lease", "lease", "Which replica acts, and whether it is this one.", LeaseState),
    Operation(
        "GET", "/v1/report", "report", "GPU hours, disks, cleanup and incidents.", Report, (SINCE, BY, FORMAT, LANG),
        also=("text/csv", "text/html"),
    ),
    Operation("GET", "/v1/audit", "audit", "Who did what.", tuple[Deed, ...], (_limit(MOST_DEEDS), BEFORE), role=A),
)  # fmt: skip
ALERTING = (
    Operation("GET", "/v1/alerts", "alerts", "What fires.", tuple[SaidAlert, ...], (LANG,)),
    Operation(
        "GET", "/v1/alerts/history", "alertsHistory", "What happened to alerts.", tuple[SaidEvent, ...],
        (SINCE, _limit(MOST_ROWS), LANG),
    ),
    Operation(
        "POST", "/v1/alerts/test", "alertsTest", "Send a test message.", tuple[Tried, ...], body=WantedTest,
        body_required=False, role=A,
    ),
    Operation(
        "GET", "/v1/deliveries", "deliveries", "What became of messages.", tuple[Delivery, ...], (_limit(MOST_ROWS),)
    ),
    Operation("GET", "/v1/silences", "silences", "The silences in force.", tuple[Silence, ...]),
    Operation(
        "POST", "/v1/silences", "silence", "Add a silence.", Silence, body=NewSilence, status=HTTPStatus.CREATED, role=A
    ),
    Operation("DELETE", "/v1/silences/{own}", "unsilence", "End a silence.", Ended, (OWN,), role=A),
    Operation(
        "POST", "/v1/alertmanager", "alertmanager", "What an Alertmanager tells; it may have a token of its own.",
        Messages, body=dict[str, Any], role=A,
    ),
)  # fmt: skip
CLEANING = (
    Operation(
        "GET", "/v1/cleanup/plan", "cleanupPlan", "What policies would do.", tuple[ShownPlan, ...], (POLICY, LANG)
    ),
    Operation(
        "GET", "/v1/cleanup/history", "cleanupHistory", "What they did.", tuple[ShownRun, ...],
        (_limit(MOST_RUNS), POLICY),
    ),
    Operation("GET", "/v1/cleanup/scan", "cleanupScan", "How far a scan is.", ScanProgress, (POLICY,)),
    Operation(
        "POST", "/v1/cleanup/scan", "cleanupBeginScan", "Begin a scan.", ScanProgress, body=WantedScan,
        status=HTTPStatus.ACCEPTED, role=A,
    ),
    Operation("POST", "/v1/cleanup/scan/stop", "cleanupStopScan", "Stop a scan.", Stopped, body=WantedScan, role=A),
    Operation(
        "POST", "/v1/cleanup/run", "cleanupRun", "Have a policy run.", Started, body=WantedRun,
        status=HTTPStatus.ACCEPTED, role=A,
    ),
    Operation("POST", "/v1/cleanup/release", "cleanupRelease", "Release a card.", ShownRun, body=WantedRelease, role=A),
    Operation(
        "POST", "/v1/cleanup/restore/{trash}", "cleanupRestore", "Put something back.", ShownRun, (TRASH,),
        body=WantedRestore, body_required=False, role=A,
    ),
)  # fmt: skip
ACTING = (
    Operation(
        "POST", "/v1/actions/release-gpu", "releaseGpu", "Release a card that is held for nothing.",
        body=WantedReleaseGpu, **ACT,
    ),
    Operation("POST", "/v1/actions/delete-pods", "deletePods", "Delete pods.", body=WantedDeletePods, **ACT),
    Operation("POST", "/v1/actions/cordon", "cordon", "Keep new pods off nodes.", body=WantedNodes, **ACT),
    Operation("POST", "/v1/actions/uncordon", "uncordon", "Let new pods on nodes.", body=WantedNodes, **ACT),
    Operation(
        "POST", "/v1/login-link", "loginLink", "A link that signs a browser in as admin, once.", LoginLink,
        status=HTTPStatus.CREATED, role=A,
    ),
)  # fmt: skip
OPERATIONS = READING + ALERTING + CLEANING + ACTING
