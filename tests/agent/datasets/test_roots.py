"""Opening of roots, on real directories and mounts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.mounts import MountEntry, mount_id, parse_mountinfo
from monitor.agent.datasets.roots import DatasetRoots
from monitor.agent.mountinfo import MountPoint
from tests.agent.datasets.root_fixture import RootFixture, in_mount_namespace


def refusal(roots: DatasetRoots, path: Path) -> RefusalReason:
    with pytest.raises(DatasetRefusedError) as caught, roots.open(str(path)):
        pass
    return caught.value.reason


def test_an_allow_listed_root_is_opened(fixture: RootFixture) -> None:
    with fixture.roots.open(str(fixture.root)) as root:
        assert root.device == fixture.root.stat().st_dev
        assert os.fstat(root.descriptor).st_ino == fixture.root.stat().st_ino
        assert root.mount == mount_id("/proc", root.descriptor)
        assert not root.read_only
        descriptor = root.descriptor
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def test_its_place_is_that_of_its_filesystem(fixture: RootFixture) -> None:
    with fixture.roots.open(str(fixture.root)) as root:
        device = fixture.root.stat().st_dev
        number = f"{os.major(device)}:{os.minor(device)}".encode()
        assert any(location.filesystem == number and location.path.endswith(b"/share") for location in root.locations)


def test_others_are_refused(fixture: RootFixture) -> None:
    assert refusal(fixture.roots, fixture.canary) == RefusalReason.NOT_A_ROOT
    assert refusal(fixture.roots, fixture.root / "zhang") == RefusalReason.NOT_A_ROOT
    assert refusal(fixture.roots, fixture.root / ".." / "canary") == RefusalReason.NOT_A_ROOT


def test_a_root_that_is_a_link_is_refused(fixture: RootFixture) -> None:
    link = fixture.base / "link"
    link.symlink_to(fixture.canary)
    assert refusal(DatasetRoots([str(link)]), link) == RefusalReason.SYMLINK


def test_a_root_below_a_link_is_refused(fixture: RootFixture) -> None:
    link = fixture.base / "link"
    link.symlink_to(fixture.canary)
    path = link / "datasets"
    assert refusal(DatasetRoots([str(path)]), path) == RefusalReason.SYMLINK


def test_a_root_that_is_missing_or_a_file(fixture: RootFixture) -> None:
    missing, file = fixture.base / "missing", fixture.base / "file"
    file.write_text("")
    assert refusal(DatasetRoots([str(missing)]), missing) == RefusalReason.GONE
    assert refusal(DatasetRoots([str(file)]), file) == RefusalReason.SYMLINK


@pytest.mark.parametrize("path", ["", "/", "share", "/mnt/../etc", "/mnt//share", "/mnt/share/", "/mnt/./x", "/a\0b"])
def test_paths_that_are_no_root(path: str) -> None:
    with pytest.raises(ValueError, match="absolute path below"):
        DatasetRoots([path])


def test_roots_do_not_lie_in_each_other() -> None:
    with pytest.raises(ValueError, match="inside another"):
        DatasetRoots(["/mnt/share/zhang", "/mnt/share"])
    DatasetRoots(["/mnt/share", "/mnt/share2"])


def test_the_node_seen_from_a_container(fixture: RootFixture) -> None:
    with DatasetRoots(["/share"], rootfs=str(fixture.base)).open("/share") as root:
        assert root.text == "/share"
        assert os.fstat(root.descriptor).st_ino == fixture.root.stat().st_ino


OPTIONS = """
from monitor.agent.datasets.roots import DatasetRoots
point, options = arguments[0], str(arguments[1])
mount('-t', 'tmpfs', '-o', options, 'none', point)
with DatasetRoots([str(point)]).open(str(point)) as root:
    print(json.dumps([root.atime_usable, root.read_only, [location.path.decode() for location in root.locations]]))
"""


@pytest.mark.parametrize(
    ("options", "atime_usable", "read_only"),
    [("relatime", True, False), ("strictatime", True, False), ("noatime", False, False), ("ro,relatime", False, True)],
)
def test_mount_options(fixture: RootFixture, options: str, atime_usable: bool, read_only: bool) -> None:
    assert in_mount_namespace(OPTIONS, fixture.root, options) == [atime_usable, read_only, ["/"]]


def test_a_server_decides_about_atime(fixture: RootFixture, tmp_path: Path) -> None:
    """A recorded line of an NFS mount (Linux 5.15), with the id of the actual mount of the root."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/fdinfo").symlink_to("/proc/self/fdinfo")
    with fixture.roots.open(str(fixture.root)) as root:
        mount = root.mount
    line = f"{mount} 1 0:52 / / rw,relatime shared:3 - nfs4 nas:/export/data rw,vers=4.2,addr=10.0.0.9\n"
    (proc / "self/mountinfo").write_text(line)
    with DatasetRoots([str(fixture.root)], proc=str(proc)).open(str(fixture.root)) as root:
        assert root.atime_usable is None
        assert (b"nas", f"/export/data{fixture.root}".encode()) in root.locations


def test_mountinfo_lines() -> None:
    raw = (
        b"36 35 98:0 /mnt1 /mnt2\\040x rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
        b"nonsense\n"
        b"\n"
        b"41 35 0:52 / /data ro,relatime - nfs4 nas:/export ro,vers=4.2\n"
    )
    assert list(parse_mountinfo(raw)) == [
        MountEntry(
            36,
            frozenset((b"rw", b"noatime", b"errors=continue")),
            MountPoint(b"98:0", b"/mnt1", b"/mnt2 x", b"ext3", b"/dev/root", False),
        ),
        MountEntry(
            41,
            frozenset((b"ro", b"relatime", b"vers=4.2")),
            MountPoint(b"0:52", b"/", b"/data", b"nfs4", b"nas:/export", True),
        ),
    ]
