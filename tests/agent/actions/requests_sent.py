"""Action requests as the daemon sends them."""

from __future__ import annotations

import time
import uuid
from typing import Any

from monitor.facts.actions import ActionRequest, AnyAction, PruneBuildCache

PRUNE = PruneBuildCache(runtime="docker", unused_seconds=0.0)


def request(action: AnyAction = PRUNE, **more: Any) -> ActionRequest:
    """A request that is valid now."""
    now = time.time()
    fields: dict[str, Any] = {"id": uuid.uuid4().hex, "issued_at": now, "expires_at": now + 60}
    return ActionRequest(**(fields | {"policy": "p", "plan": "plan-1", "action": action} | more))
