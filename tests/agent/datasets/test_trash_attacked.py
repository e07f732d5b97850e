"""The trash under interference: swapped, occupied or mounted paths, a full disk, no journal."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.trash import Trash
from tests.agent.datasets.root_fixture import NOW, RootFixture, in_mount_namespace, planned
from tests.agent.datasets.trash_steps import LATER, TRASH, outcomes, put, refused


@pytest.mark.parametrize("kept_name", ["", "in the way"])
def test_swapped_at_the_last_moment(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch, kept_name: str) -> None:
    unit = fixture.make_unit()
    plan = planned(fixture.scanned())
    real = os.rename

    def swap(name: Any, to: Any, **more: Any) -> None:
        if name == "a" and to == "unit":
            real(unit, unit.with_name("real"))
            unit.symlink_to(fixture.canary)
            real(name, to, **more)
            if kept_name:
                unit.mkdir()
                (unit / kept_name).touch()
            return
        real(name, to, **more)

    monkeypatch.setattr(os, "rename", swap)
    assert refused(lambda: put(fixture, plan)) == RefusalReason.CHANGED
    monkeypatch.undo()
    if kept_name:  # the wrong unit stays in the trash rather than overwrite anything
        assert os.listdir(unit) == [kept_name]
        with fixture.trash() as trash:
            assert [entry.state for entry in trash.entries()] == ["trashed"]
    else:
        assert unit.is_symlink()
    assert (unit.with_name("real") / "in/deep/f").exists()
    assert fixture.journal.open_intents() == ()


def test_nothing_is_overwritten(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    file_plan = planned(fixture.scan("*/datasets/*/f", "file").units[0])
    file_entry = put(fixture, file_plan)
    entry = put(fixture)
    fixture.make_unit()
    (unit / "f").write_text("mine")
    with fixture.trash() as trash:
        assert refused(lambda: trash.restore(entry.id)) == RefusalReason.EXISTS
        assert refused(lambda: trash.restore(file_entry.id)) == RefusalReason.EXISTS
        assert len(trash.entries()) == 2
    assert (unit / "f").read_text() == "mine"
    assert fixture.journal.open_intents() == ()


def test_the_directory_it_was_in_is_gone(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    entry = put(fixture)
    unit.parent.rmdir()
    with fixture.trash() as trash:
        with pytest.raises(DatasetRefusedError, match=r"zhang/datasets is gone: create it \(mkdir -p\)") as caught:
            trash.restore(entry.id)
        assert caught.value.reason == RefusalReason.PARENT_GONE
        unit.parent.mkdir()
        trash.restore(entry.id)
    assert (unit / "in/deep/f").exists()


def test_its_grace_is_not_over(fixture: RootFixture) -> None:
    fixture.make_unit()
    entry = put(fixture)
    with fixture.trash() as trash:
        assert refused(lambda: trash.purge(entry.id, NOW - 1)) == RefusalReason.TOO_YOUNG
        assert [entry.state for entry in trash.entries()] == ["trashed"]


@pytest.mark.parametrize("entry_id", ["", ".", "..", "../../canary", "0" * 32, "meta.json", "A" * 32])
def test_ids_that_are_none(fixture: RootFixture, entry_id: str) -> None:
    fixture.make_unit()
    put(fixture)
    with fixture.trash() as trash:
        assert refused(lambda: trash.restore(entry_id)) == RefusalReason.NOT_IN_TRASH
        assert refused(lambda: trash.purge(entry_id, LATER)) == RefusalReason.NOT_IN_TRASH


def loose(trash: Path, _: Path) -> None:
    trash.mkdir(mode=0o755)
    trash.chmod(0o755)


def a_link(trash: Path, canary: Path) -> None:
    trash.symlink_to(canary)


def a_file(trash: Path, _: Path) -> None:
    trash.touch()


def anothers(trash: Path, _: Path) -> None:
    trash.mkdir(mode=0o700)
    os.chown(trash, 12345, 12345)


@pytest.mark.parametrize("make", [loose, a_link, a_file, anothers])
def test_a_trash_that_is_not_ours_alone(fixture: RootFixture, make: Callable[[Path, Path], None]) -> None:
    unit = fixture.make_unit()
    make(fixture.root / TRASH, fixture.canary)
    assert refused(lambda: put(fixture)) == RefusalReason.UNSAFE_TRASH
    with fixture.trash() as trash:
        assert refused(trash.entries) == RefusalReason.UNSAFE_TRASH
    assert unit.exists()


def test_nobody_else_can_look_into_it(fixture: RootFixture) -> None:
    fixture.make_unit()
    entry = put(fixture)
    directory = fixture.root / TRASH / entry.id
    assert [stat.S_IMODE(path.stat().st_mode) for path in (directory.parent, directory, directory / "meta.json")] == [
        0o700,
        0o700,
        0o600,
    ]
    assert json.loads((directory / "meta.json").read_text())["path"] == "zhang/datasets/a"


def test_what_a_stopped_purge_left_cannot_be_restored(fixture: RootFixture) -> None:
    for number in range(400):
        (fixture.root / f"zhang/datasets/a/{number}").mkdir(parents=True)
    entry = put(fixture)
    stop = threading.Event()
    with fixture.trash(stop=stop) as trash:
        done = trash.purge(entry.id, LATER, lambda _: stop.set())
        assert (done.finished, done.stopped) == (False, True)
        assert refused(lambda: trash.restore(entry.id)) == RefusalReason.PURGING
    with fixture.trash() as trash:
        assert [entry.state for entry in trash.entries()] == ["purging"]
        assert trash.purge(entry.id, LATER).finished
    assert [outcome for outcome in outcomes(fixture) if "purge" not in outcome] == [
        "dataset.trash",
        "trashed",
        "stopped",
    ]


MOUNTED = """
from monitor.agent.datasets.errors import DatasetRefusedError
from tests.agent.datasets.root_fixture import RootFixture, planned, NOW
from tests.agent.datasets.trash_steps import put
fixture = RootFixture(arguments[0])
plan = planned(fixture.scanned())
mount('--bind', fixture.canary, fixture.unit() / 'in/deep')
results = []
try:
    put(fixture, plan)
