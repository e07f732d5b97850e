"""A Lease in the API server: read, created, replaced only if nobody else has written to it meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from monitor.kube.client import ApiConnectionError, ApiError, KubeApi
from monitor.leader.lease import Lease, WireLease, lease_of

JSON = "application/json"


class LeaseError(Exception):
    """What was asked for was not done, or nobody knows. The message says why, and what to change if that helps."""


class TakenError(LeaseError):
    """Somebody else has written to it meanwhile."""


class LeaseApi:
    """One Lease. `seconds` is how long the API server may take for an answer."""

    def __init__(self, api: KubeApi, namespace: str, name: str, seconds: float) -> None:
        self._api = api
        self.namespace = namespace
        self.name = name
        self._seconds = seconds
        self._all = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._own = f"{self._all}/{quote(name, safe='')}"

    def get(self) -> Lease | None:
        """Return the Lease as it is; None if there is none. Raise LeaseError."""
        try:
            return _read(self._api.get(self._own, {}, JSON, self._seconds))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise self._refusal("get", error) from error
        except ApiConnectionError as error:
            raise LeaseError(f"the API server cannot be reached: {error}") from error

    def create(self, body: Mapping[str, Any]) -> Lease:
        """Create it. Raise TakenError if there is one already, or LeaseError."""
        return self._write("create", "POST", self._all, body)

    def replace(self, body: Mapping[str, Any]) -> Lease:
        """Replace the version that is named in the body. Raise TakenError if there is a newer one, or LeaseError."""
        return self._write("update", "PUT", self._own, body)

    def _write(self, verb: str, method: str, path: str, body: Mapping[str, Any]) -> Lease:
        try:
            return _read(self._api.send(method, path, msgspec.json.encode(body), self._seconds))
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                raise TakenError(f"somebody else has written to it: {error.message}") from error
            raise self._refusal(verb, error) from error
        except ApiConnectionError as error:
            raise LeaseError(f"the API server cannot be reached: {error}") from error

    def _refusal(self, verb: str, error: ApiError) -> LeaseError:
        if error.status == HTTPStatus.FORBIDDEN:
            return LeaseError(
                f"this account may not {verb} leases in the namespace {self.namespace}: give it a Role there with "
                "apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]"
            )
        if error.status == HTTPStatus.NOT_FOUND:
            return LeaseError(f"there is no namespace {self.namespace}, or no coordination.k8s.io/v1: {error.message}")
        return LeaseError(str(error))


def _read(raw: bytes) -> Lease:
    try:
        return lease_of(msgspec.json.decode(raw, type=dict[str, Any]), msgspec.json.decode(raw, type=WireLease))
    except msgspec.MsgspecError as error:
        raise LeaseError(f"what the API server answers is no Lease: {error}") from None
