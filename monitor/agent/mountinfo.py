"""The node's mounts, out of /proc/<pid>/mountinfo: which of them are disks, and which disk holds a path.

Names are bytes in here, as the kernel has them: a mount point need not be UTF-8. `label` makes one fit to leave.
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

# More than any node has on purpose; a mount leak must not become a leak of series.
MAX_DISKS = 256

_READ_ANYWAY_SECONDS = 60.0

# Nothing here can fill up in a way that someone could clean, or it is always full (images), or it is memory.
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
# Where runtimes and the kubelet mount things for containers: hundreds of mounts that come and go.
_FOR_CONTAINERS = (b"/pods/", b"/docker/", b"/containerd/", b"/io.containerd.", b"/containers/", b"/kubelet/plugins/")
# A container's root on a device of its own (devicemapper, zfs): gone with the container, and counted with it.
_CONTAINER_ROOTS = (b"/docker/devicemapper/mnt/", b"/docker/zfs/graph/", b"/io.containerd.runtime.")


class Mount(NamedTuple):
    """One mount. `number` is the device's major:minor, `root` what of the filesystem is seen at `point`."""

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
        """Whether it answers from elsewhere. FUSE on a GPU node is an object store or a cluster filesystem."""
        return self.fstype in _NETWORK or (self.is_fuse and self.fstype not in _LOCAL_FUSE)

    @property
    def for_containers(self) -> bool:
        return any(mark in self.point for mark in _FOR_CONTAINERS)

    @property
    def disk_id(self) -> bytes:
        """What is equal for all mounts of one filesystem.

        An export that is mounted twice with other options has two device numbers, but one source. FUSE is told
        apart by number all the same: each mount has its own process that can hang, and the source is often just "s3fs".
        """
        if self.is_network and not self.is_fuse and (b":" in self.source or self.source.startswith(b"//")):
            return self.source
        return self.number

    @property
    def is_disk(self) -> bool:
        """Whether its figures mean something. The root always counts, be it the overlay of a live system."""
        if self.point == b"/":
            return True
        if self.fstype in _NOT_DISKS:
            return False
        return self.is_network or not any(mark in self.point for mark in _CONTAINER_ROOTS)

    def check_seen_as(self, device: int) -> None:
        """Given the st_dev found at its point, raise OSError if that is another filesystem, whose figures would lie.

        Numbers with major 0 are not compared, except NFS: btrfs and ceph give their parts others than mountinfo has.
        """
        major, _, minor = self.number.partition(b":")
        if major == b"0" and not self.fstype.startswith(b"nfs"):
            return
        if device != os.makedev(int(major), int(minor)):
            raise OSError("not visible to the agent: hidden by another mount, or not propagated to its container")


class Mounts:
    """All mounts of a node at one moment. `disks` has one mount a filesystem, `left_out` counts those over the cap."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        # A later mount on the same point hides the earlier one.
        self._at = {mount.point: mount for mount in mounts}
        chosen: dict[bytes, Mount] = {}
        for mount in self._at.values():
            if mount.is_disk:
                other = chosen.get(mount.disk_id)
                if other is None or _preference(mount) < _preference(other):
                    chosen[mount.disk_id] = mount
        ordered = sorted(chosen.values(), key=_order)
        self.disks = tuple(ordered[:MAX_DISKS])
        self.left_out = len(ordered) - len(self.disks)
        self._disk_by_id = {mount.disk_id: mount for mount in self.disks}

    def at(self, point: bytes) -> Mount | None:
        """Given a path, return what is mounted exactly there."""
        return self._at.get(point)

    def holding(self, path: bytes) -> Mount | None:
        """Given an absolute path without links, return the mount it lies on."""
        while path not in self._at and path not in (b"/", b""):
            path = os.path.dirname(path)
        return self._at.get(path)

    def disk_holding(self, path: bytes) -> Mount | None:
        """Given an absolute path without links, return the disk it lies on, as it is listed in `disks`."""
        mount = self.holding(path)
        return self._disk_by_id.get(mount.disk_id) if mount is not None else None


class MountTable:
    """The current mounts. They are read when the kernel says that they changed: writing them out costs it 1 ms.

    It does not say so when an error makes a filesystem read-only, so that they are also read once a minute.
    """

    def __init__(self, proc: str, clock: Clock = time) -> None:
        self._proc = proc
        self._clock = clock
        self._file: int | None = None
        self._poll = select.poll()
        self._read_at = 0.0
        self._seen: int | None = None
        self._mounts = Mounts(())

    def read(self) -> Mounts:
        """Return the mounts as they are now, the same object while nothing changed. Raise OSError without /proc."""
        if self._file is None:
            self._file = self._open()
            self._poll.register(self._file, select.POLLPRI)
        elif not self._may_have_changed(self._file):
            return self._mounts
        os.lseek(self._file, 0, os.SEEK_SET)
        with open(self._file, "rb", buffering=0, closefd=False) as file:
            raw = file.read()
        if self._seen != hash(raw):  # not the bytes themselves, which can be megabytes
            self._mounts, self._seen = Mounts(parse(raw)), hash(raw)
        self._read_at = self._clock.monotonic()
        return self._mounts

    def _open(self) -> int:
        try:
            file = os.open(f"{self._proc}/1/mountinfo", os.O_RDONLY)  # the node's, wherever the agent lives
        except OSError:
            file = os.open(f"{self._proc}/self/mountinfo", os.O_RDONLY)  # pid 1 is not ours to look at
        weakref.finalize(self, os.close, file)
        return file

    def _may_have_changed(self, file: int) -> bool:
        if self._poll.poll(0) or self._clock.monotonic() - self._read_at >= _READ_ANYWAY_SECONDS:
            return True
        return os.fstat(file).st_size > 0  # a recording: only the kernel's files, which have no size, can be polled


def parse(raw: bytes) -> Iterator[Mount]:
    """Given a mountinfo, yield its mounts. Skip pseudo ones made for containers, and lines that are no mount at all."""
    for line in io.BytesIO(raw):  # a line at a time: splitting 10 MB at once would double it
        head, _, tail = line.rstrip(b"\n").partition(b" - ")
        if tail.partition(b" ")[0] in _NOT_DISKS and any(mark in head for mark in _FOR_CONTAINERS):
            continue  # most lines of a busy node
        try:
            yield _parse_halves(head, tail)
        except ValueError:
            continue


def label(name: bytes) -> str:
    """Given a name of the kernel's, return it as text that is valid UTF-8."""
    return name.decode("utf-8", "backslashreplace")


