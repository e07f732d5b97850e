"""The journal of actions, on a real file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from monitor.agent.journal import ActionJournal
from tests.support.clock import FakeClock

LOOP = """
import sys
from monitor.agent.journal import ActionJournal
journal = ActionJournal(sys.argv[1])
while True:
    print(journal.intend("remove", {"n": 1}), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_an_intent_is_open_until_it_is_done(path: Path) -> None:
    clock = FakeClock()
    journal = ActionJournal(str(path), clock)
    first, second = journal.intend("image.remove", {"image": "a"}), journal.intend("image.remove", {"image": "b"})
    clock.advance(5)
    journal.done(first, "removed", {"freed_bytes": 12})
    (left,) = ActionJournal(str(path)).open_intents()
    assert (left.id, left.action, left.what) == (second, "image.remove", {"image": "b"})
    *_, last = journal.lines()
    assert (last.step, last.outcome, last.what, last.at) == ("done", "removed", {"freed_bytes": 12}, clock.time())


def test_nothing_was_ever_written(path: Path) -> None:
    assert ActionJournal(str(path)).open_intents() == ()
    assert list(ActionJournal(str(path)).lines()) == []


def test_only_the_owner_can_read_it(path: Path) -> None:
    ActionJournal(str(path)).intend("x", {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_written_through(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("")
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        ActionJournal(str(path)).intend("x", {})
    assert other.read_text() == ""


@pytest.mark.parametrize("torn", [b'{"at":1,"id":"zz","st', b"\0\0\0\0", b"\xff\xfe"])
def test_a_torn_line_is_left_out_and_the_next_is_whole(path: Path, torn: bytes) -> None:
    journal = ActionJournal(str(path))
    first = journal.intend("x", {})
    with path.open("ab") as file:
        file.write(torn)
    second = journal.intend("y", {})
    assert [line.id for line in journal.open_intents()] == [first, second]


def test_names_from_a_disk_are_kept(path: Path) -> None:
    journal = ActionJournal(str(path))
    journal.intend("x", {"path": "a\nb %FF 数据"})
    (line,) = journal.open_intents()
    assert line.what == {"path": "a\nb %FF 数据"}
    assert path.read_bytes().count(b"\n") == 1


def test_threads_do_not_tear_each_others_lines(path: Path) -> None:
    journal = ActionJournal(str(path))

    def work() -> None:
        for _ in range(20):
            journal.done(journal.intend("x", {"text": "y" * 500}), "done")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.open_intents() == ()
    assert len(list(journal.lines())) == 160


def test_what_intend_returned_is_there_after_kill_9(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LOOP, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        returned = [process.stdout.readline().strip() for _ in range(20)]
        process.kill()
        returned += [line.strip() for line in process.stdout if line.endswith("\n")]
    written = [line.id for line in ActionJournal(str(path)).open_intents()]
    assert written[: len(returned)] == returned


def test_each_line_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = ActionJournal(str(path))
    intent_id = journal.intend("x", {})
    assert len(synced) == 2  # the line, and the directory entry of the new file
    journal.done(intent_id, "done")
    assert len(synced) == 3
