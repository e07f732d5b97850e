"""HTTP API of the agent's actions: POST /v1/actions, GET /v1/actions/ID, POST /v1/actions/ID/stop."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import msgspec

from monitor.agent.actions.auth import ActionAuthenticator, ActionRefusedError
from monitor.agent.actions.dispatcher import ActionDispatcher, ActionQueueFullError, NotStoppableError
from monitor.base.threads import Periodic
from monitor.facts.actions import Action, ActionFact, ActionRequest, ActionsFact

log = logging.getLogger(__name__)
ACTIONS_PATH = "/v1/actions"

# Status, JSON body, and the Retry-After value in seconds.
ActionReply = tuple[HTTPStatus, bytes, float | None]


class ActionApi:
    """Authenticates requests for actions and passes them to the dispatcher. `background` runs until `stop`."""

    def __init__(
        self, authenticator: ActionAuthenticator, dispatcher: ActionDispatcher, background: Periodic | None = None
    ) -> None:
        self._authenticator = authenticator
        self._dispatcher = dispatcher
        self._background = background
        if background is not None:
            background.start()
        self._encode = msgspec.json.Encoder().encode

    def answer(self, method: str, path: str, authorization: str, peer: str, body: bytes) -> ActionReply:
        """Reply to a request below /v1/actions; `peer` is the address of the client."""
        try:
            self._authenticator.authenticate(method, path, authorization, peer, body)
            return self._route(method, path.removeprefix(ACTIONS_PATH).strip("/").split("/"), body)
        except ActionRefusedError as error:
            self._authenticator.count_refusal(error.reason)
            log.warning("refused %s %s from %s: %s: %s", method, path, peer, error.reason, error)
            return error.status, self._error(str(error)), error.retry_after
        except ActionQueueFullError as error:
            self._authenticator.count_refusal("too-many")
            return HTTPStatus.TOO_MANY_REQUESTS, self._error(str(error)), 60.0
        except OSError as error:
            text = f"not performed, because the request id cannot be stored: {error}"
            return HTTPStatus.SERVICE_UNAVAILABLE, self._error(text), None

    def fact(self) -> ActionsFact:
        """Counters since the agent started."""
        done, failed, running = self._dispatcher.counts()
        refused, at = self._authenticator.refused, self._authenticator.refused_at
        return ActionsFact(enabled=True, done=done, failed=failed, refused=refused, refused_at=at, running=running)

    def stop(self) -> None:
        self._dispatcher.stop_all()
        if self._background is not None:
            self._background.stop()

    def _route(self, method: str, parts: list[str], body: bytes) -> ActionReply:
        match method, parts:
            case "POST", [""]:
                return self._submit(body)
            case "GET", [action_id] if action_id:
                return self._show(self._dispatcher.fact(action_id))
            case "POST", [action_id, "stop"]:
                return self._stop(action_id)
        text = f"there are POST {ACTIONS_PATH}, GET {ACTIONS_PATH}/ID and POST {ACTIONS_PATH}/ID/stop"
        return HTTPStatus.NOT_FOUND, self._error(text), None

    def _submit(self, body: bytes) -> ActionReply:
        request = decode_request(body)
        self._dispatcher.check_room(request.action)  # first, so that a rejected id can be used again
        self._authenticator.admit(request)
        return HTTPStatus.ACCEPTED, self._encode(self._dispatcher.submit(request)), None

    def _stop(self, action_id: str) -> ActionReply:
        try:
            return HTTPStatus.ACCEPTED, self._encode(self._dispatcher.stop(action_id)), None
        except NotStoppableError as error:
            return HTTPStatus.CONFLICT, self._error(str(error)), None

    def _show(self, fact: ActionFact | None) -> ActionReply:
        if fact is None:
            return HTTPStatus.NOT_FOUND, self._error("unknown action"), None
        return HTTPStatus.OK, self._encode(fact), None

    def _error(self, text: str) -> bytes:
        return self._encode({"error": text})


def decode_request(body: bytes) -> ActionRequest:
    """The request in a body. Raise ActionRefusedError if it is malformed.

    An unknown field is an error: it may be a protection that a newer daemon relies on.
    """
    try:
        request = msgspec.json.decode(body, type=ActionRequest)
        fields: dict[str, Any] = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, f"not an action: {error}") from None
    unknown = fields.keys() - set(ActionRequest.__struct_fields__)
    unknown |= fields["action"].keys() - _known_fields(request.action)
    if unknown:
        text = f"this agent does not know {', '.join(sorted(unknown))}: update it before the daemon"
        raise ActionRefusedError("malformed", HTTPStatus.BAD_REQUEST, text)
    return request


def _known_fields(action: Action) -> set[str]:
    return {*action.__struct_fields__, str(action.__struct_config__.tag_field)}
