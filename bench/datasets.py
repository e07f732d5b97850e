"""Datasets of 1,000,000 files: duration of a scan compared with `find`, and of a purge with `rm -rf`.

A tree of 20 users with units of 2,500 files each, 250 per directory, on the disk of the temporary files. The scan is
the agent's own: units, sums, newest times, hard links, and which process uses what; `find` prints size, times, owner
and path of each file. Both run alternately on the same tree with a warm cache, and the best of each counts. For the
purge there are two equal trees: user by user, one is purged and the other removed by `rm -rf`, alternating in order,
after a sync each; the sums are compared. Memory is the maximum of the scanning process.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from bench.plot import Bar, Plot
from bench.report import Goal, Report
from monitor.agent.datasets.delete import Deletion
from monitor.agent.datasets.in_use import InUse
from monitor.agent.datasets.root_scan import ScanOptions, read_owners, scan_root
from monitor.agent.datasets.roots import DatasetRoots
from monitor.agent.datasets.tree import DirectoryTree

LARGE, SMALL = 1_000_000, 100_000
IN_DIRECTORY, DIRECTORIES, USERS = 250, 10, 20
PRINTED = "%s %A@ %T@ %C@ %U %p\\n"
SCANS = 4
NEEDED_BYTES = 4 << 30  # empty files, but each has an inode and a name
MIB = 1 << 20


def run() -> Report:
    """Measure both sizes and return the report."""
    with _directory() as base:
        # Create all trees before deleting: ext4 avoids recently deleted inodes and searches for others.
        for name, files in (("small", SMALL), ("one", LARGE), ("two", LARGE)):
            make_tree(base / name, files)
        small, large = _scans(base / "small", SMALL), _scans(base / "one", LARGE)
        purge, removal = _deletions(base / "one", base / "two")
    scan, find = large["scan"], large["find"]
    goals = [
        Goal("dataset_plan_ratio", scan / find, 2.0, f"a scan of {LARGE:,} files: duration / that of find"),
        Goal("dataset_plan_rss_mib", large["rss_mib"], 200, "maximum memory of the scanning process"),
        Goal("dataset_plan_growth_10x", scan / small["scan"], 12, "growth of that with ten times the files"),
        Goal(
            "dataset_delete_ratio",
            purge / removal,
            1.5,
            f"a purge of {LARGE:,} files: duration / that of rm -rf",
        ),
    ]
    rows = [
        (f"{files:,}", f"{found['scan']:.2f}", f"{found['find']:.2f}", f"{found['rss_mib']:.0f}")
        for files, found in ((SMALL, small), (LARGE, large))
    ]
    return Report(
        name="datasets",
        title="Datasets",
        how=" ".join((__doc__ or "").split("\n\n")[1].split()),
        goals=goals,
        tables=[
            ("Scan", ("files", "scan s", "find s", "memory MiB"), rows),
            ("Delete", ("files", "purge s", "rm -rf s"), [(f"{LARGE:,}", f"{purge:.1f}", f"{removal:.1f}")]),
        ],
        plot=Plot(
            "Datasets: scan and delete",
            "s",
            [
                *(
                    (f"scan, {files:,} files", (Bar("gpuwarden", each["scan"]), Bar("find", each["find"], ours=False)))
                    for files, each in ((SMALL, small), (LARGE, large))
                ),
                (f"delete, {LARGE:,} files", (Bar("gpuwarden", purge), Bar("rm -rf", removal, ours=False))),
            ],
        ),
    )


def make_tree(root: Path, files: int) -> None:
    """Create users with units of equal size up to this many files."""
    for unit in range(files // (IN_DIRECTORY * DIRECTORIES)):
        for number in range(DIRECTORIES):
            path = root / f"user{unit % USERS}" / "datasets" / f"set{unit}" / f"part{number}"
            path.mkdir(parents=True)
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            for file in range(IN_DIRECTORY):
                os.close(os.open(f"image{file:06}.jpg", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
            os.close(directory)


def scan_once(root: str) -> tuple[float, int]:
    """Scan a root as the agent does; seconds and number of files."""
    began = time.monotonic()
    with DatasetRoots([root]).open(root) as opened:
        fact = scan_root(opened, "*/datasets/*", "dir", InUse(), ScanOptions(owners=read_owners()))
    return time.monotonic() - began, sum(unit.files for unit in fact.units)


def _scans(root: Path, files: int) -> dict[str, float]:
    scans, finds = [], []
    for _ in range(SCANS):
        finds.append(_seconds(partial(_run, "find", str(root), "-printf", PRINTED)))
        scans.append(_in_process("scan", str(root)))
    if any(found["files"] != files for found in scans):
        raise RuntimeError("the scan did not see every file")
    return {
        "scan": min(found["seconds"] for found in scans),
        "find": min(finds),
        "rss_mib": max(found["rss_mib"] for found in scans),
    }


def _deletions(one: Path, two: Path) -> tuple[float, float]:
    """Purge one tree and remove the other; seconds of each."""
    purged = removed = 0.0
    for number, user in enumerate(sorted(os.listdir(one))):
        for purge in (number % 2 == 0, number % 2 == 1):
            os.sync()
            if purge:
                purged += _in_process("delete", str(one), user)["seconds"]
            else:
                removed += _seconds(partial(_run, "rm", "-rf", str(two / user)))
    if os.listdir(one) or os.listdir(two):
        raise RuntimeError("not everything was deleted")
    return purged, removed


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    base = Path(mkdtemp(prefix="gpuwarden-bench-")).resolve()
    try:
        disk = os.statvfs(base)
        if disk.f_bavail * disk.f_frsize < NEEDED_BYTES or disk.f_favail < 3 * LARGE:
            raise RuntimeError(f"{base} has too little room for {3 * LARGE:,} files")
        yield base
    finally:
        _run("rm", "-rf", str(base))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _seconds(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _in_process(*arguments: str) -> dict[str, float]:
    """Measure in a separate process."""
    command = [sys.executable, "-m", "bench.datasets", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=1200)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(what: str, root: str, name: str = "") -> None:
    files = 0
    if what == "scan":
        seconds, files = scan_once(root)
    else:
        with DatasetRoots([root]).open(root) as opened, DirectoryTree(opened) as tree:
            seconds = _seconds(lambda: _delete(tree, name))
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
    print(json.dumps({"seconds": seconds, "files": files, "rss_mib": rss}))


def _delete(tree: DirectoryTree, name: str) -> None:
    if not Deletion(tree, threading.Event()).run(tree.top, name).finished:
        raise RuntimeError(f"{name} was not deleted")


if __name__ == "__main__":
    main(*sys.argv[1:])
