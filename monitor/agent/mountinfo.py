"""The node's mounts from /proc/<pid>/mountinfo: which of them are disks, and which disk holds a path.

Names are bytes, as in the kernel: a mount point need not be UTF-8. `decoded` converts them for facts.
"""

from __future__ import annotations

import errno
import io
import os
import select
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from monitor.base.clock import Clock

# More than any node has on purpose: a mount leak must not become a leak of series.
MAX_DISKS = 256

_MAX_AGE_SECONDS = 60.0
_MAX_LINKS = 40

# Pseudo filesystems, memory, and read-only images, which are always full.
_NOT_DISKS = frozenset(
    b"""aufs autofs binfmt_misc bpf cgroup cgroup2 configfs cpuset cramfs debugfs devpts devtmpfs efivarfs erofs
    fuse.fuse-overlayfs fuse.gvfsd-fuse fuse.lxcfs fuse.portal fuse.snapfuse fuse.squashfuse fuse.vmware-vmblock
    fusectl hugetlbfs iso9660 mqueue nfsd none nsfs overlay overlayfs proc pstore ramfs resctrl romfs rootfs rpc_pipefs
    securityfs selinuxfs smackfs squashfs sysfs tmpfs tracefs udf usbfs""".split()
)
_NETWORK = frozenset(
    b"""9p afs beegfs ceph cifs glusterfs gpfs lustre nfs nfs3 nfs4 orangefs panfs pvfs2 quobyte smb3 smbfs virtiofs
    wekafs""".split()
)
_LOCAL_FUSE = frozenset(
    b"fuse.bindfs fuse.encfs fuse.exfat fuse.gocryptfs fuse.mergerfs fuse.ntfs fuse.ntfs-3g fuse.zfs-fuse".split()
)
# Where runtimes and the kubelet mount for containers: hundreds of short-lived mounts.
_FOR_CONTAINERS = (b"/pods/", b"/docker/", b"/containerd/", b"/io.containerd.", b"/containers/", b"/kubelet/plugins/")
# A container's root on its own device (devicemapper, zfs): removed and counted with the container.
_CONTAINER_ROOTS = (b"/docker/devicemapper/mnt/", b"/docker/zfs/graph/", b"/io.containerd.runtime.")


class MountPoint(NamedTuple):
    """A mount. `number` is the device's major:minor, `root` the part of the filesystem that is mounted at `point`."""

    number: bytes
    root: bytes
    point: bytes
    fstype: bytes
    source: bytes
    read_only: bool

    @property
    def is_fuse(self) -> bool:
        return self.fstype == b"fuse" or self.fstype.startswith(b"fuse.")

    @property
    def is_network(self) -> bool:
        """Whether it is remote. FUSE on a GPU node is an object store or a cluster filesystem."""
        return self.fstype in _NETWORK or (self.is_fuse and self.fstype not in _LOCAL_FUSE)

    @property
    def for_containers(self) -> bool:
        return any(mark in self.point for mark in _FOR_CONTAINERS)

    @property
    def disk_id(self) -> bytes:
        """Identity of the filesystem, equal for all of its mounts.

        An export mounted twice with different options has two device numbers but one source. FUSE is identified by
        number even so: each mount has its own process that can hang, and the source is often just "s3fs".
        """
        if self.is_network and not self.is_fuse and (b":" in self.source or self.source.startswith(b"//")):
            return self.source
        return self.number

    @property
    def is_disk(self) -> bool:
        """Whether its usage is worth reporting. The root always is, even as the overlay of a live system."""
        if self.point == b"/":
            return True
        if self.fstype in _NOT_DISKS:
            return False
        return self.is_network or not any(mark in self.point for mark in _CONTAINER_ROOTS)

    def check_device(self, device: int) -> None:
        """Raise OSError if `device`, the st_dev at the mount point, is another filesystem.

        Numbers with major 0 are compared only for NFS: those of btrfs and ceph subvolumes differ from mountinfo.
        """
        major, _, minor = self.number.partition(b":")
        if major == b"0" and not self.fstype.startswith(b"nfs"):
            return
        if device != os.makedev(int(major), int(minor)):
            raise OSError("not visible to the agent: hidden by another mount, or not propagated to its container")


class Mounts:
    """All mounts of a node at one moment. `disks` has one mount per filesystem; `omitted` counts those over the cap."""

    def __init__(self, mounts: Iterable[MountPoint]) -> None:
        # A later mount on the same point hides the earlier one.
        self._at = {mount.point: mount for mount in mounts}
        chosen: dict[bytes, MountPoint] = {}
        for mount in self._at.values():
            if mount.is_disk:
                other = chosen.get(mount.disk_id)
                if other is None or _preference(mount) < _preference(other):
                    chosen[mount.disk_id] = mount
        ordered = sorted(chosen.values(), key=_order)
        self.disks = tuple(ordered[:MAX_DISKS])
        self.omitted = len(ordered) - len(self.disks)
        self._disk_by_id = {mount.disk_id: mount for mount in self.disks}

    def at(self, point: bytes) -> MountPoint | None:
        """Mount exactly at this path."""
        return self._at.get(point)

    def holding(self, path: bytes) -> MountPoint | None:
        """Mount that holds an absolute path without links."""
        while path not in self._at and path not in (b"/", b""):
            path = os.path.dirname(path)
        return self._at.get(path)

    def disk_holding(self, path: bytes) -> MountPoint | None:
        """Member of `disks` that holds an absolute path without links."""
        mount = self.holding(path)
        return self._disk_by_id.get(mount.disk_id) if mount is not None else None


