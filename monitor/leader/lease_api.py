"""Reads and writes one Lease in the API server; writes fail if another client has written in between."""

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
    """A request failed, or its outcome is unknown. The message says why, and what to change if that helps."""


class LeaseConflictError(LeaseError):
    """Another client has written to the Lease in between."""


class LeaseApi:
    """One Lease. `timeout` bounds each request, in seconds."""

    def __init__(self, api: KubeApi, namespace: str, name: str, timeout: float) -> None:
        self._api = api
        self.namespace = namespace
        self.name = name
        self._timeout = timeout
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._collection}/{quote(name, safe='')}"

    def get(self) -> Lease | None:
        """Read the Lease; None if it does not exist. Raise LeaseError."""
        try:
            return _decode(self._api.get(self._path, {}, JSON, self._timeout))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise self._refusal("get", error) from error
        except ApiConnectionError as error:
            raise LeaseError(f"the API server cannot be reached: {error}") from error

    def create(self, body: Mapping[str, Any]) -> Lease:
        """Create the Lease. Raise LeaseConflictError if it exists, or LeaseError."""
        return self._write("create", "POST", self._collection, body)

    def replace(self, body: Mapping[str, Any]) -> Lease:
        """Replace the version that the body names. Raise LeaseConflictError if there is a newer one, or LeaseError."""
        return self._write("update", "PUT", self._path, body)

    def _write(self, verb: str, method: str, path: str, body: Mapping[str, Any]) -> Lease:
        try:
            return _decode(self._api.send(method, path, msgspec.json.encode(body), self._timeout))
        except ApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                raise LeaseConflictError(f"another client has written to the Lease: {error.message}") from error
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


def _decode(raw: bytes) -> Lease:
    try:
        return lease_of(msgspec.json.decode(raw, type=dict[str, Any]), msgspec.json.decode(raw, type=WireLease))
    except msgspec.MsgspecError as error:
        raise LeaseError(f"the API server did not answer with a Lease: {error}") from None
