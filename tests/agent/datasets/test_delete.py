"""Deletion of real trees: whole, only them, however odd, and again after it was stopped."""

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
from tests.agent.datasets.ground import Ground, in_mount_namespace, make_deep, memory_ground
from tests.support import need


def delete(ground: Ground, name: str, stop: threading.Event | None = None, **more: Any) -> DeletionResult:
    with ground.roots.open(str(ground.root)) as root, DirectoryTree(root) as tree:
        return Deletion(tree, stop or threading.Event(), **more).run(tree.top, name)


def test_a_tree_goes_and_its_neighbours_stay(ground: Ground) -> None:
    ground.make_unit("a")
    ground.make_unit("a", "li")
    done = delete(ground, "zhang")
    assert (done.finished, done.errors.count, done.entries) == (True, 0, 8)
    assert os.listdir(ground.root) == ["li"]
    assert (ground.unit("a", "li") / "in/deep/f").exists()


def test_a_file_a_link_and_nothing(ground: Ground) -> None:
    (ground.root / "file").touch()
    (ground.root / "link").symlink_to(ground.canary)
    assert [delete(ground, name).entries for name in ("file", "link", "none")] == [1, 1, 0]
    assert os.listdir(ground.root) == []


def test_links_in_it_go_and_their_targets_stay(ground: Ground) -> None:
    unit = ground.make_unit()
    (unit / "dir").symlink_to(ground.canary)
    (unit / "up").symlink_to("../../..")
    os.link(ground.canary / "datasets/a/f", unit / "hard")
    assert delete(ground, "zhang").finished
    assert (ground.canary / "datasets/a/f").stat().st_nlink == 1


def test_names_of_all_kinds(ground: Ground) -> None:
    for name in (b"new\nline", b"bad\xff", b"-rf", b" ", b"..."):
        os.makedirs(os.fsencode(ground.root) + b"/unit/" + name + b"/inner")
    assert delete(ground, "unit").finished
    assert os.listdir(ground.root) == []


def test_more_files_than_are_read_at_once(ground: Ground) -> None:
    unit = ground.root / "unit"
    unit.mkdir()
    for number in range(3000):
        (unit / f"{number}").touch()
    seen: list[int] = []
    assert delete(ground, "unit", progress=seen.append).entries == 3001
    assert len(seen) >= 3000 // 256
    assert sorted(seen) == seen


def test_ten_thousand_levels() -> None:
    with memory_ground() as ground:
        levels, unit = 10_000, ground.make_unit()
        make_deep(unit, levels)
        before = len(os.listdir("/proc/self/fd"))
        assert ground.scanned().files == 3 + 2 * levels
        assert delete(ground, "zhang").finished
        assert os.listdir(ground.root) == []
        assert len(os.listdir("/proc/self/fd")) <= before


def test_stopped_and_called_again(ground: Ground) -> None:
    for number in range(20):
        ground.make_unit(str(number))
    stop = threading.Event()

    def progress(count: int) -> None:
        if count > 30:
            stop.set()

    done = delete(ground, "zhang", stop, progress=progress)
    assert (done.stopped, done.finished) == (True, False)
    assert (ground.root / "zhang").exists()
    rest = delete(ground, "zhang")
    assert (rest.finished, done.entries + rest.entries) == (True, 2 + 20 * 6)


def test_what_cannot_be_deleted_is_told_and_left(ground: Ground) -> None:
    unit = ground.make_unit()
    need(os.geteuid() == 0 and shutil.which("chattr") is not None, "root and chattr (Debian: e2fsprogs)")
    fixed = unit / "in/f"
    if subprocess.run(["chattr", "+i", fixed], check=False, capture_output=True).returncode:
        need(False, "a filesystem with chattr +i")
    try:
        done = delete(ground, "zhang")
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)
    assert (done.finished, done.errors.count) == (False, 1)
    assert done.errors.first == ["zhang/datasets/a/in/f: Operation not permitted"]
    assert sorted(path.name for path in unit.rglob("*")) == ["f", "in"]
    assert delete(ground, "zhang").finished


