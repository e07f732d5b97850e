"""A process that holds a lock on the daemon's database, for example an interactive sqlite3 session."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from monitor.alert.silences import Silence
from monitor.alert.store import AlertStore
from monitor.base import sqlite
from monitor.queries.alerts import SilenceRequest, make_silence
from tests.support.local_token import AS_LOCAL
from tests.web.cluster import Client, site
from tests.web.test_alerts_api import FakeAlerts

SILENCE = {"matchers": ["node=gpu01"], "duration": "1h"}


class StoredAlerts(FakeAlerts):
    """Alerts whose silences are in a real database."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = AlertStore(str(path))

    def silences(self) -> tuple[Silence, ...]:
        return self.store.silences(time.time())

    def silence(self, request: SilenceRequest) -> Silence:
        made = make_silence(request, "s1", time.time())
        self.store.add_silence(made)
        return made


def test_a_change_during_a_lock_is_answered_with_503_and_succeeds_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_SECONDS", 0.1)
    alerts = StoredAlerts(tmp_path / "alerts.db")
    with site({}, alerts=alerts) as url, closing(alerts.store):
        admin = Client(url, AS_LOCAL)
        with closing(sqlite3.connect(tmp_path / "alerts.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused = admin.post("/v1/silences", SILENCE)
            zh = admin.post("/v1/silences", SILENCE, Accept_Language="zh-CN")
            assert admin.get("/v1/silences").json == []
        assert (refused.status, zh.status) == (503, 503)
        assert int(refused.headers["retry-after"]) > 0
        assert "another process locks the daemon's database" in refused.json["error"]
        assert "锁定" in zh.json["error"]
        assert admin.post("/v1/silences", SILENCE).status == 201
        assert [silence["id"] for silence in admin.get("/v1/silences").json] == ["s1"]
