"""Totals of a scan, on real trees."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.datasets import scan as scan_module
from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.root_scan import ScanOptions, read_owners, scan_root
from monitor.agent.datasets.roots import DatasetRoots
from monitor.agent.datasets.scan import ScanUnit, UnitScan
from monitor.agent.datasets.totals import UnitTotals
from monitor.agent.datasets.tree import DirectoryTree
from monitor.agent.datasets.units import find_units
from monitor.facts.datasets import UnitKind, UseFact, path_bytes
from tests.agent.datasets.root_fixture import OWNERS, RootFixture, in_mount_namespace, make_deep
from tests.support import wait_until
from tests.support.clock import FakeClock
from tests.support.filesystems import stalling_mount

OLD, NEW = 1_500_000_000, 1_700_000_000


def paths(fixture: RootFixture, pattern: str, kind: UnitKind = "dir") -> list[str]:
    return sorted(unit.path for unit in fixture.scan(pattern, kind).units)


def test_sums_and_newest_times(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    (unit / "in/big").write_bytes(b"x" * 100_000)
    os.utime(unit / "in/big", (NEW, OLD))
    for name in ("f", "in/f", "in/deep/f"):
        os.utime(unit / name, (OLD, OLD))
    every = [unit, *unit.rglob("*")]
    fact = fixture.scanned()
    assert (fact.files, fact.failures, fact.pinned, fact.kind) == (4, 0, False, "dir")
    assert fact.apparent_bytes == sum(path.lstat().st_size for path in every)
    assert fact.allocated_bytes == sum(path.lstat().st_blocks * 512 for path in every)
    assert fact.newest_atime == NEW
    assert fact.newest_mtime == max(path.lstat().st_mtime for path in every)
    assert fact.newest_ctime == max(path.lstat().st_ctime for path in every)
    assert (fact.device, fact.inode) == (unit.stat().st_dev, unit.stat().st_ino)
    assert (fact.owner_uid, fact.owner) == (os.getuid(), "zhang")


def test_the_scan_itself_is_no_use(fixture: RootFixture) -> None:
    fixture.make_unit()
    first, second = fixture.scanned(), fixture.scanned()
    assert (first.newest_atime, first.newest_ctime) == (second.newest_atime, second.newest_ctime)


@pytest.mark.parametrize(
    ("pattern", "kind", "expect"),
    [
        ("*/datasets/*", "dir", ["li/datasets/a", "zhang/datasets/a", "zhang/datasets/b"]),
        ("zhang/datasets/*", "dir", ["zhang/datasets/a", "zhang/datasets/b"]),
        ("*", "dir", ["li", "zhang"]),
        ("*/datasets/[!a]", "dir", ["zhang/datasets/b"]),
        ("*/datasets/.*", "dir", ["zhang/datasets/.hidden"]),
        ("*/datasets/*/*", "file", ["li/datasets/a/f", "zhang/datasets/a/f", "zhang/datasets/b/f"]),
        ("*/datasets/*", "file", []),
        (".*", "dir", []),
    ],
)
def test_patterns(fixture: RootFixture, pattern: str, kind: UnitKind, expect: list[str]) -> None:
    fixture.make_unit("a")
    fixture.make_unit("b")
    fixture.make_unit("a", "li")
    fixture.make_unit(".hidden")
    (fixture.unit("link")).symlink_to(fixture.canary)
    (fixture.root / "wang").symlink_to(fixture.canary)
    (fixture.root / ".gpuwarden-trash").mkdir()
    assert paths(fixture, pattern, kind) == expect


@pytest.mark.parametrize("pattern", ["", "/*", "*/", "../*", "*/../../canary/*", "a/./b", "**", "a/**/b"])
def test_patterns_that_are_none(fixture: RootFixture, pattern: str) -> None:
    with pytest.raises(ValueError, match="relative to the root"):
        fixture.scan(pattern)


def test_links_are_counted_and_not_followed(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    (unit / "dir").symlink_to(fixture.canary)
    (unit / "file").symlink_to(fixture.canary / "datasets/a/huge")
    (unit / "up").symlink_to("..")
    fact = fixture.scanned()
    assert fact.files == 6
    assert fact.apparent_bytes < 1 << 30


def test_hard_links_count_once(fixture: RootFixture) -> None:
    one, two = fixture.make_unit("a"), fixture.make_unit("b")
    (one / "big").write_bytes(b"x" * 1_000_000)
    os.link(one / "big", one / "in/again")
    os.link(one / "big", two / "third")
    units = fixture.scan().units
    assert sum(unit.files for unit in units) == 9
    assert 1_000_000 < sum(unit.allocated_bytes for unit in units) < 1_200_000


@pytest.mark.parametrize("where", [".keep", "in/deep/.keep"])
def test_a_keep_file_pins(fixture: RootFixture, where: str) -> None:
    (fixture.make_unit() / where).touch()
    assert fixture.scanned().pinned


def test_a_file_is_pinned_by_a_keep_beside_it(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    assert [fact.pinned for fact in fixture.scan("*/datasets/*/f", "file").units] == [False]
    (unit / ".keep").touch()
    assert [fact.pinned for fact in fixture.scan("*/datasets/*/f", "file").units] == [True]


def test_names_of_all_kinds(fixture: RootFixture) -> None:
    names = [b"new\nline", b"bad\xff\xfe", "数据".encode(), b"100%", b"%FF", b" ", b"\x1b[31m", b"-rf"]
    for name in names:
        directory = os.fsencode(fixture.unit("x").parent) + b"/" + name
        os.makedirs(directory)
        with open(directory + b"/" + name, "wb") as file:
            file.write(b"x")
    units = fixture.scan().units
    assert sorted(path_bytes(unit.path).rpartition(b"/")[2] for unit in units) == sorted(names)
    assert [unit.files for unit in units] == [1] * len(names)


MOUNTS = """
from tests.agent.datasets.root_fixture import RootFixture
fixture = RootFixture(arguments[0])
mount('--bind', fixture.canary, fixture.unit('a') / 'in')
mount('-t', 'tmpfs', 'none', fixture.unit('b') / 'in')
mount('--bind', fixture.unit('c') / 'in', fixture.unit('c') / 'in')
mount('--bind', fixture.canary, fixture.root / 'wang')
scan = fixture.scan()
print(json.dumps([[(u.path, u.failures, u.errors, u.apparent_bytes) for u in scan.units], scan.errors]))
"""


def test_mounts_are_not_crossed(fixture: RootFixture) -> None:
    for name in "abc":
        fixture.make_unit(name)
    (fixture.root / "wang").mkdir()
    units, errors = in_mount_namespace(MOUNTS, fixture.base)
    assert [(path, failures) for path, failures, *_ in units] == [(f"zhang/datasets/{name}", 1) for name in "abc"]
    for path, _, (error,), apparent in units:
        assert error == f"{path}/in: another filesystem is mounted here"
        assert apparent < 1 << 30
    assert errors == ["wang: another filesystem is mounted here"]


def test_many_threads_agree_with_one(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in range(5):
        unit = fixture.make_unit(str(name))
        make_deep(unit, 30)
        for number in range(600):
            (unit / f"in/{number}").touch()
    one = fixture.scan(options=ScanOptions(owners=OWNERS, threads=1)).units
    monkeypatch.setattr(scan_module, "_BUSY_RATIO", float("inf"))
    monkeypatch.setattr(scan_module, "_POLL_SECONDS", 0.001)
    seen: list[int] = []
    options = ScanOptions(owners=OWNERS, threads=6, progress=lambda _: seen.append(threading.active_count()))
    assert fixture.scan(options=options).units == one
    assert max(seen) > 3, "threads were added"


def test_the_budget_is_kept(fixture: RootFixture) -> None:
    class Impatient(threading.Event):
        """Adds up the waiting times instead of waiting."""

        waited = 0.0

        def wait(self, timeout: float | None = None) -> bool:
            clock.advance(timeout or 0.0)
            self.waited += timeout or 0.0
            return False

    clock, stop = FakeClock(), Impatient()
    limiter = ScanRateLimiter(100, stop, clock)
    for _ in range(50):
        assert limiter.acquire(10)
    assert stop.waited == pytest.approx(5, abs=0.2)
    clock.advance(60)
    stop.waited = 0.0
    for _ in range(50):
        limiter.acquire(10)
    assert stop.waited == pytest.approx(5, abs=0.2), "a pause is not followed by a burst"


def test_a_budget_slows_a_real_scan_and_stop_ends_it(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    for number in range(2000):
        (unit / f"in/{number}").touch()
    stop = threading.Event()
    entries: list[int] = []

    def progress(count: int) -> None:
        entries.append(count)
        if len(entries) == 3:
            stop.set()

    fact = fixture.scan(options=ScanOptions(owners=OWNERS, entries_per_second=50, stop=stop, progress=progress))
    assert fact.stopped
    assert fact.units == (), "incomplete units are omitted"
    assert fact.entries < 1000


def test_stopped_before_it_began(fixture: RootFixture) -> None:
    fixture.make_unit()
    stop = threading.Event()
    stop.set()
    fact = fixture.scan(options=ScanOptions(owners=OWNERS, stop=stop))
    assert (fact.stopped, fact.units) == (True, ())


def test_a_dead_server_does_not_keep_a_stopped_scan(tmp_path: Path) -> None:
    stop = threading.Event()
    with stalling_mount(tmp_path) as nas:
        point = str(nas.point)
        with DatasetRoots([point]).open(point) as root, DirectoryTree(root) as tree:
            unit = ScanUnit(tree.top, "data", is_dir=False)
            nas.hang()
            threading.Timer(0.3, stop.set).start()
            began = time.monotonic()
            UnitScan(tree, ScanRateLimiter(None, stop), stop).run([unit])
            assert time.monotonic() - began < 30
            assert unit.unread, "it was not read"
            assert scanning(), "its thread was abandoned"
        nas.release()
        wait_until(lambda: not scanning(), 60, "the abandoned thread has ended")


def scanning() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "dataset-scan"]


def test_units_over_the_cap_are_counted(fixture: RootFixture) -> None:
    for name in "abcde":
        fixture.make_unit(name)
    with fixture.roots.open(str(fixture.root)) as root, DirectoryTree(root) as tree:
        listing = find_units(tree, "*/datasets/*", "dir", ScanRateLimiter(None, threading.Event()), max_units=3)
    assert ([unit.name for unit in listing.units], listing.left_out) == (["a", "b", "c"], 2)


def test_users_are_told_by_unit(fixture: RootFixture) -> None:
    fixture.make_unit("a")
    fixture.make_unit("b")
    use = UseFact(how="cwd", pid=7)
    with fixture.roots.open(str(fixture.root)) as root:
        fact = scan_root(
            root,
            "*/datasets/*",
            "dir",
            lambda locations: {location: (use,) for location in locations if location.path.endswith(b"/b")},
            ScanOptions(owners={}),
        )
    assert [(unit.path, unit.in_use_by) for unit in fact.units] == [
        ("zhang/datasets/a", ()),
        ("zhang/datasets/b", (use,)),
    ]


def test_no_descriptor_is_left_open(fixture: RootFixture) -> None:
    fixture.make_unit()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        fixture.scan()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_read_is_told(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture.make_unit()
    real = os.open

    def broken(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == "deep":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", broken)
    fact = fixture.scanned()
    assert (fact.failures, fact.errors) == (1, ("zhang/datasets/a/in/deep: Permission denied",))


def test_a_bug_in_a_thread_ends_the_scan(fixture: RootFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture.make_unit()
    monkeypatch.setattr(UnitTotals, "add", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fixture.scan()


def test_names_of_owners(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nli:x:1001:1001::/home/li:/bin/sh\n+\nbad:x\n")
    assert read_owners(str(tmp_path)) == {0: "root", 1001: "li"}
    assert read_owners(str(tmp_path / "none")) == {}
