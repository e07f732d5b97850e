"""HTTP client of the action API of agents: submits an action and polls it until it ends.

An id is used once. A request that may have been lost is not sent again under another id: the outcome is polled by the
id of the request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from monitor.base.peer_http import PeerClient, PeerError, PeerTls
from monitor.base.peer_wire import PeerReply
from monitor.base.signing import RequestSigner
from monitor.base.text import shorten
from monitor.facts.actions import ActionFact, ActionRequest, ActionState

ROUTE = "/v1/actions"
MAX_BODY_BYTES = 64 * 1024 * 1024  # the scan of a root with 100,000 units
MAX_REFUSAL_CHARS = 300
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 2.0
MAX_SILENCE_SECONDS = 60.0  # an agent may be unreachable for this long during an action


@dataclass(frozen=True)
class Access:
    """Access to the action API of agents: the daemon's key, the timeout of a request in seconds, and TLS if used."""

    signer: RequestSigner | None = None
    limit: float = 10.0
    tls: PeerTls | None = None


class AgentTarget(NamedTuple):
    """The agent of a node: requests are signed for the node and sent to the address, host:port."""

    node: str
    address: str


class AgentSilentError(Exception):
    """No answer, or no valid one: whether the agent received the request is unknown."""


class AgentRefusesError(Exception):
    """The agent refused the request for the reason `word`; `retry_after` is set if a retry may succeed."""

    def __init__(self, word: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.word = word
        self.retry_after = retry_after


WORDS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "signature",
    HTTPStatus.MISDIRECTED_REQUEST: "node",
    HTTPStatus.FORBIDDEN: "disabled",
    HTTPStatus.CONFLICT: "replayed",
    HTTPStatus.GONE: "expired",
    HTTPStatus.TOO_MANY_REQUESTS: "too-many",
    HTTPStatus.BAD_REQUEST: "malformed",
}


class _Refusal(msgspec.Struct):
    error: str = ""


class ActionClient:
    """Thread-safe client of all agents. `stopping` ends all waiting."""

    def __init__(self, access: Access, stopping: threading.Event) -> None:
        """Raise ValueError if a certificate or a key cannot be read."""
        self._access = access
        self._stopping = stopping
        context = access.tls.context() if access.tls is not None else None
        server_name = access.tls.server_name if access.tls is not None else None
        self._client = PeerClient(access.limit, MAX_BODY_BYTES, context, server_name)

    def submit(self, target: AgentTarget, request: ActionRequest) -> ActionFact:
        """Submit an action to an agent. Raise AgentRefusesError or AgentSilentError."""
        return self._fact(target, "POST", ROUTE, msgspec.json.encode(request))

    def ask(self, target: AgentTarget, own: str) -> ActionFact | None:
        """Current state of an action; None if the agent does not know it. Raise as `submit` does."""
        try:
            return self._fact(target, "GET", f"{ROUTE}/{own}")
        except _UnknownError:
            return None

    def stop(self, target: AgentTarget, own: str) -> None:
        """Stop a scan or a purge early. Raise as `submit` does."""
        self._fact(target, "POST", f"{ROUTE}/{own}/stop")

    def finish(
        self, target: AgentTarget, fact: ActionFact, limit: float, look: Callable[[ActionFact], None] = lambda _: None
    ) -> ActionFact:
        """Wait until a submitted action has ended and return it. `look` receives its progress.

        Raise AgentSilentError if it has not ended within `limit` seconds, AgentRefusesError if the agent refuses polls.
        """
        deadline, rest, heard = time.monotonic() + limit, FIRST_POLL_SECONDS, time.monotonic()
        while fact.state is ActionState.RUNNING:
            look(fact)
            if time.monotonic() >= deadline:
                raise AgentSilentError(f"it was not over within {limit:g} s")
            if self._stopping.wait(rest):
                raise AgentSilentError("the daemon is being stopped")
            rest = min(rest * 1.5, MAX_POLL_SECONDS)
            try:
                found = self.ask(target, fact.id)
            except AgentSilentError:
                if time.monotonic() - heard > MAX_SILENCE_SECONDS:
                    raise
                continue
            if found is None:
                raise AgentSilentError("the agent does not remember the action")
            fact, heard = found, time.monotonic()
        return fact

    def _fact(self, target: AgentTarget, method: str, path: str, body: bytes | None = None) -> ActionFact:
        headers = self._headers(target.node, method, path, body or b"")
        try:
            reply = self._client.request(target.address, method, path, body, headers)
        except PeerError as error:
            raise AgentSilentError(f"{target.address}: {error}") from None
        if reply.status in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
            try:
                return msgspec.json.decode(reply.body, type=ActionFact)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise AgentSilentError(f"{target.address} answered with something else: {error}") from None
        if reply.status == HTTPStatus.NOT_FOUND:
            raise _UnknownError
        raise AgentRefusesError(
            WORDS.get(reply.status, "failed"), _said(target.address, reply), _seconds(reply.headers.get("Retry-After"))
        )

    def _headers(self, node: str, method: str, path: str, body: bytes) -> dict[str, str]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._access.signer is not None:
            headers["Authorization"] = self._access.signer.sign(node, method, path, body, time.time())
        return headers


class _UnknownError(AgentRefusesError):
    """The agent knows no such action."""

    def __init__(self) -> None:
        super().__init__("unknown", "the agent knows no such action: is it a version that acts?")


def _said(address: str, reply: PeerReply) -> str:
    try:
        said = msgspec.json.decode(reply.body, type=_Refusal).error
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        said = ""
    return f"{address} answered {reply.status}" + (f": {shorten(said, MAX_REFUSAL_CHARS)}" if said else "")


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.strip().isdecimal() else None
