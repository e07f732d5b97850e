"""The commands of docs/install.md that back up and restore the state of a daemon, while it runs and is written to."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, run, running

MARK = "run by tests/deploy/test_backup.py"
BACK_UP, RESTORE = (block.text.strip() for block in blocks(ROOT / "docs" / "install.md") if block.mark == MARK)
STATE, ARCHIVE = "/var/lib/gpuwarden", "gpuwarden-state.tar"


def shell(line: str, state: Path, cwd: Path) -> None:
    """Run a documented command for another state directory."""
    line = line.replace("sudo ", "").replace(f"{STATE}", str(state)).replace("deploy/", f"{ROOT}/deploy/")
    done = subprocess.run(["bash", "-ec", line], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_a_restored_daemon_knows_what_it_knew(tmp_path: Path) -> None:
    before, after, port = tmp_path / "before", tmp_path / "after", free_port()
    environ = quiet_environment(before, DAEMON__LISTEN=f"127.0.0.1:{port}")
    with running(command("up"), environ, stdout=subprocess.DEVNULL):
        wait_until(lambda: answers(port), 30, "the page answers")
        silenced = run("alerts", "silence", "node=gpu-01", "--for", "1h", "--comment", "repair", environ=environ)
        assert silenced.returncode == 0, silenced.stderr
        shell(BACK_UP, before, tmp_path)
    with tarfile.open(tmp_path / ARCHIVE) as archive:
        names = set(archive.getnames())
    assert {"alerts.db", "audit.db", "cleanup.db", "history.db", "record.db", "findings.json"} <= names
    assert [name for name in names if name.endswith(("-wal", "-shm", ".lock", ".token"))] == []

    shell(RESTORE, after, tmp_path)
    for file in after.glob("*.db"):
        with closing(sqlite3.connect(file)) as opened:
            assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    environ |= {"GPUWARDEN_DAEMON__STATE": str(after), "GPUWARDEN_AGENT__PATHS__STATE": str(after)}
    with running(command("up"), environ, stdout=subprocess.DEVNULL):
        wait_until(lambda: answers(port), 30, "the page answers")
        silences = json.loads(get(f"http://127.0.0.1:{port}/v1/silences")[2])
    assert [silence["comment"] for silence in silences] == ["repair"]


def answers(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/healthz")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 2), (("/nonexistent",), 2), (("a", "b"), 2)], ids=["none", "missing", "several"]
)
def test_wrong_usage(arguments: tuple[str, ...], code: int) -> None:
    line = ["python3", str(ROOT / "deploy" / "backup.py"), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert "state directory" in done.stderr


def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "alerts.db").write_bytes(b"no database" * 1000)
    line = ["python3", str(ROOT / "deploy" / "backup.py"), str(tmp_path)]
    done = subprocess.run(line, capture_output=True, timeout=300, check=False)
    assert done.returncode == 1
    assert b"not a database" in done.stderr
