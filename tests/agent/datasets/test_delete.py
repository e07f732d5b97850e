"""Deletion of real trees: complete, limited to the tree, for any names, and continued after a stop."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.datasets.delete import Deletion, DeletionResult
from monitor.agent.datasets.tree import DirectoryTree
from tests.agent.datasets.root_fixture import RootFixture, fingerprint, in_mount_namespace, make_deep, memory_fixture
from tests.support import need


def delete(fixture: RootFixture, name: str, stop: threading.Event | None = None, **more: Any) -> DeletionResult:
    with fixture.roots.open(str(fixture.root)) as root, DirectoryTree(root) as tree:
        return Deletion(tree, stop or threading.Event(), **more).run(tree.top, name)


def test_a_tree_goes_and_its_neighbours_stay(fixture: RootFixture) -> None:
    fixture.make_unit("a")
    fixture.make_unit("a", "li")
    done = delete(fixture, "zhang")
    assert (done.finished, done.errors.count, done.entries) == (True, 0, 8)
    assert os.listdir(fixture.root) == ["li"]
    assert (fixture.unit("a", "li") / "in/deep/f").exists()


def test_a_file_a_link_and_nothing(fixture: RootFixture) -> None:
    (fixture.root / "file").touch()
    (fixture.root / "link").symlink_to(fixture.canary)
    assert [delete(fixture, name).entries for name in ("file", "link", "none")] == [1, 1, 0]
    assert os.listdir(fixture.root) == []


def test_links_in_it_go_and_their_targets_stay(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    (unit / "dir").symlink_to(fixture.canary)
    (unit / "up").symlink_to("../../..")
    os.link(fixture.canary / "datasets/a/f", unit / "hard")
    assert delete(fixture, "zhang").finished
    assert (fixture.canary / "datasets/a/f").stat().st_nlink == 1


def test_names_of_all_kinds(fixture: RootFixture) -> None:
    for name in (b"new\nline", b"bad\xff", b"-rf", b" ", b"..."):
        os.makedirs(os.fsencode(fixture.root) + b"/unit/" + name + b"/inner")
    assert delete(fixture, "unit").finished
    assert os.listdir(fixture.root) == []


def test_more_files_than_are_read_at_once(fixture: RootFixture) -> None:
    unit = fixture.root / "unit"
    unit.mkdir()
    for number in range(3000):
        (unit / f"{number}").touch()
    seen: list[int] = []
    assert delete(fixture, "unit", progress=seen.append).entries == 3001
    assert len(seen) >= 3000 // 256
    assert sorted(seen) == seen


def test_ten_thousand_levels() -> None:
    with memory_fixture() as fixture:
        levels, unit = 10_000, fixture.make_unit()
        make_deep(unit, levels)
        before = len(os.listdir("/proc/self/fd"))
        assert fixture.scanned().files == 3 + 2 * levels
        assert delete(fixture, "zhang").finished
        assert os.listdir(fixture.root) == []
        assert len(os.listdir("/proc/self/fd")) <= before


def test_stopped_and_called_again(fixture: RootFixture) -> None:
    for number in range(20):
        fixture.make_unit(str(number))
    stop = threading.Event()

    def progress(count: int) -> None:
        if count > 30:
            stop.set()

    done = delete(fixture, "zhang", stop, progress=progress)
    assert (done.stopped, done.finished) == (True, False)
    assert (fixture.root / "zhang").exists()
    rest = delete(fixture, "zhang")
    assert (rest.finished, done.entries + rest.entries) == (True, 2 + 20 * 6)


def test_what_cannot_be_deleted_is_told_and_left(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    need(os.geteuid() == 0 and shutil.which("chattr") is not None, "root and chattr (Debian: e2fsprogs)")
    fixed = unit / "in/f"
    if subprocess.run(["chattr", "+i", fixed], check=False, capture_output=True).returncode:
        need(False, "a filesystem with chattr +i")
    try:
        done = delete(fixture, "zhang")
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)
    assert (done.finished, done.errors.count) == (False, 1)
    assert done.errors.first == ["zhang/datasets/a/in/f: Operation not permitted"]
    assert sorted(path.name for path in unit.rglob("*")) == ["f", "in"]
    assert delete(fixture, "zhang").finished


MOUNTED = """
import threading
from tests.agent.datasets.root_fixture import RootFixture
from tests.agent.datasets.test_delete import delete
fixture = RootFixture(arguments[0])
unit = fixture.unit('a')
mount('--bind', fixture.canary, unit / 'in/deep')
mount('-t', 'tmpfs', 'none', fixture.unit('b') / 'in')
(fixture.unit('b') / 'in/kept').touch()
mount('--bind', fixture.canary / 'datasets/a/f', fixture.unit('c') / 'f')
mount('--bind', fixture.unit('d'), fixture.unit('d'))
done = delete(fixture, 'zhang')
left = [str(path.relative_to(fixture.root)) for path in fixture.root.rglob('*') if 'huge' not in path.name]
print(json.dumps([done.finished, sorted(done.errors.first), sorted(left)]))
"""


def test_mounts_in_it_stay(fixture: RootFixture) -> None:
    for name in "abcd":
        fixture.make_unit(name)
    finished, errors, left = in_mount_namespace(MOUNTED, fixture.base)
    assert not finished
    assert errors == [
        "zhang/datasets/a/in/deep: another filesystem is mounted here",
        "zhang/datasets/b/in: another filesystem is mounted here",
        "zhang/datasets/c/f: Device or resource busy",
        "zhang/datasets/d: another filesystem is mounted here",
    ]
    assert {"zhang/datasets/b/in/kept", "zhang/datasets/d/in/deep/f", "zhang/datasets/c/f"} <= set(left)
    assert not {"zhang/datasets/a/f", "zhang/datasets/a/in/f", "zhang/datasets/c/in"} & set(left)
    assert delete(fixture, "zhang").finished, "deleted once the mounts are gone"


@pytest.mark.parametrize("moment", ["rmdir", "open"])
def test_a_directory_that_is_moved_away_meanwhile(
    fixture: RootFixture, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A directory moved out of the root during its deletion: its new siblings must not be deleted."""
    fixture.make_unit()
    outside = fixture.base / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    real = getattr(os, moment)
    moved: list[str] = []

    def move(name: Any, *rest: Any, **more: Any) -> Any:
        if name == "deep" and not moved:
            moved.append(name)
            os.rename(fixture.unit() / "in", outside / "in")
        return real(name, *rest, **more)

    monkeypatch.setattr(os, moment, move)
    delete(fixture, "zhang")
    assert moved
    assert (outside / "kept").exists()
    assert (outside / "in").exists()


