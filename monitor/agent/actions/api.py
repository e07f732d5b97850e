"""The agent's actions over HTTP: POST /v1/actions, GET /v1/actions/ID, POST /v1/actions/ID/stop."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import msgspec

from monitor.agent.actions.auth import ActionAuthenticator, ActionRefusedError
from monitor.agent.actions.dispatcher import ActionDispatcher, ActionQueueFullError, NotStoppableError
from monitor.facts.actions import Action, ActionFact, ActionRequest, ActionsFact

log = logging.getLogger(__name__)
ACTIONS_PATH = "/v1/actions"

# Status, body (JSON), and after how many seconds to ask again, where that is said.
ActionReply = tuple[HTTPStatus, bytes, float | None]


class ActionApi:
    """What is answered to whoever wants the agent to act."""

    def __init__(self, gate: ActionAuthenticator, desk: ActionDispatcher) -> None:
        self._gate = gate
        self._desk = desk
        self._encode = msgspec.json.Encoder().encode

    def answer(self, method: str, path: str, authorization: str, peer: str, body: bytes) -> ActionReply:
        """Given a request below /v1/actions and from which address it came, return the answer."""
        try:
            self._gate.identify(authorization, peer)
            return self._routed(method, path.removeprefix(ACTIONS_PATH).strip("/").split("/"), body)
        except ActionRefusedError as error:
            self._gate.count(error.reason)
            log.warning("refused %s %s from %s: %s: %s", method, path, peer, error.reason, error)
            return error.status, self._error(str(error)), error.retry_after
        except ActionQueueFullError as error:
            self._gate.count("too-many")
            return HTTPStatus.TOO_MANY_REQUESTS, self._error(str(error)), 60.0
        except OSError as error:
            text = f"what was asked for cannot be remembered, so it is not done: {error}"
            return HTTPStatus.SERVICE_UNAVAILABLE, self._error(text), None

    def fact(self) -> ActionsFact:
        """Return what was asked for since the agent started."""
        done, failed, running = self._desk.counts()
        return ActionsFact(
            enabled=True,
            done=done,
            failed=failed,
            refused=self._gate.refused,
            refused_at=self._gate.refused_at,
            running=running,
        )

    def stop(self) -> None:
        """Have what runs and can be stopped end early."""
        self._desk.stop_all()

    def _routed(self, method: str, parts: list[str], body: bytes) -> ActionReply:
        match method, parts:
            case "POST", [""]:
                return self._submit(body)
            case "GET", [ident] if ident:
                return self._told(self._desk.fact(ident))
            case "POST", [ident, "stop"]:
                return self._stop(ident)
        text = f"there are POST {ACTIONS_PATH}, GET {ACTIONS_PATH}/ID and POST {ACTIONS_PATH}/ID/stop"
        return HTTPStatus.NOT_FOUND, self._error(text), None

    def _submit(self, body: bytes) -> ActionReply:
        request = decode_request(body)
        self._desk.check_room(request.action)  # first: an id that was not taken may be used again
        self._gate.admit(request)
        return HTTPStatus.ACCEPTED, self._encode(self._desk.submit(request)), None

    def _stop(self, ident: str) -> ActionReply:
        try:
            return HTTPStatus.ACCEPTED, self._encode(self._desk.stop(ident)), None
        except NotStoppableError as error:
            return HTTPStatus.CONFLICT, self._error(str(error)), None

    def _told(self, fact: ActionFact | None) -> ActionReply:
        if fact is None:
            return HTTPStatus.NOT_FOUND, self._error("no such action is remembered"), None
        return HTTPStatus.OK, self._encode(fact), None

    def _error(self, text: str) -> bytes:
        return self._encode({"error": text})


def decode_request(body: bytes) -> ActionRequest:
    """Given what was sent, return the request that it is. Raise RefusedError that says what is wrong with it.

    A field that is not known here is an error: it may be a protection that a newer daemon relies on.
    """
    try:
        request = msgspec.json.decode(body, type=ActionRequest)
        sent: dict[str, Any] = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, f"not an action: {error}") from None
    unknown = sent.keys() - set(ActionRequest.__struct_fields__)
    unknown |= sent["action"].keys() - _fields(request.action)
    if unknown:
        text = f"this agent does not know {', '.join(sorted(unknown))}: update it before the daemon"
        raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, text)
    return request


def _fields(action: Action) -> set[str]:
    return {*action.__struct_fields__, str(action.__struct_config__.tag_field)}
