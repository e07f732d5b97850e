"""The history of the rules on disk: damaged, newer and unwritable files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.base.private_files import aside_copies
from monitor.base.state_problems import StateProblemKind, read_note
from monitor.daemon.history_files import FINDINGS_FILE, MEMORY_FILE, HistoryFiles
from monitor.detect.history import DetectionHistory, SubjectState, UnitState
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from tests.support import need

FOUND = Finding(rule="a", severity=Severity.WARNING, cause="x", labels={"node": "n1"}, headline=Text(key="x"))


def remembering(memory: Any, *findings: Finding) -> DetectionHistory:
    state = UnitState(subjects={"": SubjectState(memory=memory)})
    return DetectionHistory(units={"a": {"": state}}, findings=findings)


DAMAGED: list[tuple[str, str, bytes]] = [
    ("empty", FINDINGS_FILE, b""),
    ("cut off", MEMORY_FILE, b'{"units": {"a": 1}, "find'),
    ("not ours", FINDINGS_FILE, b"[1, 2]"),
    ("not text", MEMORY_FILE, b"\xff\xfe"),
    ("of another version", FINDINGS_FILE, json.dumps({"findings": [{"rule": "a"}]}).encode()),
]


@pytest.mark.parametrize(("name", "file", "content"), DAMAGED, ids=[row[0] for row in DAMAGED])
def test_a_damaged_file_is_said_kept_aside_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, file: str, content: bytes
) -> None:
    (tmp_path / file).write_bytes(content)
    files = HistoryFiles(str(tmp_path))
    assert files.load() == DetectionHistory()
    assert "is lost" in caplog.text
    history = remembering({"n1": [1.5]}, FOUND)
    files.save(history)
    assert files.load() == history
    (aside,) = aside_copies(str(tmp_path))
    assert (tmp_path / aside).read_bytes() == content
    assert "is lost" in (read_note(str(tmp_path / aside)) or "")
    assert files.problem is None


def test_a_damaged_memory_does_not_lose_the_findings(tmp_path: Path) -> None:
    HistoryFiles(str(tmp_path)).save(remembering(1, FOUND))
    (tmp_path / MEMORY_FILE).write_bytes(b"{")
    assert HistoryFiles(str(tmp_path)).load() == DetectionHistory(findings=(FOUND,))


def test_findings_are_saved_without_the_memory(tmp_path: Path) -> None:
    files = HistoryFiles(str(tmp_path))
    files.save(remembering(1))
    files.save_findings(remembering(2, FOUND))
    assert files.load() == remembering(1, FOUND)


def test_a_file_of_a_newer_version_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    newer = json.dumps({"version": 3, "findings": []}).encode()
    (tmp_path / FINDINGS_FILE).write_bytes(newer)
    files = HistoryFiles(str(tmp_path))
    assert files.load() == DetectionHistory()
    files.save(remembering(1))
    assert (tmp_path / FINDINGS_FILE).read_bytes() == newer
    assert files.problem is not None
    assert (files.problem.kind, files.problem.why) == (
        StateProblemKind.NEWER, "its version is 3; this version knows versions up to 2",
    )  # fmt: skip
    (tmp_path / FINDINGS_FILE).unlink()  # as the alert says
    files.save(remembering(1))
    assert files.problem is None
    assert json.loads((tmp_path / FINDINGS_FILE).read_bytes())["version"] == 2


def test_fields_that_are_not_known_are_ignored(tmp_path: Path) -> None:
    """Such as the memory of rules that the previous version kept in the same file."""
    (tmp_path / FINDINGS_FILE).write_bytes(json.dumps({"findings": [], "memories": {"a": 1}}).encode())
    assert HistoryFiles(str(tmp_path)).load() == DetectionHistory()


def test_the_directory_is_made_for_us_alone(tmp_path: Path) -> None:
    HistoryFiles(str(tmp_path / "state")).save(DetectionHistory())
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "make", [lambda path: path.write_text(""), lambda path: (path / FINDINGS_FILE).mkdir(parents=True)]
)
def test_that_it_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "state")
    files = HistoryFiles(str(tmp_path / "state"))
    for _ in range(3):
        files.save_findings(DetectionHistory())
    assert caplog.text.count("will not survive a restart") == 1


def test_a_full_disk_keeps_what_was_saved_before(tmp_path: Path) -> None:
    need(os.path.exists("/dev/full"), "/dev/full")
    files = HistoryFiles(str(tmp_path))
    files.save(remembering(1))
    (tmp_path / f"{MEMORY_FILE}.new").symlink_to("/dev/full")
    files.save(remembering(2))
    assert files.load() == remembering(1)