def below(rootfs: str, path: bytes) -> bytes:
    """Given where the node's root is and a path of the node, return where the agent finds it."""
    return os.fsencode(rootfs).rstrip(b"/") + path


def on_node(rootfs: str, path: str) -> bytes:
    """Given a path as configured, which may or may not go through `rootfs`, return the node's own name for it."""
    prefix = rootfs.rstrip("/")
    if prefix and path.startswith(prefix + "/"):
        path = path.removeprefix(prefix)
    return os.fsencode(os.path.normpath("/" + path.lstrip("/")))


def resolve(rootfs: str, path: bytes) -> bytes:
    """Given an absolute path of the node, return it without symbolic links. Raise OSError if it is not there.

    os.path.realpath does not do: a link on the node means the node's root, not the agent's.
    """
    todo, done, links = path.split(b"/")[::-1], b"", 0
    while todo:
        part = todo.pop()
        if part == b"..":
            done = os.path.dirname(done).rstrip(b"/")
        if part in (b"", b".", b".."):
            continue
        target = _link_target(below(rootfs, done + b"/" + part))
        if target is None:
            done += b"/" + part
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        todo += target.split(b"/")[::-1]
        done = b"" if target.startswith(b"/") else done
    return done or b"/"


def _link_target(path: bytes) -> bytes | None:
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno == errno.EINVAL:  # it is there and is not a link
            return None
        raise


def _parse_halves(head: bytes, tail: bytes) -> Mount:
    """Given `36 35 98:0 / /data rw shared:1` and `ext3 /dev/sdb rw`, return the mount. Raise ValueError otherwise."""
    _, _, number, root, point, options, *_ = head.split(b" ", 6)
    fstype, source, *rest = tail.split(b" ", 2)  # a source can be empty: do not split on runs of spaces
    major, _, minor = number.partition(b":")
    point = _unescape(point)
    if not (major.isdigit() and minor.isdigit() and point.startswith(b"/")) or b"\0" in point:
        raise ValueError("not a mount")
    read_only = _is_read_only(options) or _is_read_only(*rest)
    return Mount(number, _unescape(root), point, fstype, _unescape(source), read_only)


def _is_read_only(options: bytes = b"") -> bool:
    """Given mount options, of which the kernel writes rw or ro first, return whether writing is off.

    On recent kernels (seen with 6.18) ext4 stays "rw" after an error, for statvfs too, and only adds a word of its own.
    """
    return options == b"ro" or options.startswith(b"ro,") or b",emergency_ro" in options


def _unescape(field: bytes) -> bytes:
    r"""Given a field with its spaces written as \040, return it as it is. Raise ValueError if it is malformed."""
    if b"\\" not in field:
        return field
    first, *rest = field.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)


def _preference(mount: Mount) -> tuple[bool, bool, bool, bool, int, bytes]:
    """The mount that people know a disk by: the root, else a whole and writable view of it, at the shortest path."""
    return (
        mount.point != b"/",
        mount.root != b"/",
        mount.for_containers,
        mount.read_only,
        len(mount.point),
        mount.point,
    )


def _order(mount: Mount) -> tuple[bool, bool, bool, bytes]:
    """Local disks before those that may hang, and containers' volumes last: they are left out first."""
    return (mount.point != b"/", mount.for_containers, mount.is_network, mount.point)
