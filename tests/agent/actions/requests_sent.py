"""Action requests as the daemon sends them."""

from __future__ import annotations

import time
import uuid
from typing import Any

from monitor.agent.settings import ActionLimits
from monitor.base.signing import RequestSigner, RequestVerifier, generate_keys
from monitor.facts.actions import ActionRequest, AnyAction, PruneBuildCache

PRUNE = PruneBuildCache(runtime="docker", unused_seconds=0.0)
NODE = "gpu-01"
KEYS = generate_keys()
SIGNER = RequestSigner(KEYS.private)
NO_LIMITS = ActionLimits(
    min_trash=0.0, min_grace=0.0, images_per_hour=10**9, processes_per_hour=10**9, datasets_per_hour=10**9,
    purges_per_hour=10**9, purge_bytes_per_hour=1 << 60,
)  # fmt: skip


def verifier(node: str = NODE) -> RequestVerifier:
    return RequestVerifier(node, KEYS.public)


def signed(
    method: str = "POST", path: str = "/v1/actions", body: bytes = b"", node: str = NODE, at: float | None = None
) -> dict[str, str]:
    """Headers of a request as the daemon signs it."""
    return {"Authorization": SIGNER.sign(node, method, path, body, time.time() if at is None else at)}


def request(action: AnyAction = PRUNE, **more: Any) -> ActionRequest:
    """A request that is valid now."""
    now = time.time()
    fields: dict[str, Any] = {"id": uuid.uuid4().hex, "issued_at": now, "expires_at": now + 60}
    return ActionRequest(**(fields | {"policy": "p", "plan": "plan-1", "action": action} | more))
