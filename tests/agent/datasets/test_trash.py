"""Trash, restore and purge on a real disk, with every reason for refusal."""

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
from tests.agent.datasets.root_fixture import NOW, RootFixture, fingerprint, planned
from tests.agent.datasets.trash_steps import LATER, TRASH, outcomes, put, refused


def test_there_and_back(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    before = fingerprint(unit)
    entry = put(fixture)
    assert not unit.exists()
    assert (entry.path, entry.state, entry.policy, entry.trashed_at) == (
        "zhang/datasets/a",
        "trashed",
        "old-datasets",
        NOW,
    )
    assert (entry.files, entry.owner, entry.kind) == (3, "zhang", "dir")
    with fixture.trash() as trash:
        assert trash.entries() == (entry,)
        assert trash.restore(entry.id) == entry
        assert trash.entries() == ()
    assert fingerprint(unit) == before
    assert outcomes(fixture) == ["dataset.trash", "trashed", "dataset.restore", "restored"]
    assert fixture.journal.open_intents() == ()


def test_a_file_there_and_back(fixture: RootFixture) -> None:
    file = fixture.make_unit() / "f"
    unit = fixture.scan("*/datasets/*/f", "file").units[0]
    entry = put(fixture, planned(unit))
    assert (entry.kind, file.exists()) == ("file", False)
    with fixture.trash() as trash:
        trash.restore(entry.id)
    assert file.read_text() == "some content\n"
    assert file.stat().st_nlink == 1


def test_gone_for_good(fixture: RootFixture) -> None:
    fixture.make_unit()
    fixture.make_unit("b")
    entry = put(fixture)
    with fixture.trash() as trash:
        done = trash.purge(entry.id, LATER)
        assert (done.finished, done.deleted, done.failures) == (True, 6, 0)
        assert refused(lambda: trash.purge(entry.id, LATER)) == RefusalReason.NOT_IN_TRASH
    assert os.listdir(fixture.root / TRASH) == []
    assert fixture.unit("b").exists()
    assert outcomes(fixture)[-2:] == ["dataset.purge", "purged"]


def test_odd_names_there_and_back(fixture: RootFixture) -> None:
    names = [b"new\nline", b"bad\xff\xfe", b"100%", b"unit", b"meta.json", b"-rf"]
    for name in names:
        os.makedirs(os.fsencode(fixture.root) + b"/zhang/datasets/" + name)
    entries = [put(fixture, planned(unit)) for unit in fixture.scan().units]
    assert {entry.path for entry in entries} == {path_text(b"zhang/datasets/" + name) for name in names}
    with fixture.trash() as trash:
        assert set(trash.entries()) == set(entries)
        for entry in entries:
            trash.restore(entry.id)
    assert sorted(os.listdir(os.fsencode(fixture.root) + b"/zhang/datasets")) == sorted(names)


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
def test_not_what_the_plan_saw(fixture: RootFixture, change: Callable[[Path], None], reason: RefusalReason) -> None:
    unit = fixture.make_unit()
    plan = planned(fixture.scanned())
    change(unit)
    before = fingerprint(fixture.root)
    assert refused(lambda: put(fixture, plan)) == reason
    assert fingerprint(fixture.root) == before
    assert outcomes(fixture) == []


@pytest.mark.parametrize(
    "path",
    ["", "/", "..", "../canary", "zhang/../../canary", "/etc", "zhang//a", "zhang/./a", "%2e%2e/canary", ".", "a%00b",
     ".gpuwarden-trash", ".gpuwarden-trash/x"],
)  # fmt: skip
def test_paths_that_are_no_unit(fixture: RootFixture, path: str) -> None:
    plan = PlannedUnit(path, fixture.canary.stat().st_dev, fixture.canary.stat().st_ino, NOW)
    assert refused(lambda: put(fixture, plan)) == RefusalReason.BAD_PATH


def test_a_real_process_in_it(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    plan = planned(fixture.scanned())
    with child(f"os.chdir({str(unit)!r})"):
        assert refused(lambda: put(fixture, plan, InUse())) == RefusalReason.IN_USE
    assert unit.exists()


def test_it_comes_into_use_while_it_is_moved(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    before = fingerprint(fixture.root / "zhang")
    plan = planned(fixture.scanned())

    def find_uses(locations: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        """No use before the move, then that of a process that opened it just before."""
        return {path: (UseFact(how="open", pid=7),) for path in locations if b".gpuwarden-trash" in path.path}

    assert refused(lambda: put(fixture, plan, find_uses)) == RefusalReason.IN_USE
    assert unit.exists()
    after = fingerprint(fixture.root / "zhang")
    assert {name: entry[:3] for name, entry in after.items()} == {name: entry[:3] for name, entry in before.items()}
    assert outcomes(fixture) == ["dataset.trash", "put-back"]
    assert os.listdir(fixture.root / TRASH) == []


def test_when_use_cannot_be_told_it_is_in_use(fixture: RootFixture) -> None:
    fixture.make_unit()

    def find_uses(_: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        raise OSError("no /proc")

    assert refused(lambda: put(fixture, None, find_uses)) == RefusalReason.IN_USE