MOUNTED = """
import threading
from tests.agent.datasets.ground import Ground
from tests.agent.datasets.test_delete import delete
ground = Ground(arguments[0])
unit = ground.unit('a')
mount('--bind', ground.canary, unit / 'in/deep')
mount('-t', 'tmpfs', 'none', ground.unit('b') / 'in')
(ground.unit('b') / 'in/kept').touch()
mount('--bind', ground.canary / 'datasets/a/f', ground.unit('c') / 'f')
mount('--bind', ground.unit('d'), ground.unit('d'))
done = delete(ground, 'zhang')
left = [str(path.relative_to(ground.root)) for path in ground.root.rglob('*') if 'huge' not in path.name]
print(json.dumps([done.finished, sorted(done.errors.first), sorted(left)]))
"""


def test_mounts_in_it_stay(ground: Ground) -> None:
    for name in "abcd":
        ground.make_unit(name)
    finished, errors, left = in_mount_namespace(MOUNTED, ground.base)
    assert not finished
    assert errors == [
        "zhang/datasets/a/in/deep: another filesystem is mounted here",
        "zhang/datasets/b/in: another filesystem is mounted here",
        "zhang/datasets/c/f: Device or resource busy",
        "zhang/datasets/d: another filesystem is mounted here",
    ]
    assert {"zhang/datasets/b/in/kept", "zhang/datasets/d/in/deep/f", "zhang/datasets/c/f"} <= set(left)
    assert not {"zhang/datasets/a/f", "zhang/datasets/a/in/f", "zhang/datasets/c/in"} & set(left)
    assert delete(ground, "zhang").finished, "without the mounts it goes"


@pytest.mark.parametrize("moment", ["rmdir", "open"])
def test_a_directory_that_is_moved_away_meanwhile(ground: Ground, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Moved out of the root while it is being deleted, its new surroundings must not be mistaken for its old ones."""
    ground.make_unit()
    outside = ground.base / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    real = getattr(os, moment)
    moved: list[str] = []

    def move(name: Any, *rest: Any, **more: Any) -> Any:
        if name == "deep" and not moved:
            moved.append(name)
            os.rename(ground.unit() / "in", outside / "in")
        return real(name, *rest, **more)

    monkeypatch.setattr(os, moment, move)
    delete(ground, "zhang")
    assert moved
    assert (outside / "kept").exists()
    assert (outside / "in").exists()


def test_a_directory_that_is_swapped_for_a_link(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.make_unit()
    real = os.open

    def swap(name: Any, *rest: Any, **more: Any) -> int:
        inner = ground.unit() / "in"
        if name == "in" and not inner.is_symlink():
            os.rename(inner, ground.unit() / "real")
            inner.symlink_to(ground.canary / "datasets/a/in")
        return real(name, *rest, **more)

    monkeypatch.setattr(os, "open", swap)
    done = delete(ground, "zhang")
    assert not done.finished, "what was renamed is found by the next run"
    monkeypatch.undo()
    assert delete(ground, "zhang").finished


def test_an_evicted_directory_that_was_replaced_is_not_entered(ground: Ground) -> None:
    ground.make_unit()
    with ground.roots.open(str(ground.root)) as root, DirectoryTree(root, open_at_most=1) as tree:
        outer = tree.enter(tree.top, "zhang")[0]
        inner = tree.enter(outer, "datasets")[0]
        tree.enter(tree.top, "zhang")  # the last one allowed: the others are closed
        os.rename(ground.root / "zhang", ground.root / "real")
        ground.make_unit()
        with pytest.raises(OSError, match="replaced") as caught, tree.at(inner):
            pass
        assert caught.value.errno == errno.ESTALE


def test_a_path_is_shown_from_the_root(ground: Ground) -> None:
    ground.make_unit()
    with ground.roots.open(str(ground.root)) as root, DirectoryTree(root) as tree:
        inner = tree.enter(tree.enter(tree.top, "zhang")[0], "datasets")[0]
        assert (tree.top.path(), inner.path(), inner.below("a")) == ("", "zhang/datasets", "zhang/datasets/a")
        assert Path(inner.below("a")).name == "a"
