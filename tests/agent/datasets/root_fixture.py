"""A dataset root for tests, and a canary outside of it that must never change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.mounts import FsLocation
from monitor.agent.datasets.root_scan import ScanOptions, scan_root
from monitor.agent.datasets.roots import DatasetRoots
from monitor.agent.datasets.trash import Trash
from monitor.agent.journal import ActionJournal
from monitor.facts.datasets import ScanFact, UnitFact, UnitKind, UseFact
from tests.support import need

NOW = 1_800_000_000.0
OWNERS = {os.getuid(): "zhang"}


def no_uses(_: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
    """Report that nothing is in use."""
    return {}


@dataclass(frozen=True)
class RootFixture:
    """The root `share` and, next to it, the canary."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "share"

    @property
    def canary(self) -> Path:
        return self.base / "canary"

    @property
    def journal(self) -> ActionJournal:
        return ActionJournal(str(self.base / "journal"))

    @property
    def roots(self) -> DatasetRoots:
        return DatasetRoots([str(self.root)])

    def unit(self, name: str = "a", user: str = "zhang") -> Path:
        return self.root / user / "datasets" / name

    def make_unit(self, name: str = "a", user: str = "zhang") -> Path:
        unit = self.unit(name, user)
        fill(unit)
        return unit

    def scan(
        self, pattern: str = "*/datasets/*", kind: UnitKind = "dir", options: ScanOptions | None = None
    ) -> ScanFact:
        with self.roots.open(str(self.root)) as root:
            return scan_root(root, pattern, kind, no_uses, options or ScanOptions(owners=OWNERS))

    def scanned(self, path: str = "zhang/datasets/a", kind: UnitKind = "dir") -> UnitFact:
        return next(unit for unit in self.scan(kind=kind).units if unit.path == path)

    @contextmanager
    def trash(self, find_uses: Any = no_uses, **more: Any) -> Iterator[Trash]:
        with self.roots.open(str(self.root)) as root:
            yield Trash(root, self.journal, find_uses, OWNERS, **more)


def planned(unit: UnitFact) -> PlannedUnit:
    newest = max(unit.newest_mtime, unit.newest_ctime, unit.newest_atime or 0.0)
    return PlannedUnit(unit.path, unit.device, unit.inode, newest)


def fill(directory: Path) -> None:
    """Create a small tree: f, in/f, in/deep/f."""
    for level in (directory, directory / "in", directory / "in" / "deep"):
        level.mkdir(parents=True)
        (level / "f").write_text("some content\n")


def make_deep(directory: Path, levels: int) -> None:
    """Create a chain of directories with two files per level, one of them in its own directory."""
    descriptor = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        for name in ("down", "aside"):
            os.mkdir(name, dir_fd=descriptor)
        for name in ("file", "aside/file"):
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
        child = os.open("down", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = child
    os.close(descriptor)


def make_fixture(base: Path) -> RootFixture:
    """Create a fixture whose canary looks like a unit at every level, so that a followed link would damage it."""
    fixture = RootFixture(base)
    fixture.root.mkdir()
    fill(fixture.canary / "datasets" / "a")
    for path in ("datasets/a", "datasets/a/in", "datasets/a/in/deep"):
        with (fixture.canary / path / "huge").open("wb") as file:
            file.truncate(1 << 40)
    return fixture


def fingerprint(directory: Path) -> dict[str, tuple[object, ...]]:
    """Mode, owner, inode, size, mtime and, unless huge, content of everything below a directory."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in sorted([directory, *directory.rglob("*")]):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() and stat.st_size < 1 << 20 else None
        entries[str(path.relative_to(directory))] = (
            stat.st_mode,
            stat.st_uid,
            stat.st_ino,
            stat.st_size if not path.is_dir() else None,
            stat.st_mtime_ns,
            content,
        )
    return entries


@contextmanager
def memory_fixture() -> Iterator[RootFixture]:
    """A fixture in memory, where fsync is free: for many repetitions."""
    need(os.path.isdir("/dev/shm"), "/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="gpuwarden-", dir="/dev/shm"))
    try:
        yield make_fixture(base)
    finally:
        subprocess.run(["rm", "-rf", base], check=True)  # too deep for shutil.rmtree


def in_mount_namespace(program: str, *arguments: object) -> Any:
    """Run a Python program in its own mount namespace and return the JSON that it prints.

    The program can call `mount(*words)` and `umount(point)`.
    """
    need(os.geteuid() == 0 and shutil.which("unshare") is not None, "root and unshare (Debian: util-linux)")
    prelude = (
        "import json, os, subprocess, sys\n"
        "from pathlib import Path\n"
        "def mount(*words): subprocess.run(['mount', *map(str, words)], check=True)\n"
        "def umount(point): subprocess.run(['umount', str(point)], check=True)\n"
        "arguments = [Path(argument) for argument in sys.argv[1:]]\n"
    )
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", prelude + program]
    finished = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)