except DatasetRefusedError as refusal:
    results.append(refusal.reason)
umount(fixture.unit() / 'in/deep')
entry = put(fixture, plan)
inside = fixture.root / '.gpuwarden-trash' / entry.id / 'unit' / 'in/deep'
mount('--bind', fixture.canary, inside)
with fixture.trash() as trash:
    done = trash.purge(entry.id, NOW)
    results += [done.finished, done.errors]
    umount(str(inside).replace('/unit/', '/purging/'))
    results.append(trash.purge(entry.id, NOW).finished)
print(json.dumps(results))
"""


def test_a_mount_in_a_unit(fixture: RootFixture) -> None:
    fixture.make_unit()
    reason, finished, errors, finally_finished = in_mount_namespace(MOUNTED, fixture.base)
    assert (reason, finished, finally_finished) == (RefusalReason.UNREADABLE, False, True)
    (error,) = errors
    assert error.endswith("purging/in/deep: another filesystem is mounted here")


def test_a_root_that_cannot_be_written_to(fixture: RootFixture) -> None:
    fixture.make_unit()
    plan = planned(fixture.scanned())
    with fixture.roots.open(str(fixture.root)) as root:
        trash = Trash(replace(root, read_only=True), fixture.journal, lambda _: {}, {})
        assert refused(lambda: trash.put(plan, "p", NOW)) == RefusalReason.READ_ONLY


def test_no_journal_no_move(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    (fixture.base / "journal").mkdir()
    assert refused(lambda: put(fixture)) == RefusalReason.FAILED
    assert unit.exists()


def test_a_full_disk_leaves_nothing_half_done(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = fixture.make_unit()
    plan = planned(fixture.scanned())

    def full(_: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(msgspec.json, "encode", full)
    with fixture.roots.open(str(fixture.root)) as root:
        trash = Trash(root, FakeJournal(), lambda _: {}, {})  # type: ignore[arg-type]  # a fake journal
        assert refused(lambda: trash.put(plan, "p", NOW)) == RefusalReason.FAILED
    assert unit.exists()
    assert os.listdir(fixture.root / TRASH) == []


class FakeJournal:
    def intend(self, *_: Any) -> str:
        return "1"

    def done(self, *_: Any) -> None:
        """Nothing is written."""
