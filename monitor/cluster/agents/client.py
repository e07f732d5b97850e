"""Fetches the snapshot of one agent, bounded in time and size whatever the agent does."""

from __future__ import annotations

import http.client
from http import HTTPStatus
from urllib.parse import quote

from monitor.base.peer_http import PeerClient, PeerError, PeerTls
from monitor.base.process import max_descriptors

MAX_BODY_BYTES = 8 * 1024 * 1024  # 20,000 containers; decoding takes up to 20 times as much memory
IDLE_SECONDS = 14.0  # an agent closes a connection that is idle for 15 s
MAX_IDLE_RATIO = 0.25  # of the descriptors that this process may have
SNAPSHOT_PATH = "/v1/snapshot"


class AgentError(Exception):
    """An agent's snapshot could not be fetched. The message never quotes the agent."""


class SnapshotClient:
    """Fetches snapshots from any number of threads until it is closed."""

    def __init__(
        self, timeout: float, token: str | None, tls: PeerTls | None = None, *, keep_connections: bool = False
    ) -> None:
        """Raise ValueError if a certificate cannot be used."""
        context = tls.context() if tls is not None else None
        self._client = PeerClient(
            timeout,
            MAX_BODY_BYTES,
            context,
            tls.server_name if tls is not None else None,
            idle_seconds=IDLE_SECONDS,
            max_idle=int(max_descriptors() * MAX_IDLE_RATIO) if keep_connections else 0,
        )
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def __call__(self, target: str, since: str | None = None) -> bytes:
        """Body of the snapshot of the agent at host:port, or of the update since a version. Raise AgentError."""
        path = SNAPSHOT_PATH if since is None else f"{SNAPSHOT_PATH}?since={quote(since, safe='')}"
        try:
            reply = self._client.request(target, "GET", path, headers=self._headers)
        except PeerError as error:
            raise AgentError(str(error)) from error.__cause__  # the kind of failure matters to the doctor
        if reply.status != HTTPStatus.OK:
            raise AgentError(f"answered {reply.status} {http.client.responses.get(reply.status, '')}".rstrip())
        return reply.body

    def close(self) -> None:
        """Break off all requests and refuse new ones."""
        self._client.close()
