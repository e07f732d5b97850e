"""An upgrade from the state directory of version 0.1: everything is kept, and no notification is repeated."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.collectors.images import decode_uses
from tests.security.hook import Hook
from tests.security.state_daemon import daemon
from tests.support import wait_until

FIXTURE = Path(__file__).parents[1] / "fixtures" / "state-0.1"
RECORDED_AT = 1_794_958_033  # Unix time
MOMENT = re.compile(r"\b179[45]\d{6}(?:\.\d+)?\b|\b1797\d{6}(?:\.\d+)?\b")


def present(value: Any, delta: int) -> Any:
    """A stored value with all times moved to the present."""
    if isinstance(value, (int, float)):
        return value + delta if MOMENT.fullmatch(repr(value)) else value
    if isinstance(value, bytes):
        return present(value.decode(), delta).encode()
    if isinstance(value, str):
        return MOMENT.sub(lambda moment: repr(float(moment[0]) + delta), value)
    return value


def restore(directory: Path) -> None:
    """Write the recorded state directory."""
    directory.mkdir(mode=0o700, exist_ok=True)
    delta = int(time.time()) - RECORDED_AT
    for dump in FIXTURE.glob("*.sql"):
        with closing(sqlite3.connect(directory / f"{dump.stem}.db")) as file:
            file.executescript(dump.read_text(encoding="utf-8"))
            tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            for (table,) in tables.fetchall():
                rows = file.execute(f"SELECT * FROM {table}").fetchall()  # a fixture
                file.execute(f"DELETE FROM {table}")
                for row in rows:
                    values = [present(value, delta) for value in row]
                    file.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)
            file.commit()
    for name in ("findings.json", "view.json"):
        (directory / name).write_text(present((FIXTURE / name).read_text(encoding="utf-8"), delta), encoding="utf-8")


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


@pytest.fixture
def hook() -> Any:
    with Hook() as receiver:
        yield receiver


def test_the_state_of_version_0_1_is_kept_and_nobody_is_notified_again(tmp_path: Path, hook: Hook) -> None:
    state, config = tmp_path / "state", tmp_path / "gpuwarden.yml"
    restore(state)
    services = {"registry": "tcp://127.0.0.1:9", "database": "tcp://127.0.0.1:10", "canary": "tcp://no.invalid:1"}
    alerts = {"receivers": [{"name": "hook", "kind": "webhook", "url": hook.url}]}
    content = {
        "daemon": {
            "agents": {"static": ["127.0.0.1:11"]},
            "services": [{"name": name, "url": url} for name, url in services.items()],
            "rules": {"service_down": {"after": "1s"}},
            "alerts": alerts,
        }
    }
    config.write_text(json.dumps(content), encoding="utf-8")
    with daemon(state, config) as running:
        wait_until(lambda: hook.groups("firing"), 30, "the canary is notified")
        shown = {alert["labels"].get("service"): alert for alert in running.alerts("service-down")}
        assert {name: alert["phase"] for name, alert in shown.items()} == dict.fromkeys(services, "firing")
        assert shown["database"]["silenced_by"] is not None
        assert shown["registry"]["since"] < time.time() - 60
        assert len(running.json("/v1/deliveries")) == 3
        fired = [event["labels"] for event in running.json("/v1/alerts/history?since=30d")]
        assert {"service": "registry"} in fired
        assert not [alert for alert in running.alerts("monitor-blind") if alert["cause"].startswith("state")]
    assert {tuple(labels.values()) for labels in hook.groups("firing")} == {("ServiceDown", "dns")}
    assert rows(state / "audit.db", "SELECT what, result FROM deeds WHERE result = 'done'") != []
    assert rows(state / "cleanup.db", "SELECT policy, owner FROM notices") == [("old-images", "li")]
    assert rows(state / "cleanup.db", "SELECT id FROM runs") == [("run-1",)]
    assert rows(state / "record.db", "SELECT count(*) FROM watched")[0][0] >= 1


def test_image_uses_of_version_0_1_are_kept() -> None:
    uses = decode_uses((FIXTURE / "images.json").read_bytes())
    assert uses["docker"]["sha256:1"].first_seen_at == pytest.approx(1794871668.48, abs=0.01)
