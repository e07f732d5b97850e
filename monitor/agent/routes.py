"""Responses of the agent to requests, whichever server receives them."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple, Protocol

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from monitor.agent.metrics import AgentMetrics
from monitor.agent.versions import SnapshotVersions
from monitor.facts import NodeSnapshot
from monitor.facts.actions import ActionsFact

JSON_CONTENT_TYPE = "application/json"
HEALTH_PATH = "/healthz"
SNAPSHOT_PATH = "/v1/snapshot"
SINCE = "since="  # query of a client that keeps the snapshot: the version that it has, or anything else
ACTIONS_PATH = "/v1/actions"


class AgentReply(NamedTuple):
    """An HTTP response."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON_CONTENT_TYPE
    retry_after: float | None = None


class ActionEndpoint(Protocol):
    """Serves requests below /v1/actions: status, JSON body, and the Retry-After value in seconds."""

    def answer(
        self, method: str, path: str, authorization: str, peer: str, body: bytes
    ) -> tuple[HTTPStatus, bytes, float | None]: ...

    def fact(self) -> ActionsFact: ...

    def stop(self) -> None: ...


class ActionsDisabled:
    """Refuses all actions and counts the refusals."""

    def __init__(self) -> None:
        self._fact = ActionsFact(enabled=False)

    def answer(
        self, _method: str, _path: str, _authorization: str, _peer: str, _body: bytes
    ) -> tuple[HTTPStatus, bytes, float | None]:
        refused = self._fact.refused.get("disabled", 0) + 1
        self._fact = ActionsFact(enabled=False, refused={"disabled": refused}, refused_at=time.time())
        return HTTPStatus.FORBIDDEN, b'{"error":"disabled: set agent.actions.enabled"}', None

    def fact(self) -> ActionsFact:
        return self._fact

    def stop(self) -> None:
        """Nothing is running."""


class AgentRoutes:
    """Responses to GET requests outside /v1/actions."""

    def __init__(self, snapshot: Callable[[], NodeSnapshot], token: str | None) -> None:
        self._snapshot = snapshot
        self._token = token.encode() if token else None
        self._exposition = AgentMetrics()
        self._versions = SnapshotVersions(snapshot)
        self._encode = msgspec.json.Encoder().encode

    def answer(self, path: str, authorization: str, query: str = "") -> AgentReply:
        route = {"/metrics": self._metrics, SNAPSHOT_PATH: self._json, HEALTH_PATH: self._health}.get(path)
        if route is None:
            return error_reply(HTTPStatus.NOT_FOUND, "there are /metrics, /v1/snapshot and /healthz")
        if path != HEALTH_PATH and not self._authorized(authorization):
            return error_reply(HTTPStatus.UNAUTHORIZED, "send the agent's token as Authorization: Bearer")
        return route(query)

    def _authorized(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(" ")
        as_sent = token.strip().encode("latin-1", "replace")  # http.server decodes headers as Latin-1
        return scheme.lower() == "bearer" and hmac.compare_digest(as_sent, self._token)

    def _metrics(self, _query: str) -> AgentReply:
        return AgentReply(HTTPStatus.OK, self._exposition.render(self._snapshot()), CONTENT_TYPE_LATEST)

    def _json(self, query: str) -> AgentReply:
        keeps_it = query.startswith(SINCE)
        snapshot = self._versions.update(query.removeprefix(SINCE)) if keeps_it else self._snapshot()
        return AgentReply(HTTPStatus.OK, self._encode(snapshot))

    def _health(self, _query: str) -> AgentReply:
        """Always "ok": a hung driver is a fault of the node, which restarting the agent does not fix."""
        hung = {fact.name: fact.hung_since for fact in self._snapshot().collectors if fact.hung_since}
        return AgentReply(HTTPStatus.OK, self._encode({"status": "ok", "hung": hung}))


def error_reply(status: HTTPStatus, text: str, retry_after: float | None = None) -> AgentReply:
    """Reply that says what is wrong."""
    return AgentReply(status, msgspec.json.encode({"error": text}), retry_after=retry_after)


def is_action(path: str) -> bool:
    """Whether a path belongs to the actions."""
    return path == ACTIONS_PATH or path.startswith(f"{ACTIONS_PATH}/")
