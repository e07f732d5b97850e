"""Writes to pods: evict and delete.

Each write has the pod's uid as a precondition, so that a new pod of the same name is never hit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from monitor.facts.base import Identifier
from monitor.kube.client import ApiConnectionError, ApiError, KubeApi
from monitor.kube.decode.values import Wire
from monitor.kube.resources import WireGroup

WRITE_TIMEOUT_SECONDS = 30.0
JSON_TYPE = "application/json"
_BUDGET_MESSAGE = "disruption budget"


class WriteState(StrEnum):
    """Result of a write."""

    DONE = "done"
    REFUSED = "refused"  # not done; retrying is pointless
    LATER = "later"  # not done; may be retried
    FAILED = "failed"  # not done, or outcome unknown


@dataclass(frozen=True)
class WriteResult:
    """Result of a write: `word` is a code for programs, `message` the API server's text."""

    state: WriteState
    word: str
    message: str | None = None
    retry_after: float | None = None


class _WireResource(Wire):
    name: Identifier = ""
    group: Identifier | None = None
    version: Identifier | None = None


class _WireResources(Wire):
    resources: list[_WireResource] | None = None


class _WirePodMeta(Wire):
    uid: Identifier | None = None
    deletion_timestamp: Identifier | None = None


class _WirePod(Wire):
    metadata: _WirePodMeta | None = None


@dataclass(frozen=True)
class PodState:
    """Current state of a pod in the API server."""

    uid: str | None
    deleting: bool


class PodWrites:
    """Evicts and deletes pods."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._eviction: str | None = None

    def look(self, namespace: str, name: str) -> PodState | None:
        """Current state of the pod, or None if it does not exist. Raise ApiError or ApiConnectionError."""
        try:
            body = self._api.get(_pod(namespace, name), {}, JSON_TYPE, WRITE_TIMEOUT_SECONDS)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        metadata = msgspec.json.decode(body, type=_WirePod).metadata or _WirePodMeta()
        return PodState(metadata.uid, metadata.deletion_timestamp is not None)

    def evict(self, namespace: str, name: str, uid: str) -> WriteResult:
        """Evict the pod, which respects disruption budgets."""
        try:
            version = self._eviction_version()
        except (ApiError, ApiConnectionError, msgspec.MsgspecError) as error:
            return WriteResult(WriteState.FAILED, "failed", str(error))
        body = {
            "apiVersion": version,
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        return self._send("POST", f"{_pod(namespace, name)}/eviction", body, "evicted")

    def delete(self, namespace: str, name: str, uid: str, *, force: bool = False) -> WriteResult:
        """Delete the pod. `force` removes the object without waiting for its node: only if the pod is proven gone."""
        body: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if force:
            body["gracePeriodSeconds"] = 0
        return self._send("DELETE", _pod(namespace, name), body, "forced" if force else "deleted")

    def _send(self, method: str, path: str, body: object, word: str) -> WriteResult:
        try:
            self._api.send(method, path, msgspec.json.encode(body), WRITE_TIMEOUT_SECONDS)
        except ApiError as error:
            return _failure(error)
        except ApiConnectionError as error:
            return WriteResult(WriteState.FAILED, "lost", str(error))
        return WriteResult(WriteState.DONE, word)

    def _eviction_version(self) -> str:
        """Served version of Eviction: v1 since Kubernetes 1.22, v1beta1 before.

        The version of the policy group is not conclusive: 1.21 serves v1 of other kinds only.
        """
        if self._eviction is None:
            self._eviction = self._by_resource() or self._by_group()
        return self._eviction

    def _by_resource(self) -> str | None:
        try:
            listed = msgspec.json.decode(
                self._api.get("/api/v1", {}, JSON_TYPE, WRITE_TIMEOUT_SECONDS), type=_WireResources
            )
        except ApiError:
            return None
        for resource in listed.resources or ():
            if resource.name == "pods/eviction" and resource.group and resource.version:
                return f"{resource.group}/{resource.version}"
        return None

    def _by_group(self) -> str:
        group = msgspec.json.decode(self._api.get("/apis/policy", {}, JSON_TYPE, WRITE_TIMEOUT_SECONDS), type=WireGroup)
        return "policy/v1" if "v1" in {entry.version for entry in group.versions or ()} else "policy/v1beta1"


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _failure(error: ApiError) -> WriteResult:
    """Result of a failed write to a pod."""
    message = error.message or error.reason
    if error.status == HTTPStatus.NOT_FOUND:
        return WriteResult(WriteState.DONE, "gone", message)
    if error.status == HTTPStatus.CONFLICT:
        return WriteResult(WriteState.REFUSED, "changed", message)
    if error.status == HTTPStatus.TOO_MANY_REQUESTS:
        word = "budget" if _BUDGET_MESSAGE in (message or "").lower() else "busy"
        return WriteResult(WriteState.LATER, word, message, error.retry_after)
    if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return WriteResult(WriteState.FAILED, "forbidden", message)
    return WriteResult(WriteState.FAILED, "failed", str(error))
