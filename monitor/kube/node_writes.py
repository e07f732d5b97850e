"""Writes to nodes: cordon and uncordon."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import msgspec

from monitor.kube.client import ApiConnectionError, ApiError, KubeApi
from monitor.kube.pod_writes import WRITE_TIMEOUT_SECONDS, WriteResult, WriteState

MERGE_PATCH_TYPE = "application/merge-patch+json"


class NodeWrites:
    """Cordons and uncordons nodes."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def cordon(self, name: str, *, cordoned: bool) -> WriteResult:
        body = msgspec.json.encode({"spec": {"unschedulable": cordoned}})
        path = f"/api/v1/nodes/{quote(name, safe='')}"
        try:
            self._api.send("PATCH", path, body, WRITE_TIMEOUT_SECONDS, MERGE_PATCH_TYPE)
        except ApiError as error:
            return _failure(error)
        except ApiConnectionError as error:
            return WriteResult(WriteState.FAILED, "lost", str(error))
        return WriteResult(WriteState.DONE, "cordoned" if cordoned else "uncordoned")


def _failure(error: ApiError) -> WriteResult:
    message = error.message or error.reason
    if error.status == HTTPStatus.NOT_FOUND:
        return WriteResult(WriteState.FAILED, "no-node", message)
    if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return WriteResult(WriteState.FAILED, "forbidden", message)
    if error.status in (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS):
        return WriteResult(WriteState.LATER, "busy", message, error.retry_after)
    return WriteResult(WriteState.FAILED, "failed", str(error))