def test_a_directory_that_is_swapped_for_a_link(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture.make_unit()
    before = fingerprint(fixture.canary)
    real = os.open

    def swap(name: Any, *rest: Any, **more: Any) -> int:
        inner = fixture.unit() / "in"
        if name == "in" and not inner.is_symlink():
            os.rename(inner, fixture.unit() / "real")
            inner.symlink_to(fixture.canary / "datasets/a/in")
        return real(name, *rest, **more)

    monkeypatch.setattr(os, "open", swap)
    done = delete(fixture, "zhang")
    assert fingerprint(fixture.canary) == before
    assert not done.finished, "the next run deletes the renamed directory"
    monkeypatch.undo()
    assert delete(fixture, "zhang").finished


def test_an_evicted_directory_that_was_replaced_is_not_entered(fixture: RootFixture) -> None:
    fixture.make_unit()
    with fixture.roots.open(str(fixture.root)) as root, DirectoryTree(root, max_open=1) as tree:
        outer = tree.enter(tree.top, "zhang")[0]
        inner = tree.enter(outer, "datasets")[0]
        tree.enter(tree.top, "zhang")  # evicts the others
        os.rename(fixture.root / "zhang", fixture.root / "real")
        fixture.make_unit()
        with pytest.raises(OSError, match="replaced") as caught, tree.at(inner):
            pass
        assert caught.value.errno == errno.ESTALE


def test_a_path_is_shown_from_the_root(fixture: RootFixture) -> None:
    fixture.make_unit()
    with fixture.roots.open(str(fixture.root)) as root, DirectoryTree(root) as tree:
        inner = tree.enter(tree.enter(tree.top, "zhang")[0], "datasets")[0]
        assert (tree.top.path(), inner.path(), inner.below("a")) == ("", "zhang/datasets", "zhang/datasets/a")
        assert Path(inner.below("a")).name == "a"
