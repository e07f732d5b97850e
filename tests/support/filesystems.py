"""Real filesystems for tests:

small ext4 disks, a FUSE mount that can hang, and processes with a private mount namespace.

Every context manager undoes its changes on exit, whatever the cause.
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
    """Paths of a node: this machine, unless overridden."""
    return Paths(
        proc=proc, sys=sys, rootfs=rootfs, kubelet=kubelet, kmsg="/dev/null", state="/nonexistent/state",
        docker_socket="/nonexistent/docker.sock", cri_sockets=(),
    )  # fmt: skip


def need_mounting() -> None:
    need(os.geteuid() == 0 and shutil.which("mount") is not None, "root, to mount filesystems")


def run(*command: str | bytes | Path) -> None:
    """Run a command; CalledProcessError carries its output."""
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@contextlib.contextmanager
def mounted(point: bytes | Path, *mount_options: str | Path) -> Iterator[None]:
    """Mount something at `point`, creating the directory if needed, until the context exits."""
    need_mounting()
    os.makedirs(point, exist_ok=True)
    run("mount", *mount_options, point)
    try:
        yield
    finally:
        run("umount", "--lazy", point)


@contextlib.contextmanager
def ext4_disk(directory: Path, name: str = "disk", megabytes: int = 32, inodes: int = 1024) -> Iterator[Path]:
    """A small real disk: an ext4 image on a loop device."""
    need(os.path.exists("/dev/loop-control"), "loop devices")
    need(shutil.which("mkfs.ext4") is not None, "mkfs.ext4 (Debian: e2fsprogs)")
    image, point = directory / f"{name}.img", directory / name
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-N", str(inodes), image)
    with mounted(point, "-o", "loop", image):
        yield point


def fill(disk: Path) -> None:
    """Fill a disk completely: large blocks first, then the space that ext4 releases at each close."""
    for size in (1 << 20, 512):
        while _append(disk / "full", b"x" * size) > 0:
            pass


def _append(path: Path, piece: bytes) -> int:
    """Append to a file until the disk is full and return the bytes written; any other OSError propagates."""
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
    """A FUSE filesystem that can be made to hang and to recover."""

    def __init__(self, point: Path, control: Path, process: subprocess.Popen[bytes]) -> None:
        self.point = point
        self._control = control
        self._process = process

    def hang(self) -> None:
        self._control.touch()

    def fail(self, error: int) -> None:
        """Answer every call with this errno."""
        self._control.write_text(str(error))

    def release(self) -> None:
        self._control.unlink(missing_ok=True)

    def die(self) -> None:
        """Kill the process behind the mount: pending calls fail."""
        self._process.kill()
        self._process.wait(60)


@contextlib.contextmanager
def stalling_mount(directory: Path, name: str = "nas") -> Iterator[StallingMount]:
    """A FUSE mount that works until hang() is called."""
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
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True, timeout=300)


@contextlib.contextmanager
def process_with_mounts(script: str) -> Iterator[int]:
    """Pid of a process in its own mount namespace, like a container's, prepared by a shell `script`."""
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
