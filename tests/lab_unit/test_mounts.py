"""Mounts below a directory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lab.mounts import mounts_below, unmount_below
from tests.support import need

MOUNTINFO = """\
20 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 20 0:25 / /tmp/lab rw - tmpfs tmpfs rw
31 30 0:26 / /tmp/lab/docker/overlay2/a/merged rw - overlay overlay rw
32 20 0:27 / /tmp/laboratory rw - tmpfs tmpfs rw
33 30 0:28 / /tmp/lab/with\\040blank\\134and\\011tab rw shared:3 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("root", "expect"),
    [
        pytest.param(
            "/tmp/lab",
            ["/tmp/lab/with blank\\and\ttab", "/tmp/lab/docker/overlay2/a/merged", "/tmp/lab"],
            id="innermost first, a neighbour with a longer name left out",
        ),
        pytest.param("/tmp/lab/docker", ["/tmp/lab/docker/overlay2/a/merged"], id="in the middle"),
        pytest.param("/tmp/none", [], id="none"),
    ],
)
def test_mounts_below(root: str, expect: list[str]) -> None:
    assert mounts_below(Path(root), MOUNTINFO) == expect


def test_real_mounts_go_also_stacked_and_busy_ones(tmp_path: Path) -> None:
    need(os.geteuid() == 0, "root, to mount")
    outer, blank = tmp_path / "outer", tmp_path / "a blank"
    inner = outer / "inner"
    try:
        for point in (outer, outer, inner, blank):
            point.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "lab", str(point)], check=True, timeout=300)
        with (inner / "open file").open("w"):
            assert len(mounts_below(tmp_path)) == 4
            unmount_below(tmp_path)
    finally:
        unmount_below(tmp_path)
    assert mounts_below(tmp_path) == []
