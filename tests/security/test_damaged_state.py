"""State that is in use, damaged, newer, read-only or locked: the daemon starts, keeps what is readable and says so."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from monitor.access.audit import AuditLog
from monitor.access.principal import Principal, Role
from monitor.agent.actions.auth import UsedIds
from monitor.agent.collectors.images import ImageUse, ImageUseFile
from monitor.agent.journal import ActionJournal
from monitor.alert.matchers import Matcher
from monitor.alert.model import Alert, NotificationLogEntry, Phase
from monitor.alert.notify import NotifyDecision
from monitor.alert.silences import Silence
from monitor.alert.store import AlertStore
from monitor.base.state_problems import read_note
from monitor.cleanup.journal import CleanupJournal
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.history.store import HistoryStore
from monitor.report.store import UsageStore
from tests.security.state_daemon import daemon
from tests.support import wait_until
from tests.support.command import STOP_LIMIT, command, quiet_environment, run, running
from tests.support.databases import damage_page_of
from tests.support.filesystems import mounted
from tests.support.filesystems import run as run_command

HISTORY_ROWS = 400
DATABASES = ("alerts.db", "audit.db", "cleanup.db", "history.db", "record.db")


def finding(node: str) -> Finding:
    return Finding(
        rule="disk-full", severity=Severity.WARNING, cause="x", labels={"node": node}, headline=Text(key="x" * 100)
    )


def alert(node: str, phase: Phase) -> Alert:
    now = time.time()
    return Alert(
        fingerprint=f"disk-full|node={node}", finding=finding(node), phase=phase, first_seen_at=now, seen_at=now
    )


def fill_state(state: Path) -> None:
    """A state directory with a silence, a notification log, an audit entry and a long history of alerts."""
    state.mkdir(mode=0o700, exist_ok=True)
    now = time.time()
    entry = NotificationLogEntry(receiver="bot", group="g", at=now, firing={"disk-full|node=n0": Severity.WARNING})
    with closing(AlertStore(str(state / "alerts.db"))) as store:
        matchers = (Matcher(name="node", op="=", value="n1"),)
        store.add_silence(
            Silence(id="kept", matchers=matchers, starts_at=now, ends_at=now + 3600, author="li", comment="c")
        )
        changes = {f"disk-full|node=n{n}": alert(f"n{n}", Phase.FIRING) for n in range(HISTORY_ROWS)}
        store.record(changes, NotifyDecision(log_changes={("bot", "g"): entry}), now)
    with closing(AuditLog(str(state / "audit.db"))) as audit:
        audit.write(Principal("li", Role.ADMIN), "127.0.0.1", "release", "n1/gpu0", "done")
    CleanupJournal(str(state / "cleanup.db")).close()
    HistoryStore(str(state / "history.db")).close()
    UsageStore(str(state / "record.db")).close()


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def aside(state: Path, name: str) -> Path:
    (copy,) = (path for path in state.glob(f"{name}.damaged-*Z"))
    return copy


def test_a_second_daemon_on_the_same_directory_ends_with_code_2_and_kill_9_leaves_no_lock(tmp_path: Path) -> None:
    with daemon(tmp_path) as first:
        second = run("daemon", environ=quiet_environment(tmp_path))
        assert second.returncode == 2
        for word in (str(tmp_path), f"process {first.process.pid} on {socket.gethostname()}", "daemon.state"):
            assert word in second.stderr
        assert first.answers()
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(60)
    with daemon(tmp_path) as third:
        assert third.answers()


def test_one_bad_page_in_the_history_loses_neither_silences_nor_the_notification_log(tmp_path: Path) -> None:
    fill_state(tmp_path)
    damage_page_of(tmp_path / "alerts.db", "history", 50)
    damaged = (tmp_path / "alerts.db").read_bytes()
    (tmp_path / "twin.db").write_bytes(damaged)
    with closing(AlertStore(str(tmp_path / "twin.db"))) as store:
        assert list(store.load().notification_log) == [("bot", "g")]
    with daemon(tmp_path) as started:
        assert [silence["id"] for silence in started.json("/v1/silences")] == ["kept"]
        started.wait_alert("state-damaged", "alerts.db.damaged-")
        events = started.json(f"/v1/alerts/history?limit={HISTORY_ROWS}")
        assert HISTORY_ROWS * 0.9 < len(events) < HISTORY_ROWS + 5
    copy = aside(tmp_path, "alerts.db")
    assert copy.read_bytes() == damaged
    assert (read_note(str(copy)) or "").endswith("incomplete: history")


def test_files_that_are_damaged_beyond_recovery_do_not_keep_it_from_starting(tmp_path: Path) -> None:
    fill_state(tmp_path)
    garbage = b"\xa5" * 20_000
    names = (*DATABASES, "findings.json", "view.json")
    for name in names:
        (tmp_path / name).write_bytes(garbage)
    with daemon(tmp_path) as started:
        started.wait_alert("state-damaged", "alerts.db.damaged-", "view.json.damaged-")
        assert [aside(tmp_path, name).read_bytes() == garbage for name in names] == [True] * len(names)


def test_a_downgrade_is_refused_with_instructions_and_the_newer_state_is_left_as_it_is(tmp_path: Path) -> None:
    fill_state(tmp_path)
    with closing(sqlite3.connect(tmp_path / "alerts.db")) as newer:
        newer.executescript("ALTER TABLE silences ADD COLUMN colour TEXT; PRAGMA user_version = 99")
    (tmp_path / "findings.json").write_bytes(json.dumps({"version": 99, "memories": []}).encode())
    (tmp_path / "program.json").write_bytes(json.dumps({"version": 1, "program": "9.9.9"}).encode())
    names = ("alerts.db", "findings.json", "program.json")
    before = {name: (tmp_path / name).read_bytes() for name in names}
    with daemon(tmp_path) as started:
        refusal = started.wait_alert("state-newer", "written by version 9.9.9, its schema version is 99", *names[:2])
        assert "Install the newer version again" in " ".join(refusal["advice"])
        assert [silence["id"] for silence in started.json("/v1/silences")] == ["kept"]  # what is understood of it
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(STOP_LIMIT) == 0
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    assert list(tmp_path.glob("*.damaged-*")) == []


@contextmanager
def read_only_disk(point: Path) -> Iterator[Path]:
    with mounted(point, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        fill_state(point)
        run_command("mount", "-o", "remount,ro", point)
        yield point


@contextmanager
def file_in_the_way(point: Path) -> Iterator[Path]:
    point.touch()
    yield point / "state"


@pytest.mark.parametrize(("place", "silences"), [(read_only_disk, ["kept"]), (file_in_the_way, [])])
def test_a_directory_that_cannot_be_written_or_created(place: object, silences: list[str], tmp_path: Path) -> None:
    assert callable(place)
    with place(tmp_path / "disk") as state, daemon(state) as started:
        started.wait_alert("state", "daemon.lock", "alerts.db")
        assert [silence["id"] for silence in started.json("/v1/silences")] == silences


def test_databases_that_another_process_has_locked(tmp_path: Path) -> None:
    fill_state(tmp_path)
    with ExitStack() as locks:
        others = [locks.enter_context(closing(sqlite3.connect(tmp_path / name))) for name in DATABASES]
        for other in others:
            other.isolation_level = None
            other.execute("BEGIN EXCLUSIVE")
        with daemon(tmp_path) as started:
            started.wait_alert("state", "locked", "cleanup.db")
            assert [silence["id"] for silence in started.json("/v1/silences")] == ["kept"]
            for other in others:
                other.execute("ROLLBACK")
            wait_until(lambda: "alerts.db is writable again" in started.log, 30, "it has moved back")
    assert rows(tmp_path / "alerts.db", "SELECT id FROM silences") == [("kept",)]
    assert list(tmp_path.glob("*.unread-*")) == []


def modes(directory: Path) -> dict[str, int]:
    """Modes of all files, without those that are being replaced."""
    found = {}
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            found[path.name] = stat.S_IMODE(path.stat().st_mode)
    return found


def test_state_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    state = tmp_path / "state"
    line = ["sh", "-c", 'umask 0; exec "$@"', "sh", *command("up")]
    with running(line, quiet_environment(state), stdout=subprocess.DEVNULL):
        expected = {"daemon.lock", "findings.json", "view.json", *DATABASES}
        wait_until(lambda: state.exists() and expected <= set(modes(state)), 60, "all files are there")
        assert {name: mode for name, mode in modes(state).items() if mode != 0o600} == {}
        assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_state_files_of_an_agent_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        UsedIds(str(tmp_path / "actions.used"), 0.0).add("id", 1.0, 0.0)
        ActionJournal(str(tmp_path / "actions.journal")).intend("purge", {})
        ImageUseFile(str(tmp_path / "images.json")).save({"docker": {"sha256:1": ImageUse(1.0)}})
    finally:
        os.umask(old)
    assert modes(tmp_path) == dict.fromkeys(("actions.used", "actions.journal", "images.json"), 0o600)
