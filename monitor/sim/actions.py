"""Actions of the simulated agents, with the requests and responses of real ones."""

from __future__ import annotations

import time

import msgspec

from monitor.facts.actions import ActionFact, ActionRequest, ActionState, KillProcess, PruneBuildCache, RemoveImage
from monitor.sim.http import SimRequest
from monitor.sim.node import SimNode

_decode = msgspec.json.Decoder(ActionRequest).decode


class SimActions:
    """Performs the actions of all agents, each action once."""

    def __init__(self) -> None:
        self._done: dict[str, ActionFact] = {}

    def act(self, node: SimNode, request: SimRequest) -> tuple[int, bytes]:
        """Status and body of the response to an action request."""
        if request.method == "GET":
            fact = self._done.get(request.path.rpartition("/")[2])
            return (200, msgspec.json.encode(fact)) if fact else (404, b'{"error":"no such action"}')
        try:
            action = _decode(request.body)
        except msgspec.MsgspecError as error:
            return 400, msgspec.json.encode({"error": str(error)})
        if action.id in self._done:
            return 409, b'{"error":"duplicate action"}'
        self._done[action.id] = _perform(node, action)
        return 202, msgspec.json.encode(self._done[action.id])


def _perform(node: SimNode, request: ActionRequest) -> ActionFact:
    action, now = request.action, time.time()
    outcome, freed = "unknown", None
    if isinstance(action, RemoveImage):
        names = next((image.names for image in node.images.values() if image.id == action.image_id), ())
        used = any(node.users_of(name) for name in names)
        freed = None if used else node.remove_image(action.image_id)
        outcome = "in-use" if used else "gone" if freed is None else "removed"
    elif isinstance(action, PruneBuildCache):
        outcome, freed = "removed", 0
    elif isinstance(action, KillProcess):
        outcome = "killed" if node.kill(action.pid) else "gone"
    refused = outcome in ("in-use", "unknown")
    return ActionFact(
        id=request.id,
        kind=str(type(action).__struct_config__.tag),
        state=ActionState.REFUSED if refused else ActionState.DONE,
        started_at=now,
        finished_at=now,
        outcome=outcome,
        freed_bytes=freed,
    )
