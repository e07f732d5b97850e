"""Who uses a unit, told from real processes, also such that see it under another path."""

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
from tests.agent.datasets.ground import Ground
from tests.support import need
from tests.support.filesystems import process_with_mounts

OWN_CWD = """
import threading
ready = threading.Event()
def wander():
    ctypes.CDLL(None).unshare(0x200)  # CLONE_FS: a working directory of its own
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


def uses(ground: Ground, path: str = "zhang/datasets/a", in_use: InUse | None = None) -> set[UseFact]:
    """Return who uses a unit, but for processes of this machine that may not be looked at."""
    with ground.roots.open(str(ground.root)) as root:
        places = locations_of(root, os.fsencode(path))
    found = (in_use or InUse())(places)
    return {use for place in places for use in found.get(place, ()) if use.how != "unknown" or use.pid is None}


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
def test_a_process_uses_a_unit(ground: Ground, prepare: str, how: str) -> None:
    unit = ground.make_unit()
    ground.make_unit("ab")
    with child(prepare.format(unit=str(unit))) as pid:
        assert UseFact(how=how, pid=pid) in uses(ground)
        assert uses(ground, "zhang/datasets/ab") == set()
        assert UseFact(how=how, pid=pid) in uses(ground, "zhang"), "what holds the unit is used as well"
    assert uses(ground) == set()


def test_a_root_and_an_executable(ground: Ground) -> None:
    need(os.geteuid() == 0, "root")
    unit = ground.make_unit()
    with child(f"os.chroot({str(unit)!r})") as pid:
        assert UseFact(how="root", pid=pid) in uses(ground)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", unit / "sleep")
    with subprocess.Popen([unit / "sleep", "60"]) as process:
        try:
            assert UseFact(how="exe", pid=process.pid) in uses(ground)
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["new\nline", "b\\012d", "d (deleted)", "\udcff"])
def test_odd_names(ground: Ground, name: str) -> None:
    unit = ground.make_unit(name)
    path = f"zhang/datasets/{name}"
    program = f"import mmap; file = open({str(unit / 'f')!r}); held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)"
    with child(program) as pid:
        assert {UseFact(how="open", pid=pid), UseFact(how="map", pid=pid)} <= uses(ground, path)
        assert uses(ground) == set()


@pytest.mark.parametrize(
    ("how", "then"),
    [("cwd", "cd {elsewhere}/zhang/datasets/a"), ("open", "exec 9<{elsewhere}/zhang/datasets/a/in/f")],
)
def test_a_container_sees_it_elsewhere(ground: Ground, tmp_path: Path, how: str, then: str) -> None:
    ground.make_unit()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = f"mount --bind {ground.root} {elsewhere}\nmount -t tmpfs none {ground.root}\n" + then.format(
        elsewhere=elsewhere
    )
    with process_with_mounts(script) as pid:
        assert UseFact(how=how, pid=pid) in uses(ground)
        assert uses(ground, "zhang/datasets/b") == set()


def test_a_file_of_another_namespace_than_its_process(ground: Ground, tmp_path: Path) -> None:
    """Opened outside, kept through the change of namespace and of root."""
    unit = ground.make_unit()
    (tmp_path / "jail").mkdir()
    program = (
        f"file = open({str(unit / 'f')!r}); ctypes.CDLL(None).unshare(0x20000); os.chroot({str(tmp_path / 'jail')!r})"
    )
    need(os.geteuid() == 0, "root")
    with child(program) as pid:
        assert UseFact(how="open", pid=pid) in uses(ground)


def test_a_volume_of_a_container_is_a_use(ground: Ground, tmp_path: Path) -> None:
    unit = ground.make_unit()
    point = tmp_path / "point"
    point.mkdir()
    with process_with_mounts(f"mount --bind {unit}/in {point}\nmount --make-private {point}") as pid:
        found = uses(ground)
        assert {use.how for use in found} == {"mount"}
        assert {use.pid for use in found} <= {pid}


def test_a_mount_that_was_taken_away_lazily(ground: Ground, tmp_path: Path) -> None:
    unit = ground.make_unit()
    point = tmp_path / "point"
    point.mkdir()
    ground.make_unit("b")
    script = f"mount --bind {unit.parent} {point}\nexec 9<{point}/a/in/f\numount --lazy {point}"
    with process_with_mounts(script) as pid:
        assert UseFact(how="open", pid=pid) in uses(ground)
        assert uses(ground, "zhang/datasets/b") == set(), "the others on that disk can go"


def test_a_mount_that_hides_an_open_file(ground: Ground) -> None:
    unit = ground.make_unit()
    with process_with_mounts(f"exec 9<{unit}/in/f\nmount -t tmpfs none {ground.root}") as pid:
        assert UseFact(how="open", pid=pid) in uses(ground)


def test_the_first_thread_has_ended(ground: Ground) -> None:
    unit = ground.make_unit()
    program = (
        f"import threading; file = open({str(unit / 'f')!r})\n"
        "def rest():\n    import time; time.sleep(0.1); os.write(1, b'x'); threading.Event().wait()\n"
        "threading.Thread(target=rest).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with child(program) as pid:
        assert UseFact(how="open", pid=pid) in uses(ground)


def test_a_file_that_serves_as_a_disk(ground: Ground) -> None:
    unit = ground.make_unit()
    with loop_device(unit / "image"):
        assert UseFact(how="loop") in uses(ground)
    assert uses(ground) == set()


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
    """Make a recorded process: state, namespace, root, mounts and an empty table of files."""
    base = proc / str(pid)
    for name in ("ns", "fd", "fdinfo", f"task/{pid}"):
        (base / name).mkdir(parents=True)
    (base / "ns/mnt").symlink_to("mnt:[1]")
    for place in (base, base / f"task/{pid}"):
        (place / "root").symlink_to("/")
        (place / "cwd").symlink_to("/")
    (base / "stat").write_text(f"{pid} (x) S 1")
    (base / "maps").write_text("")
    (base / "mountinfo").write_bytes(Path("/proc/self/mountinfo").read_bytes())
    return base


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    made = tmp_path / "proc"
    made.mkdir()
    (made / "self").symlink_to("1")
    (tmp_path / "sys/block").mkdir(parents=True)
    return made


PLACE = FsLocation(b"8:1", b"/zhang/datasets/a")


def test_a_process_that_cannot_be_read_uses_everything(proc: Path, tmp_path: Path) -> None:
    fake_process(proc, 7)
    in_use = InUse(str(proc), str(tmp_path / "sys"))
    assert in_use([PLACE]) == {}
    with ExitStack() as stack:
        stack.callback((proc / "7/maps").unlink)
        (proc / "7/maps").unlink()
        (proc / "7/maps").symlink_to("maps")  # "too many levels": any error but "gone"
        assert in_use([PLACE]) == {PLACE: (UseFact(how="unknown", pid=7),)}


def test_a_process_that_hangs_uses_everything(proc: Path, tmp_path: Path) -> None:
    base = fake_process(proc, 7)
    (base / "maps").unlink()
    os.mkfifo(base / "maps")  # reading waits for a writer
    assert InUse(str(proc), str(tmp_path / "sys"), limit=0.2)([PLACE]) == {PLACE: (UseFact(how="unknown", pid=7),)}
    with open(base / "maps", "wb"):
        pass  # lets the reader go
    wait = [thread for thread in threading.enumerate() if thread.name == "guard-in-use"]
    for thread in wait:
        thread.join(5)


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="proc"):
        InUse(str(tmp_path / "proc"))([PLACE])


def test_a_share_that_is_mounted_in_part(proc: Path, tmp_path: Path) -> None:
    """Two mounts of one NFS export have other numbers (recorded from Linux 5.15): the server's name for it decides."""
    base = fake_process(proc, 7)
    (base / "mountinfo").write_text(
        "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "41 30 0:61 / /data rw,relatime shared:3 - nfs4 nas:/export/zhang rw,vers=4.2\n"
    )
    (base / "maps").write_text("7f00-7f01 r--p 0 00:3d 99    /data/datasets/a/f\n")
    place = FsLocation(b"nas", b"/export/zhang/datasets/a")
    other = FsLocation(b"nas", b"/export/li/datasets/a")
    assert InUse(str(proc), str(tmp_path / "sys"))([place, other]) == {place: (UseFact(how="map", pid=7),)}


def test_processes_started_meanwhile_are_seen(ground: Ground) -> None:
    """A process that hands its file to a child and ends, again and again: somebody always has it."""
    unit = ground.make_unit()
    program = (
        "import os, sys, time\n"
        f"file = open({str(unit / 'f')!r})\n"
        "end = time.monotonic() + 60\n"
        "print(flush=True)\n"
        "while time.monotonic() < end and not os.path.exists(sys.argv[1]):\n"
        "    if os.fork(): os._exit(0)\n"
        "    time.sleep(0.002)\n"
    )
    over = ground.base / "over"
    with subprocess.Popen([sys.executable, "-c", program, over], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            missed = sum(not uses(ground) for _ in range(20))
        finally:
            over.touch()
            process.stdout.read()  # until the last of them has ended
    assert missed == 0
