"""The trash when others are in the way: things swapped, put in its place, or mounted; a full disk, no journal."""

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
from tests.agent.datasets.ground import NOW, Ground, in_mount_namespace, planned
from tests.agent.datasets.moves import LATER, TRASH, outcomes, put, refused


@pytest.mark.parametrize("kept_name", ["", "in the way"])
def test_swapped_at_the_last_moment(ground: Ground, monkeypatch: pytest.MonkeyPatch, kept_name: str) -> None:
    unit = ground.make_unit()
    plan = planned(ground.scanned())
    real = os.rename

    def swap(name: Any, to: Any, **more: Any) -> None:
        if name == "a" and to == "unit":
            real(unit, unit.with_name("real"))
            unit.symlink_to(ground.canary)
            real(name, to, **more)
            if kept_name:
                unit.mkdir()
                (unit / kept_name).touch()
            return
        real(name, to, **more)

    monkeypatch.setattr(os, "rename", swap)
    assert refused(lambda: put(ground, plan)) == RefusalReason.CHANGED
    monkeypatch.undo()
    if kept_name:  # what was moved by mistake waits in the trash: nothing is overwritten for it
        assert os.listdir(unit) == [kept_name]
        with ground.trash() as trash:
            assert [entry.state for entry in trash.entries()] == ["trashed"]
    else:
        assert unit.is_symlink()
    assert (unit.with_name("real") / "in/deep/f").exists()
    assert ground.journal.open() == ()


def test_nothing_is_overwritten(ground: Ground) -> None:
    unit = ground.make_unit()
    file_plan = planned(ground.scan("*/datasets/*/f", "file").units[0])
    file_entry = put(ground, file_plan)
    entry = put(ground)
    ground.make_unit()
    (unit / "f").write_text("mine")
    with ground.trash() as trash:
        assert refused(lambda: trash.restore(entry.id)) == RefusalReason.EXISTS
        assert refused(lambda: trash.restore(file_entry.id)) == RefusalReason.EXISTS
        assert len(trash.entries()) == 2
    assert (unit / "f").read_text() == "mine"
    assert ground.journal.open() == ()


def test_the_directory_it_was_in_is_gone(ground: Ground) -> None:
    unit = ground.make_unit()
    entry = put(ground)
    unit.parent.rmdir()
    with ground.trash() as trash:
        with pytest.raises(DatasetRefusedError, match=r"zhang/datasets is gone: make it \(mkdir -p\)") as caught:
            trash.restore(entry.id)
        assert caught.value.reason == RefusalReason.PARENT_GONE
        unit.parent.mkdir()
        trash.restore(entry.id)
    assert (unit / "in/deep/f").exists()


def test_its_grace_is_not_over(ground: Ground) -> None:
    ground.make_unit()
    entry = put(ground)
    with ground.trash() as trash:
        assert refused(lambda: trash.purge(entry.id, NOW - 1)) == RefusalReason.TOO_YOUNG
        assert [each.state for each in trash.entries()] == ["trashed"]


@pytest.mark.parametrize("ident", ["", ".", "..", "../../canary", "0" * 32, "meta.json", "A" * 32])
def test_ids_that_are_none(ground: Ground, ident: str) -> None:
    ground.make_unit()
    put(ground)
    with ground.trash() as trash:
        assert refused(lambda: trash.restore(ident)) == RefusalReason.NOT_IN_TRASH
        assert refused(lambda: trash.purge(ident, LATER)) == RefusalReason.NOT_IN_TRASH


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
def test_a_trash_that_is_not_ours_alone(ground: Ground, make: Callable[[Path, Path], None]) -> None:
    unit = ground.make_unit()
    make(ground.root / TRASH, ground.canary)
    assert refused(lambda: put(ground)) == RefusalReason.UNSAFE_TRASH
    with ground.trash() as trash:
        assert refused(trash.entries) == RefusalReason.UNSAFE_TRASH
    assert unit.exists()


def test_nobody_else_can_look_into_it(ground: Ground) -> None:
    ground.make_unit()
    entry = put(ground)
    home = ground.root / TRASH / entry.id
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.parent, home, home / "meta.json")] == [
        0o700,
        0o700,
        0o600,
    ]
    assert json.loads((home / "meta.json").read_text())["path"] == "zhang/datasets/a"


def test_what_a_stopped_purge_left_cannot_be_restored(ground: Ground) -> None:
    for number in range(400):
        (ground.root / f"zhang/datasets/a/{number}").mkdir(parents=True)
    entry = put(ground)
    stop = threading.Event()
    with ground.trash(stop=stop) as trash:
        done = trash.purge(entry.id, LATER, lambda _: stop.set())
        assert (done.finished, done.stopped) == (False, True)
        assert refused(lambda: trash.restore(entry.id)) == RefusalReason.PURGING
    with ground.trash() as trash:
        assert [each.state for each in trash.entries()] == ["purging"]
        assert trash.purge(entry.id, LATER).finished
    assert [word for word in outcomes(ground) if "purge" not in word] == ["dataset.trash", "trashed", "stopped"]


MOUNTED = """
from monitor.agent.datasets.errors import RefusedError
from tests.agent.datasets.ground import Ground, planned, NOW
from tests.agent.datasets.moves import put
ground = Ground(arguments[0])
plan = planned(ground.scanned())
mount('--bind', ground.canary, ground.unit() / 'in/deep')
said = []
try:
    put(ground, plan)
except RefusedError as refusal:
    said.append(refusal.reason)
umount(ground.unit() / 'in/deep')
entry = put(ground, plan)
inside = ground.root / '.gpuwarden-trash' / entry.id / 'unit' / 'in/deep'
mount('--bind', ground.canary, inside)
with ground.trash() as trash:
    done = trash.purge(entry.id, NOW)
    said += [done.finished, done.errors]
    umount(str(inside).replace('/unit/', '/purging/'))
    said.append(trash.purge(entry.id, NOW).finished)
print(json.dumps(said))
"""


def test_a_mount_in_a_unit(ground: Ground) -> None:
    ground.make_unit()
    reason, finished, errors, finally_finished = in_mount_namespace(MOUNTED, ground.base)
    assert (reason, finished, finally_finished) == (RefusalReason.UNREADABLE, False, True)
    (error,) = errors
    assert error.endswith("purging/in/deep: another filesystem is mounted here")


def test_a_root_that_cannot_be_written_to(ground: Ground) -> None:
    ground.make_unit()
    plan = planned(ground.scanned())
    with ground.roots.open(str(ground.root)) as root:
        trash = Trash(replace(root, read_only=True), ground.journal, lambda _: {}, {})
        assert refused(lambda: trash.put(plan, "p", NOW)) == RefusalReason.READ_ONLY


def test_no_journal_no_move(ground: Ground) -> None:
    unit = ground.make_unit()
    (ground.base / "journal").mkdir()
    assert refused(lambda: put(ground)) == RefusalReason.FAILED
    assert unit.exists()


def test_a_full_disk_leaves_nothing_half_done(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = ground.make_unit()
    plan = planned(ground.scanned())

    def full(_: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(msgspec.json, "encode", full)
    with ground.roots.open(str(ground.root)) as root:
        trash = Trash(root, FakeJournal(), lambda _: {}, {})  # type: ignore[arg-type]  # a stand-in for the journal
        assert refused(lambda: trash.put(plan, "p", NOW)) == RefusalReason.FAILED
    assert unit.exists()
    assert os.listdir(ground.root / TRASH) == []


class FakeJournal:
    def intend(self, *_: Any) -> str:
        return "1"

    def done(self, *_: Any) -> None:
        """Nothing is written."""
