"""A page of a list with too many bytes is requested again with fewer objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.facts.kube import PodFact
from monitor.kube import reflector
from monitor.kube.client import ApiBodyTooLargeError, connect
from monitor.kube.reflector import Reflector
from monitor.kube.store import ObjectStore
from tests.kube.following import FAST, PODS
from tests.support import wait_until
from tests.support.living_api import LivingApi, kube_pod


def test_pages_become_smaller_until_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "MAX_BODY_BYTES", 20_000)
    api = LivingApi()
    for number in range(4):
        api.put("pods", kube_pod(f"p{number}", labels={"a": "x" * 15_000}))
    with api.served() as server:
        store = ObjectStore[PodFact]()
        followed = Reflector(connect(api.kubeconfig(tmp_path)), PODS, store, timing=FAST)
        followed.start()
        try:
            wait_until(lambda: len(store) == 4, 15, "all pods are listed")
        finally:
            followed.stop()
            followed.join(60)
    limits = [request.query.get("limit") for request in server.asked("list")]
    assert limits[0] == "2"
    assert "1" in limits


def test_an_endless_body_is_not_read_to_its_end(tmp_path: Path) -> None:
    api = LivingApi()
    api.put("pods", kube_pod("p", labels={"a": "x" * 100_000}))
    with api.served(), pytest.raises(ApiBodyTooLargeError):
        connect(api.kubeconfig(tmp_path)).get("/api/v1/pods", {}, "application/json", 5.0, max_bytes=1000)
