"""Objects of any kind through the lab's API server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
import yaml

MERGE_PATCH = "application/merge-patch+json"
NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}  # nodes of tests may have no kubelet


class Api:
    """The API server as an administrator: paths and JSON. Single-threaded."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = cluster["certificate-authority"]
        self._session.headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> requests.Response:
        """Send one request; RequestException without a response."""
        headers = {"Content-Type": kind}
        return self._session.request(method, self._url + path, json=body, headers=headers, timeout=60)

    def get(self, path: str) -> Any:
        return _checked(self.send("GET", path)).json()

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return _checked(self.send("POST", path, body)).json()

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        _checked(self.send("PATCH", path, body, MERGE_PATCH))

    def delete(self, path: str) -> None:
        """Delete an object immediately if it exists."""
        answer = self.send("DELETE", path, NOW)
        if answer.status_code != requests.codes.not_found:
            _checked(answer)

    def close(self) -> None:
        self._session.close()


def _checked(answer: requests.Response) -> requests.Response:
    assert answer.ok, f"{answer.request.method} {answer.request.path_url}: {answer.text}"
    return answer
