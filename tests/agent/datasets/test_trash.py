"""Into the trash, back out of it, and gone for good: on a real disk, with every reason to refuse."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.errors import RefusalReason
from monitor.agent.datasets.in_use import InUse
from monitor.agent.datasets.mounts import FsLocation
from monitor.facts.datasets import UseFact, path_text
from tests.agent.children import child
from tests.agent.datasets.ground import NOW, Ground, fingerprint, planned
from tests.agent.datasets.moves import LATER, TRASH, outcomes, put, refused


def test_there_and_back(ground: Ground) -> None:
    unit = ground.make_unit()
    before = fingerprint(unit)
    entry = put(ground)
    assert not unit.exists()
    assert (entry.path, entry.state, entry.policy, entry.trashed_at) == (
        "zhang/datasets/a",
        "trashed",
        "old-datasets",
        NOW,
    )
    assert (entry.files, entry.owner, entry.kind) == (3, "zhang", "dir")
    with ground.trash() as trash:
        assert trash.entries() == (entry,)
        assert trash.restore(entry.id) == entry
        assert trash.entries() == ()
    assert fingerprint(unit) == before
    assert outcomes(ground) == ["dataset.trash", "trashed", "dataset.restore", "restored"]
    assert ground.journal.open() == ()


def test_a_file_there_and_back(ground: Ground) -> None:
    file = ground.make_unit() / "f"
    unit = ground.scan("*/datasets/*/f", "file").units[0]
    entry = put(ground, planned(unit))
    assert (entry.kind, file.exists()) == ("file", False)
    with ground.trash() as trash:
        trash.restore(entry.id)
    assert file.read_text() == "some content\n"
    assert file.stat().st_nlink == 1


def test_gone_for_good(ground: Ground) -> None:
    ground.make_unit()
    ground.make_unit("b")
    entry = put(ground)
    with ground.trash() as trash:
        done = trash.purge(entry.id, LATER)
        assert (done.finished, done.deleted, done.failures) == (True, 6, 0)
        assert refused(lambda: trash.purge(entry.id, LATER)) == RefusalReason.NOT_IN_TRASH
    assert os.listdir(ground.root / TRASH) == []
    assert ground.unit("b").exists()
    assert outcomes(ground)[-2:] == ["dataset.purge", "purged"]


def test_odd_names_there_and_back(ground: Ground) -> None:
    names = [b"new\nline", b"bad\xff\xfe", b"100%", b"unit", b"meta.json", b"-rf"]
    for name in names:
        os.makedirs(os.fsencode(ground.root) + b"/zhang/datasets/" + name)
    entries = [put(ground, planned(unit)) for unit in ground.scan().units]
    assert {entry.path for entry in entries} == {path_text(b"zhang/datasets/" + name) for name in names}
    with ground.trash() as trash:
        assert set(trash.entries()) == set(entries)
        for entry in entries:
            trash.restore(entry.id)
    assert sorted(os.listdir(os.fsencode(ground.root) + b"/zhang/datasets")) == sorted(names)


def newer(unit: Path) -> None:
    (unit / "in/deep/f").write_text("more")


def read(unit: Path) -> None:
    os.utime(unit / "in/deep/f", (os.stat(unit / "f").st_atime + 1000, os.stat(unit / "f").st_mtime))


def pin(unit: Path) -> None:
    (unit / "in/.keep").touch()


def other(unit: Path) -> None:
    os.rename(unit, unit.with_name("kept"))
    unit.mkdir()


def link(unit: Path) -> None:
    os.rename(unit, unit.with_name("kept"))
    unit.symlink_to("kept")


def gone(unit: Path) -> None:
    os.rename(unit, unit.with_name("kept"))


def parent_link(unit: Path) -> None:
    os.rename(unit.parent, unit.parent.with_name("kept"))
    unit.parent.symlink_to("kept")


def parent_gone(unit: Path) -> None:
    os.rename(unit.parent, unit.parent.with_name("kept"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (newer, RefusalReason.CHANGED),
        (read, RefusalReason.CHANGED),
        (pin, RefusalReason.PINNED),
        (other, RefusalReason.CHANGED),
        (link, RefusalReason.CHANGED),
        (gone, RefusalReason.GONE),
        (parent_link, RefusalReason.SYMLINK),
        (parent_gone, RefusalReason.PARENT_GONE),
    ],
)
def test_not_what_the_plan_saw(ground: Ground, change: Callable[[Path], None], reason: RefusalReason) -> None:
    unit = ground.make_unit()
    plan = planned(ground.scanned())
    change(unit)
    before = fingerprint(ground.root)
    assert refused(lambda: put(ground, plan)) == reason
    assert fingerprint(ground.root) == before
    assert outcomes(ground) == []


@pytest.mark.parametrize(
    "path",
    ["", "/", "..", "../canary", "zhang/../../canary", "/etc", "zhang//a", "zhang/./a", "%2e%2e/canary", ".", "a%00b",
     ".gpuwarden-trash", ".gpuwarden-trash/x"],
)  # fmt: skip
def test_paths_that_are_no_unit(ground: Ground, path: str) -> None:
    plan = PlannedUnit(path, ground.canary.stat().st_dev, ground.canary.stat().st_ino, NOW)
    assert refused(lambda: put(ground, plan)) == RefusalReason.BAD_PATH


def test_a_real_process_in_it(ground: Ground) -> None:
    unit = ground.make_unit()
    plan = planned(ground.scanned())
    with child(f"os.chdir({str(unit)!r})"):
        assert refused(lambda: put(ground, plan, InUse())) == RefusalReason.IN_USE
    assert unit.exists()


def test_it_comes_into_use_while_it_is_moved(ground: Ground) -> None:
    unit = ground.make_unit()
    before = fingerprint(ground.root / "zhang")
    plan = planned(ground.scanned())

    def in_use(places: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        """Nobody before the move; then the process that opened it just before."""
        return {place: (UseFact(how="open", pid=7),) for place in places if b".gpuwarden-trash" in place.path}

    assert refused(lambda: put(ground, plan, in_use)) == RefusalReason.IN_USE
    assert unit.exists()
    after = fingerprint(ground.root / "zhang")
    assert {name: what[:3] for name, what in after.items()} == {name: what[:3] for name, what in before.items()}
    assert outcomes(ground) == ["dataset.trash", "put-back"]
    assert os.listdir(ground.root / TRASH) == []


def test_when_use_cannot_be_told_it_is_in_use(ground: Ground) -> None:
    ground.make_unit()

    def in_use(_: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        raise OSError("no /proc")

    assert refused(lambda: put(ground, None, in_use)) == RefusalReason.IN_USE