class MountTable:
    """The current mounts, read when the kernel reports a change: formatting them costs the kernel 1 ms.

    It does not report that an error has made a filesystem read-only, so they are also read once a minute.
    """

    def __init__(self, proc: str, clock: Clock = time) -> None:
        self._proc = proc
        self._clock = clock
        self._file: int | None = None
        self._poll = select.poll()
        self._read_at = 0.0
        self._hash: int | None = None
        self._mounts = Mounts(())

    def read(self) -> Mounts:
        """Current mounts, the same object while nothing changes. Raise OSError without /proc."""
        if self._file is None:
            self._file = self._open()
            self._poll.register(self._file, select.POLLPRI)
        elif not self._may_have_changed(self._file):
            return self._mounts
        os.lseek(self._file, 0, os.SEEK_SET)
        with open(self._file, "rb", buffering=0, closefd=False) as file:
            raw = file.read()
        if self._hash != hash(raw):  # not the bytes themselves, which can be megabytes
            self._mounts, self._hash = Mounts(parse_mountinfo(raw)), hash(raw)
        self._read_at = self._clock.monotonic()
        return self._mounts

    def _open(self) -> int:
        try:
            file = os.open(f"{self._proc}/1/mountinfo", os.O_RDONLY)  # of the node, even if the agent is in a container
        except OSError:
            file = os.open(f"{self._proc}/self/mountinfo", os.O_RDONLY)  # pid 1 is not readable
        weakref.finalize(self, os.close, file)
        return file

    def _may_have_changed(self, file: int) -> bool:
        if self._poll.poll(0) or self._clock.monotonic() - self._read_at >= _MAX_AGE_SECONDS:
            return True
        return os.fstat(file).st_size > 0  # a recorded file: only the kernel's, which have no size, can be polled


def parse_mountinfo(raw: bytes) -> Iterator[MountPoint]:
    """Mounts in a mountinfo, without pseudo filesystems of containers and malformed lines."""
    for line in io.BytesIO(raw):  # line by line: splitting 10 MB at once would double the memory
        head, _, tail = line.rstrip(b"\n").partition(b" - ")
        if tail.partition(b" ")[0] in _NOT_DISKS and any(mark in head for mark in _FOR_CONTAINERS):
            continue  # most lines of a busy node
        try:
            yield _parse_halves(head, tail)
        except ValueError:
            continue


def decoded(name: bytes) -> str:
    """Name from the kernel as valid UTF-8."""
    return name.decode("utf-8", "backslashreplace")


def host_path(rootfs: str, path: bytes) -> bytes:
    """Path where the agent finds a path of the node."""
    return os.fsencode(rootfs).rstrip(b"/") + path


def node_path(rootfs: str, path: str) -> bytes:
    """Path on the node of a configured path, which may or may not start with `rootfs`."""
    prefix = rootfs.rstrip("/")
    if prefix and path.startswith(prefix + "/"):
        path = path.removeprefix(prefix)
    return os.fsencode(os.path.normpath("/" + path.lstrip("/")))


def resolve_links(rootfs: str, path: bytes) -> bytes:
    """Absolute path of the node without symbolic links. Raise OSError if it does not exist.

    os.path.realpath would resolve links against the agent's root instead of the node's.
    """
    todo, done, links = path.split(b"/")[::-1], b"", 0
    while todo:
        part = todo.pop()
        if part == b"..":
            done = os.path.dirname(done).rstrip(b"/")
        if part in (b"", b".", b".."):
            continue
        target = _link_target(host_path(rootfs, done + b"/" + part))
        if target is None:
            done += b"/" + part
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        todo += target.split(b"/")[::-1]
        done = b"" if target.startswith(b"/") else done
    return done or b"/"


def _link_target(path: bytes) -> bytes | None:
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno == errno.EINVAL:  # it exists and is not a link
            return None
        raise


def _parse_halves(head: bytes, tail: bytes) -> MountPoint:
    """Mount from `36 35 98:0 / /data rw shared:1` and `ext3 /dev/sdb rw`. Raise ValueError if malformed."""
    _, _, number, root, point, options, *_ = head.split(b" ", 6)
    fstype, source, *rest = tail.split(b" ", 2)  # a source can be empty: do not split on runs of spaces
    major, _, minor = number.partition(b":")
    point = _unescape(point)
    if not (major.isdigit() and minor.isdigit() and point.startswith(b"/")) or b"\0" in point:
        raise ValueError("not a mount")
    read_only = _is_read_only(options) or _is_read_only(*rest)
    return MountPoint(number, _unescape(root), point, fstype, _unescape(source), read_only)


def _is_read_only(options: bytes = b"") -> bool:
    """Whether mount options, which begin with rw or ro, forbid writing.

    On recent kernels (seen with 6.18) ext4 stays "rw" after an error, also in statvfs, and only adds an option.
    """
    return options == b"ro" or options.startswith(b"ro,") or b",emergency_ro" in options


def _unescape(field: bytes) -> bytes:
    r"""Field with escapes such as \040 decoded. Raise ValueError if malformed."""
    if b"\\" not in field:
        return field
    first, *rest = field.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)


def _preference(mount: MountPoint) -> tuple[bool, bool, bool, bool, int, bytes]:
    """Sort key for the mount that represents a disk: the root, else a complete, writable one at the shortest path."""
    return (
        mount.point != b"/",
        mount.root != b"/",
        mount.for_containers,
        mount.read_only,
        len(mount.point),
        mount.point,
    )


def _order(mount: MountPoint) -> tuple[bool, bool, bool, bytes]:
    """Sort key of disks: local before remote, volumes of containers last, so that they are omitted first."""
    return (mount.point != b"/", mount.for_containers, mount.is_network, mount.point)
