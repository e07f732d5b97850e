"""The few things that are ever changed in Kubernetes: pods are evicted or deleted, each only if it still is that pod.

The API server is told the pod's uid, so that a new pod of the same name is never hit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from monitor.kube.client import ApiConnectionError, ApiError, KubeApi
from monitor.kube.decode.values import Wire

WRITE_TIMEOUT_SECONDS = 30.0
JSON_TYPE = "application/json"
_BUDGET = "disruption budget"


class WriteState(StrEnum):
    """What became of a request to change something."""

    DONE = "done"
    REFUSED = "refused"  # it was not done, and trying the same again changes nothing
    LATER = "later"  # it was not done, and may be tried again
    FAILED = "failed"  # it was not done, or nobody knows


@dataclass(frozen=True)
class WriteResult:
    """What became of a request: `word` is what programs go by, `message` what the API server said."""

    state: WriteState
    word: str
    message: str | None = None
    retry_after: float | None = None


class _WireResource(Wire):
    name: str = ""
    group: str | None = None
    version: str | None = None


class _WireResources(Wire):
    resources: list[_WireResource] | None = None


class _WireVersion(Wire):
    version: str = ""


class _WireGroup(Wire):
    versions: list[_WireVersion] | None = None


class _WirePodMeta(Wire):
    uid: str | None = None
    deletion_timestamp: str | None = None


class _WirePod(Wire):
    metadata: _WirePodMeta | None = None


@dataclass(frozen=True)
class PodState:
    """A pod as the API server has it now: which one it is, and whether it is being deleted."""

    uid: str | None
    deleting: bool


class PodWrites:
    """Changes pods."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._eviction: str | None = None

    def look(self, namespace: str, name: str) -> PodState | None:
        """Return the pod of this name as it is now; None if there is none. Raise ApiError or LostError."""
        try:
            body = self._api.get(_pod(namespace, name), {}, JSON_TYPE, WRITE_TIMEOUT_SECONDS)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        metadata = msgspec.json.decode(body, type=_WirePod).metadata or _WirePodMeta()
        return PodState(metadata.uid, metadata.deletion_timestamp is not None)

    def evict(self, namespace: str, name: str, uid: str) -> WriteResult:
        """Ask for an eviction, which respects disruption budgets."""
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
        """Delete a pod. By force, it is forgotten whatever its node says: only for what is proven to be gone."""
        body: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if force:
            body["gracePeriodSeconds"] = 0
        return self._send("DELETE", _pod(namespace, name), body, "forced" if force else "deleted")

    def _send(self, method: str, path: str, body: object, word: str) -> WriteResult:
        try:
            self._api.send(method, path, msgspec.json.encode(body), WRITE_TIMEOUT_SECONDS)
        except ApiError as error:
            return _refusal(error)
        except ApiConnectionError as error:
            return WriteResult(WriteState.FAILED, "lost", str(error))
        return WriteResult(WriteState.DONE, word)

    def _eviction_version(self) -> str:
        """Return the version of Eviction that is served: 1.22 and later have v1, earlier ones v1beta1.

        That of the group as a whole does not tell: 1.21 has v1 of other things only.
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
        group = msgspec.json.decode(
            self._api.get("/apis/policy", {}, JSON_TYPE, WRITE_TIMEOUT_SECONDS), type=_WireGroup
        )
        return "policy/v1" if "v1" in {entry.version for entry in group.versions or ()} else "policy/v1beta1"


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _refusal(error: ApiError) -> WriteResult:
    """Given a refusal, return what it means for a pod."""
    message = error.message or error.reason
    if error.status == HTTPStatus.NOT_FOUND:
        return WriteResult(WriteState.DONE, "gone", message)
    if error.status == HTTPStatus.CONFLICT:
        return WriteResult(WriteState.REFUSED, "changed", message)
    if error.status == HTTPStatus.TOO_MANY_REQUESTS:
        word = "budget" if _BUDGET in (message or "").lower() else "busy"
        return WriteResult(WriteState.LATER, word, message, error.retry_after)
    if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return WriteResult(WriteState.FAILED, "forbidden", message)
    return WriteResult(WriteState.FAILED, "failed", str(error))
