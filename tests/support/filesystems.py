"""Real filesystems for tests: small ext4 disks, a FUSE mount that stops answering, and processes with their own mounts.

Everything is undone when its `with` ends, however that comes about.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from monitor.agent.settings import Paths
from tests.support import need, wait_until


def node_paths(
    proc: str = "/proc", sys: str = "/sys", rootfs: str = "/", kubelet: str = "/nonexistent/kubelet"
) -> Paths:
    """Return where a node is found: this machine, unless told otherwise."""
    return Paths(
        proc=proc, sys=sys, rootfs=rootfs, kubelet=kubelet, kmsg="/dev/null", state="/nonexistent/state",
        docker_socket="/nonexistent/docker.sock", cri_sockets=(),
    )  # fmt: skip


def need_mounting() -> None:
    need(os.geteuid() == 0 and shutil.which("mount") is not None, "root, to mount filesystems")


def run(*command: str | bytes | Path) -> None:
    """Run a command. Raise CalledProcessError with what it said when it fails."""
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextlib.contextmanager
def mounted(point: bytes | Path, *mount_options: str | Path) -> Iterator[None]:
    """Mount something at `point`, which is made if need be, for as long as the `with` lasts."""
    need_mounting()
    os.makedirs(point, exist_ok=True)
    run("mount", *mount_options, point)
    try:
        yield
    finally:
        run("umount", "--lazy", point)


@contextlib.contextmanager
def ext4_disk(directory: Path, name: str = "disk", megabytes: int = 32, inodes: int = 1024) -> Iterator[Path]:
    """Give a real, small disk: an ext4 image, mounted by a loop device."""
    need(os.path.exists("/dev/loop-control"), "loop devices")
    need(shutil.which("mkfs.ext4") is not None, "mkfs.ext4 (Debian: e2fsprogs)")
    image, point = directory / f"{name}.img", directory / name
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-N", str(inodes), image)
    with mounted(point, "-o", "loop", image):
        yield point


def fill(disk: Path) -> None:
    """Write to a disk until nothing more fits: in large pieces, then whatever room ext4 gives back at each close."""
    for size in (1 << 20, 512):
        while _append(disk / "full", b"x" * size) > 0:
            pass


def _append(path: Path, piece: bytes) -> int:
    """Append to a file until the disk is full, and return how many bytes went in. Raise OSError on anything else."""
    file, written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_SYNC), 0
    try:
        while True:
            written += os.write(file, piece)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return written
    finally:
        os.close(file)


class StallingMount:
    """A mounted FUSE filesystem that can be made to hang and to answer again."""

    def __init__(self, point: Path, control: Path, process: subprocess.Popen[bytes]) -> None:
        self.point = point
        self._control = control
        self._process = process

    def hang(self) -> None:
        self._control.touch()

    def fail(self, error: int) -> None:
        """Answer everything with this error number."""
        self._control.write_text(str(error))

    def release(self) -> None:
        self._control.unlink(missing_ok=True)

    def die(self) -> None:
        """End the process behind the mount: whoever waits for it gets an error."""
        self._process.kill()
        self._process.wait(60)


@contextlib.contextmanager
def stalling_mount(directory: Path, name: str = "nas") -> Iterator[StallingMount]:
    """Give a FUSE mount that answers until it is told to hang."""
    need(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "root and /dev/fuse")
    need(bool(ctypes.util.find_library("fuse3") or ctypes.util.find_library("fuse")), "libfuse (Debian: libfuse3-3)")
    point, control = directory / name, directory / f"{name}.hang"
    point.mkdir()
    script = Path(__file__).with_name("stalling_fuse.py")
    process = subprocess.Popen([sys.executable, script, point, control])
    mount = StallingMount(point, control, process)
    try:
        wait_until(lambda: process.poll() is not None or os.path.ismount(point), 10, "the FUSE mount")
        assert process.poll() is None, "the FUSE process ended"
        yield mount
    finally:
        mount.release()
        mount.die()
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True, timeout=60)


@contextlib.contextmanager
def process_with_mounts(script: str) -> Iterator[int]:
    """Give the pid of a process in a mount namespace of its own, like a container's, set up by a shell `script`."""
    need_mounting()
    need(shutil.which("unshare") is not None, "unshare (Debian: util-linux)")
    command = ["unshare", "--mount", "sh", "-ec", f"{script}\necho ready\nexec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", "the process's mounts could not be set up"
            yield process.pid
        finally:
            process.kill()
