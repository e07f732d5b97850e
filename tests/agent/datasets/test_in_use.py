"""Uses of a unit by real processes, including those that see it under another path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from monitor.agent.datasets.in_use import InUse
from monitor.agent.datasets.mounts import FsLocation
from monitor.agent.datasets.root_scan import locations_of
from monitor.facts.datasets import UseFact
from tests.agent.children import child
from tests.agent.datasets.root_fixture import RootFixture
from tests.support import need
from tests.support.filesystems import process_with_mounts

OWN_CWD = """
import threading
ready = threading.Event()
def wander():
    ctypes.CDLL(None).unshare(0x200)  # CLONE_FS: its own working directory
    os.chdir({unit!r})
    ready.set()
    threading.Event().wait()
threading.Thread(target=wander, daemon=True).start()
ready.wait()
"""
ONLY_MAPPED = """
import mmap
file = open({unit!r} + "/in/f")
held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
os.closerange(3, 100)
"""


def uses(fixture: RootFixture, path: str = "zhang/datasets/a", find_uses: InUse | None = None) -> set[UseFact]:
    """Uses of a unit, except by processes of this machine that cannot be read."""
    with fixture.roots.open(str(fixture.root)) as root:
        locations = locations_of(root, os.fsencode(path))
    found = (find_uses or InUse())(locations)
    return {use for location in locations for use in found.get(location, ()) if use.how != "unknown" or use.pid is None}


@pytest.mark.parametrize(
    ("prepare", "how"),
    [
        ("file = open({unit!r} + '/in/f')", "open"),
        ("file = os.open({unit!r} + '/in', os.O_RDONLY)", "open"),
        ("file = os.open({unit!r} + '/in/f', os.O_PATH)", "open"),
        ("file = open({unit!r} + '/in/f'); os.unlink({unit!r} + '/in/f')", "open"),
        ("os.chdir({unit!r})", "cwd"),
        ("os.chdir({unit!r} + '/in/deep')", "cwd"),
        (OWN_CWD, "cwd"),
        (ONLY_MAPPED, "map"),
    ],
)
def test_a_process_uses_a_unit(fixture: RootFixture, prepare: str, how: str) -> None:
    unit = fixture.make_unit()
    fixture.make_unit("ab")
    with child(prepare.format(unit=str(unit))) as pid:
        assert UseFact(how=how, pid=pid) in uses(fixture)
        assert uses(fixture, "zhang/datasets/ab") == set()
        assert UseFact(how=how, pid=pid) in uses(fixture, "zhang"), "the parent of the unit is in use as well"
    assert uses(fixture) == set()


def test_a_root_and_an_executable(fixture: RootFixture) -> None:
    need(os.geteuid() == 0, "root")
    unit = fixture.make_unit()
    with child(f"os.chroot({str(unit)!r})") as pid:
        assert UseFact(how="root", pid=pid) in uses(fixture)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", unit / "sleep")
    with subprocess.Popen([unit / "sleep", "60"]) as process:
        try:
            assert UseFact(how="exe", pid=process.pid) in uses(fixture)
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["new\nline", "b\\012d", "d (deleted)", "\udcff"])
def test_odd_names(fixture: RootFixture, name: str) -> None:
    unit = fixture.make_unit(name)
    path = f"zhang/datasets/{name}"
    program = f"import mmap; file = open({str(unit / 'f')!r}); held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)"
    with child(program) as pid:
        assert {UseFact(how="open", pid=pid), UseFact(how="map", pid=pid)} <= uses(fixture, path)
        assert uses(fixture) == set()


@pytest.mark.parametrize(
    ("how", "then"),
    [("cwd", "cd {elsewhere}/zhang/datasets/a"), ("open", "exec 9<{elsewhere}/zhang/datasets/a/in/f")],
)
def test_a_container_sees_it_elsewhere(fixture: RootFixture, tmp_path: Path, how: str, then: str) -> None:
    fixture.make_unit()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = f"mount --bind {fixture.root} {elsewhere}\nmount -t tmpfs none {fixture.root}\n" + then.format(
        elsewhere=elsewhere
    )
    with process_with_mounts(script) as pid:
        assert UseFact(how=how, pid=pid) in uses(fixture)
        assert uses(fixture, "zhang/datasets/b") == set()


def test_a_file_of_another_namespace_than_its_process(fixture: RootFixture, tmp_path: Path) -> None:
    """Opened before the process changes its namespace and root."""
    unit = fixture.make_unit()
    (tmp_path / "jail").mkdir()
    program = (
        f"file = open({str(unit / 'f')!r}); ctypes.CDLL(None).unshare(0x20000); os.chroot({str(tmp_path / 'jail')!r})"
    )
    need(os.geteuid() == 0, "root")
    with child(program) as pid:
        assert UseFact(how="open", pid=pid) in uses(fixture)


def test_a_volume_of_a_container_is_a_use(fixture: RootFixture, tmp_path: Path) -> None:
    unit = fixture.make_unit()
    point = tmp_path / "point"
    point.mkdir()
    with process_with_mounts(f"mount --bind {unit}/in {point}\nmount --make-private {point}") as pid:
        found = uses(fixture)
        assert {use.how for use in found} == {"mount"}
        assert {use.pid for use in found} <= {pid}


def test_a_mount_that_was_taken_away_lazily(fixture: RootFixture, tmp_path: Path) -> None:
    unit = fixture.make_unit()
    point = tmp_path / "point"
    point.mkdir()
    fixture.make_unit("b")
    script = f"mount --bind {unit.parent} {point}\nexec 9<{point}/a/in/f\numount --lazy {point}"
    with process_with_mounts(script) as pid:
        assert UseFact(how="open", pid=pid) in uses(fixture)
        assert uses(fixture, "zhang/datasets/b") == set(), "other units on that disk are not in use"


def test_a_mount_that_hides_an_open_file(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    with process_with_mounts(f"exec 9<{unit}/in/f\nmount -t tmpfs none {fixture.root}") as pid:
        assert UseFact(how="open", pid=pid) in uses(fixture)


def test_the_first_thread_has_ended(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    program = (
        f"import threading; file = open({str(unit / 'f')!r})\n"
        "def rest():\n    import time; time.sleep(0.1); os.write(1, b'x'); threading.Event().wait()\n"
        "threading.Thread(target=rest).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with child(program) as pid:
        assert UseFact(how="open", pid=pid) in uses(fixture)


def test_a_file_that_serves_as_a_disk(fixture: RootFixture) -> None:
    unit = fixture.make_unit()
    with loop_device(unit / "image"):
        assert UseFact(how="loop") in uses(fixture)
    assert uses(fixture) == set()


@contextmanager
def loop_device(image: Path) -> Iterator[None]:
    need(os.geteuid() == 0 and shutil.which("losetup") is not None, "root and losetup")
    image.write_bytes(bytes(1 << 20))
    shown = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    try:
        yield
    finally:
        subprocess.run(["losetup", "--detach", shown.stdout.strip()], check=True)


def fake_process(proc: Path, pid: int) -> Path:
    """Create a fake process: state, namespace, root, mounts and an empty file table."""
    base = proc / str(pid)
    for name in ("ns", "fd", "fdinfo", f"task/{pid}"):
        (base / name).mkdir(parents=True)
    (base / "ns/mnt").symlink_to("mnt:[1]")
    for directory in (base, base / f"task/{pid}"):
        (directory / "root").symlink_to("/")
        (directory / "cwd").symlink_to("/")
    (base / "stat").write_text(f"{pid} (x) S 1")
    (base / "maps").write_text("")
    (base / "mountinfo").write_bytes(Path("/proc/self/mountinfo").read_bytes())
    return base


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    proc_directory = tmp_path / "proc"
    proc_directory.mkdir()
    (proc_directory / "self").symlink_to("1")
    (tmp_path / "sys/block").mkdir(parents=True)
    return proc_directory


LOCATION = FsLocation(b"8:1", b"/zhang/datasets/a")


def test_a_process_that_cannot_be_read_uses_everything(proc: Path, tmp_path: Path) -> None:
    fake_process(proc, 7)
    find_uses = InUse(str(proc), str(tmp_path / "sys"))
    assert find_uses([LOCATION]) == {}
    with ExitStack() as stack:
        stack.callback((proc / "7/maps").unlink)
        (proc / "7/maps").unlink()
        (proc / "7/maps").symlink_to("maps")  # "too many levels": any error but "gone"
        assert find_uses([LOCATION]) == {LOCATION: (UseFact(how="unknown", pid=7),)}


def test_a_process_that_hangs_uses_everything(proc: Path, tmp_path: Path) -> None:
    base = fake_process(proc, 7)
    (base / "maps").unlink()
    os.mkfifo(base / "maps")  # reading waits for a writer
    assert InUse(str(proc), str(tmp_path / "sys"), limit=0.2)([LOCATION]) == {
        LOCATION: (UseFact(how="unknown", pid=7),)
    }
    with open(base / "maps", "wb"):
        pass  # releases the reader
    readers = [thread for thread in threading.enumerate() if thread.name == "guard-in-use"]
    for thread in readers:
        thread.join(60)


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="proc"):
        InUse(str(tmp_path / "proc"))([LOCATION])


def test_a_share_that_is_mounted_in_part(proc: Path, tmp_path: Path) -> None:
    """Mounts of one NFS export differ in their device numbers (recorded from Linux 5.15): the server's name decides."""
    base = fake_process(proc, 7)
    (base / "mountinfo").write_text(
        "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "41 30 0:61 / /data rw,relatime shared:3 - nfs4 nas:/export/zhang rw,vers=4.2\n"
    )
    (base / "maps").write_text("7f00-7f01 r--p 0 00:3d 99    /data/datasets/a/f\n")
    location = FsLocation(b"nas", b"/export/zhang/datasets/a")
    other = FsLocation(b"nas", b"/export/li/datasets/a")
    assert InUse(str(proc), str(tmp_path / "sys"))([location, other]) == {location: (UseFact(how="map", pid=7),)}


def test_processes_started_meanwhile_are_seen(fixture: RootFixture) -> None:
    """Each process passes an open file to its child and ends, repeatedly: the file is always open somewhere."""
    unit = fixture.make_unit()
    program = (
        "import os, sys, time\n"
        f"file = open({str(unit / 'f')!r})\n"
        "end = time.monotonic() + 60\n"
        "print(flush=True)\n"
        "while time.monotonic() < end and not os.path.exists(sys.argv[1]):\n"
        "    if os.fork(): os._exit(0)\n"
        "    time.sleep(0.002)\n"
    )
    stop_file = fixture.base / "stop"
    with subprocess.Popen([sys.executable, "-c", program, stop_file], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            missed = sum(not uses(fixture) for _ in range(20))
        finally:
            stop_file.touch()
            process.stdout.read()  # until the last process has ended
    assert missed == 0
