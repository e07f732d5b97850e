"""Requests as a daemon makes them."""

from __future__ import annotations

import time
import uuid
from typing import Any

from monitor.facts.actions import ActionRequest, AnyAction, PruneBuildCache

NOTHING = PruneBuildCache(runtime="docker", unused_seconds=0.0)


def request(action: AnyAction = NOTHING, **more: Any) -> ActionRequest:
    """Return a request that is good now."""
    now = time.time()
    given: dict[str, Any] = {"id": uuid.uuid4().hex, "issued_at": now, "expires_at": now + 60}
    return ActionRequest(**(given | {"policy": "p", "plan": "plan-1", "action": action} | more))
