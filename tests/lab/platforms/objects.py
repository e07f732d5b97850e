"""Objects of any kind in the lab's cluster, by their path."""

from __future__ import annotations

from typing import Any

from kubernetes.client.exceptions import ApiException

from tests.lab.cluster import Cluster

ANSWER_LIMIT_SECONDS = 30
_NOT_FOUND, _CONFLICT = 404, 409


class Objects:
    """Reads and writes objects; ApiException if that fails."""

    def __init__(self, cluster: Cluster) -> None:
        self._api: Any = cluster.api

    def read(self, path: str) -> dict[str, Any] | None:
        """The object, or list of objects, at this path; None if there is none."""
        try:
            found: dict[str, Any] = self._call("GET", path)
        except ApiException as error:
            if error.status != _NOT_FOUND:
                raise
            return None
        return found

    def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object unless it exists."""
        try:
            self._call("POST", path, body)
        except ApiException as error:
            if error.status != _CONFLICT:
                raise

    def delete(self, path: str) -> None:
        """Request the deletion of an object if it exists."""
        try:
            self._call("DELETE", path)
        except ApiException as error:
            if error.status != _NOT_FOUND:
                raise

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._api.call_api(
            path,
            method,
            header_params={"Content-Type": "application/json", "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
            response_type="object",
            _return_http_data_only=True,
            _request_timeout=ANSWER_LIMIT_SECONDS,
        )
