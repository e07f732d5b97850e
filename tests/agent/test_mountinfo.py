"""Which mounts are disks, and which disk holds a path."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.mountinfo import (
    MAX_DISKS,
    MountPoint,
    Mounts,
    MountTable,
    decoded,
    host_path,
    node_path,
    parse_mountinfo,
    resolve_links,
)
from tests.support.filesystems import mounted, run

ROOT = "27 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro"
POD = "/var/lib/kubelet/pods/9493223b-0000-4000-8000-000000000001"
TASK = "/run/containerd/io.containerd.runtime.v2.task/k8s.io/0123456789abcdef"


def mounts_of(*lines: str | bytes) -> Mounts:
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return Mounts(parse_mountinfo(b"\n".join(raw) + b"\n"))


def disks_of(*lines: str | bytes) -> list[str]:
    return [decoded(mount.point) for mount in mounts_of(*lines).disks]


# name, mountinfo, expected disks
DISKS: list[tuple[str, list[str], list[str]]] = [
    ("nothing", [], []),
    ("a disk and its partitions",
     [ROOT, "30 27 8:1 / /boot rw - ext4 /dev/sda1 rw", "31 27 259:0 / /data rw - xfs /dev/nvme0n1 rw"],
     ["/", "/boot", "/data"]),
    ("what is no disk",
     [ROOT, "22 27 0:21 / /proc rw - proc proc rw", "23 27 0:22 / /sys rw - sysfs sysfs rw",
      "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw", "26 27 0:60 / /snap/core rw - squashfs /dev/loop0 ro",
      "27 27 0:61 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw", "28 27 0:4 net:[40265] /run/netns/a rw - nsfs nsfs rw",
      "29 27 0:62 / /mnt/auto rw - autofs systemd-1 rw", "30 27 0:63 / /merged rw - overlay overlay rw"],
     ["/"]),
    ("a root of any kind", ["1 0 0:50 / / rw - overlay overlay rw,lowerdir=/a:/b"], ["/"]),
    ("bind mounts are the same disk",
     [ROOT, "30 27 8:3 /a /srv rw - ext4 /dev/sdb rw", "31 27 8:3 / /data rw - ext4 /dev/sdb rw",
      "32 27 8:3 / /data/again rw - ext4 /dev/sdb rw"],
     ["/", "/data"]),
    ("no view of the whole: the shortest path",
     [ROOT, "30 27 8:3 /a/b /srv/long rw - ext4 /dev/sdb rw", "31 27 8:3 /a /srv rw - ext4 /dev/sdb rw"],
     ["/", "/srv"]),
    ("a read-only view does not make a disk read-only",
     [ROOT, "30 27 8:3 / /x ro - ext4 /dev/sdb rw", "31 27 8:3 / /data rw - ext4 /dev/sdb rw"],
     ["/", "/data"]),
    ("btrfs: subvolumes are one disk, and the root is its name",
     ["27 1 0:30 /@ / rw - btrfs /dev/sda2 rw", "30 27 0:30 /@home /home rw - btrfs /dev/sda2 rw",
      "31 27 0:30 / /mnt/top rw - btrfs /dev/sda2 rw"],
     ["/"]),
    ("a mount on the same point hides the one below",
     [ROOT, "30 27 8:3 / /data rw - ext4 /dev/sdb rw", "31 30 8:4 / /data rw - ext4 /dev/sdc rw"],
     ["/", "/data"]),
    ("an export mounted twice is one, two exports are two, and they come after the local disks",
     [ROOT, "30 27 0:70 / /b rw - nfs4 nas:/export rw,vers=4.1", "31 27 0:71 / /a rw - nfs4 nas:/export rw,vers=4.2",
      "32 27 0:72 / /c rw - nfs nas:/other rw", "33 27 8:3 / /z rw - ext4 /dev/sdb rw",
      "34 27 0:73 / /w rw - cifs //srv/share rw", "35 27 0:74 / /w2 rw - cifs //srv/share rw"],
     ["/", "/z", "/a", "/c", "/w"]),
    ("FUSE mounts differ even if their source is the same",
     [ROOT, "30 27 0:70 / /oss/a rw - fuse.s3fs s3fs rw", "31 27 0:71 / /oss/b rw - fuse.s3fs s3fs rw"],
     ["/", "/oss/a", "/oss/b"]),
    ("a NAS that only pods mount is reported, once",
     [ROOT, *(f"{n} 27 0:{n} / {POD}{n}/volumes/kubernetes.io~nfs/data rw - nfs4 nas:/export rw" for n in range(5))],
     ["/", f"{POD}0/volumes/kubernetes.io~nfs/data"]),
    ("what kubelet and runtimes mount from the root's disk is not another disk",
     [ROOT, f"30 27 8:2 /x {POD}/volume-subpaths/conf/main/0 rw - ext4 /dev/sda2 rw",
      f"31 27 0:50 / {POD}/volumes/kubernetes.io~secret/token rw - tmpfs tmpfs rw",
      f"32 27 0:51 / {TASK}/rootfs rw - overlay overlay rw", f"33 27 0:52 / {TASK}/shm rw - tmpfs shm rw"],
     ["/"]),
    ("a container's root on a device of its own is the container's, a pod's block volume is a disk",
     [ROOT, "30 27 253:5 /rootfs /var/lib/docker/devicemapper/mnt/abc rw - xfs /dev/mapper/docker-abc rw",
      "31 27 0:90 / /var/lib/docker/zfs/graph/abc rw - zfs pool/docker/abc rw",
      f"32 27 253:6 / {TASK}/rootfs rw - ext4 /dev/mapper/pool-snap-1 rw",
      "33 27 251:0 / /var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-1/globalmount rw - ext4 /dev/rbd0 rw",
      f"34 27 251:0 / {POD}/volumes/kubernetes.io~csi/pvc-1/mount rw - ext4 /dev/rbd0 rw"],
     ["/", "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-1/globalmount"]),
    ("lines that are no mounts",
     ["", "garbage", "27 1 8:2 / / rw", "27 1 8:2 / / rw - ext4", "27 1 82 / / rw - ext4 a rw",
      "27 1 a:b / / rw - ext4 a rw",
      "27 1 8:2 / relative rw - ext4 a rw", r"27 1 8:2 / /bad\9 rw - ext4 a rw", r"27 1 8:2 / /nul\000 rw - ext4 a rw",
      " - ", "30 27 8:3 / /data rw - ext4 /dev/sdb"],
     ["/data"]),
    ("an empty source", ["30 27 0:33 / /mnt/share rw - virtiofs  rw"], ["/mnt/share"]),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), [row[1:] for row in DISKS], ids=[row[0] for row in DISKS])
def test_disks(lines: list[str], expected: list[str]) -> None:
    assert disks_of(*lines) == expected


@pytest.mark.parametrize(
    ("fstype", "network"),
    [("nfs", True), ("nfs4", True), ("cifs", True), ("ceph", True), ("lustre", True), ("gpfs", True), ("beegfs", True),
     ("9p", True), ("virtiofs", True), ("fuse.juicefs", True), ("fuse.glusterfs", True), ("fuse", True),
     ("fuse.ntfs-3g", False), ("fuseblk", False), ("ext4", False), ("xfs", False), ("btrfs", False), ("zfs", False)],
)  # fmt: skip
def test_what_answers_from_elsewhere(fstype: str, network: bool) -> None:
    (mount,) = mounts_of(f"30 27 0:70 / /data rw - {fstype} source rw").disks
    assert mount.is_network is network


@pytest.mark.parametrize(
    ("options", "super_options", "read_only"),
    [("rw", "rw", False), ("ro", "rw", True), ("rw,noatime", "ro,errors=remount-ro", True),
     ("rw,nosuid", "rw,errors=remount-ro", False), ("ro,relatime", "ro", True), ("rw,rock", "rw,ro_compat", False),
     ("rw,relatime", "rw,errors=remount-ro,emergency_ro", True)],
)  # fmt: skip
def test_read_only(options: str, super_options: str, read_only: bool) -> None:
    (mount,) = mounts_of(f"30 27 8:3 / /data {options} shared:1 - ext4 /dev/sdb {super_options}").disks
    assert mount.read_only is read_only


def test_all_fields() -> None:
    line = r"36 35 98:0 /a\134b /with\040space\011tab rw shared:1 master:7 - ext3 /dev/a\040b rw,errors=continue"
    assert mounts_of(line).disks == (
        MountPoint(b"98:0", b"/a\\b", b"/with space\ttab", b"ext3", b"/dev/a b", read_only=False),
    )


@pytest.mark.parametrize(
    ("point", "text"),
    [
        (b"/data/\xff\xfe", r"/data/\xff\xfe"),
        ("/数据".encode(), "/数据"),
        ("/数据".encode("gbk"), r"/\xca\xfd\xbe\xdd"),
    ],
)
def test_names_that_are_not_utf8_leave_as_valid_text(point: bytes, text: str) -> None:
    (mount,) = mounts_of(b"30 27 8:3 / %s rw - ext4 /dev/sdb rw" % point).disks
    assert mount.point == point
    assert decoded(mount.point) == text
    assert decoded(mount.point).encode("utf-8")


HELD = mounts_of(
    ROOT,
    "30 27 8:3 / /data rw - ext4 /dev/sdb rw",
    "31 27 8:3 /docker /var/lib/docker rw - ext4 /dev/sdb rw",
    "32 27 0:40 / /data/tmp rw - tmpfs tmpfs rw",
)


@pytest.mark.parametrize(
    ("path", "point", "disk"),
    [(b"/", b"/", b"/"), (b"/var/lib", b"/", b"/"), (b"/data", b"/data", b"/data"), (b"/data/a/b", b"/data", b"/data"),
     (b"/database", b"/", b"/"), (b"/var/lib/docker/overlay2", b"/var/lib/docker", b"/data"),
     (b"/data/tmp/x", b"/data/tmp", None)],
)  # fmt: skip
def test_what_holds_a_path(path: bytes, point: bytes, disk: bytes | None) -> None:
    mount, on_disk = HELD.holding(path), HELD.disk_holding(path)
    assert mount is not None
    assert mount.point == point
    assert (on_disk and on_disk.point) == disk


def test_too_many_disks_are_left_out_and_counted_pods_first() -> None:
    pods = [
        f"{n} 27 251:{n} / {POD[:-1]}{n}/volumes/kubernetes.io~csi/v/mount rw - ext4 /dev/rbd rw" for n in range(500)
    ]
    mounts = mounts_of(*pods, ROOT, "30 27 8:3 / /zzz rw - ext4 /dev/sdb rw", "31 27 0:9 / /zzy rw - nfs a:/b rw")
    assert [mount.point for mount in mounts.disks[:3]] == [b"/", b"/zzz", b"/zzy"]
    assert (len(mounts.disks), mounts.omitted) == (MAX_DISKS, 503 - MAX_DISKS)


@pytest.mark.parametrize("fstype", ["overlay", "ext4", "nfs4"])
def test_ten_megabytes_of_mounts_take_about_a_second_at_most(fstype: str) -> None:
    line = b"%d 27 %d:%d /" + b"r" * 40 + b" /var/leak/" + b"m" * 90 + b"%d rw shared:1 - %s nas:/export/%d rw,nolock"
    raw = b"\n".join([line % (n, 300 + n // 256, n % 256, n, fstype.encode(), n) for n in range(55_000)])
    assert len(raw) > 10_000_000
    began = time.process_time()
    mounts = Mounts(parse_mountinfo(ROOT.encode() + b"\n" + raw))
    assert time.process_time() - began < 10  # 0.6 s on two slow cores
    assert len(mounts.disks) + mounts.omitted == (1 if fstype == "overlay" else 55_001)


@given(st.lists(st.binary(max_size=60) | st.sampled_from([ROOT.encode(), b"30 27 8:3 / /\xff rw - xfs \\1 rw"])))
def test_no_bytes_can_break_it(lines: list[bytes]) -> None:
    mounts = Mounts(parse_mountinfo(b"\n".join(lines)))
    for mount in mounts.disks:
        assert decoded(mount.point).encode()
        assert b"\0" not in mount.point


def test_the_table_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    point = os.fsencode(tmp_path / "share")
    table = MountTable("/proc")
    table.read()
    for _ in range(3):
        with mounted(point, "-t", "tmpfs", "tmpfs"):
            mounts = table.read()
            assert mounts.at(point) is not None
            run("mount", "-o", "remount,ro", point)
            again = table.read().at(point)
            assert again is not None
            assert again.read_only
        assert table.read().at(point) is None
    unchanged = [table.read() for _ in range(20)]
    assert len(set(map(id, unchanged))) < 5  # not 1: other processes may mount something


def test_a_recorded_table_is_followed_as_well(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    file = tmp_path / "1" / "mountinfo"
    table = MountTable(str(tmp_path))
    for options in ("rw", "ro"):
        file.write_text(ROOT.replace("rw,relatime", options) + "\n")
        assert table.read().disks[0].read_only is (options == "ro")


def test_a_table_nobody_uses_any_more_leaves_no_file_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        MountTable("/proc").read()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    ("files", "expected"),
    [(("1", "self"), b"/of-1"), (("self",), b"/of-self")],
    ids=["the node's own mounts", "without those: ours"],
)
def test_whose_mounts(tmp_path: Path, files: tuple[str, ...], expected: bytes) -> None:
    for name in files:
        (tmp_path / name).mkdir()
        (tmp_path / name / "mountinfo").write_text(f"30 27 8:3 / /of-{name} rw - ext4 /dev/sdb rw\n")
    assert MountTable(str(tmp_path)).read().disks[0].point == expected


def test_no_mounts_to_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MountTable(str(tmp_path)).read()


@pytest.mark.parametrize("name", [b"with space", b"tab\tback\\slash#", b"new\nline", b"\xff\xfe", "数据".encode()])
def test_real_mounts_with_odd_names(tmp_path: Path, name: bytes) -> None:
    point = os.fsencode(tmp_path) + b"/" + name
    with mounted(point, "-t", "tmpfs", "tmpfs"):
        mount = MountTable("/proc").read().at(point)
        assert mount is not None
        assert (mount.point, mount.fstype) == (point, b"tmpfs")
        assert os.stat(mount.point).st_dev == os.makedev(*map(int, mount.number.split(b":")))


# name, link -> target, path, where it leads
LINKS: list[tuple[str, dict[str, str], bytes, bytes]] = [
    ("no link", {}, b"/var/lib/docker", b"/var/lib/docker"),
    ("the root", {}, b"/", b"/"),
    ("an absolute link means the node's root",
     {"var/lib/kubelet": "/data/kubelet"}, b"/var/lib/kubelet/pods", b"/data/kubelet/pods"),
    ("a relative link", {"var/lib/kubelet": "../../data/kubelet"}, b"/var/lib/kubelet", b"/data/kubelet"),
    ("links one after the other", {"a": "/b", "b": "data"}, b"/a/./kubelet//pods", b"/data/kubelet/pods"),
    ("never above the root", {"a": "../../../../data"}, b"/a", b"/data"),
]  # fmt: skip


@pytest.mark.parametrize(("links", "path", "expected"), [row[1:] for row in LINKS], ids=[row[0] for row in LINKS])
def test_links_are_followed_below_the_nodes_root(
    tmp_path: Path, links: dict[str, str], path: bytes, expected: bytes
) -> None:
    for directory in ("var/lib/docker", "data/kubelet/pods"):
        (tmp_path / directory).mkdir(parents=True)
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    assert resolve_links(str(tmp_path), path) == expected


def test_links_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "dangling").symlink_to("/nowhere")
    with pytest.raises(OSError, match="symbolic links"):
        resolve_links(str(tmp_path), b"/round")
    for missing in (b"/dangling", b"/missing/below"):
        with pytest.raises(FileNotFoundError):
            resolve_links(str(tmp_path), missing)


@pytest.mark.parametrize(
    ("rootfs", "path", "node", "agent"),
    [("/", "/var/lib/kubelet", b"/var/lib/kubelet", b"/var/lib/kubelet"),
     ("/host", "/var/lib/kubelet/", b"/var/lib/kubelet", b"/host/var/lib/kubelet"),
     ("/host/", "/host/var/lib/kubelet", b"/var/lib/kubelet", b"/host/var/lib/kubelet"),
     ("/host", "/hostile", b"/hostile", b"/host/hostile"), ("/", "//mnt//nas/", b"/mnt/nas", b"/mnt/nas")],
)  # fmt: skip
def test_the_nodes_paths_and_the_agents(rootfs: str, path: str, node: bytes, agent: bytes) -> None:
    assert node_path(rootfs, path) == node
    assert host_path(rootfs, node) == agent


def test_another_filesystem_in_a_mounts_place_is_noticed() -> None:
    disk, nas, btrfs = (
        MountPoint(b"8:3", b"/", b"/data", b"ext4", b"/dev/sdb", read_only=False),
        MountPoint(b"0:50", b"/", b"/nas", b"nfs4", b"nas:/export", read_only=False),
        MountPoint(b"0:51", b"/", b"/sub", b"btrfs", b"/dev/sdc", read_only=False),
    )
    for mount, device in ((disk, os.makedev(8, 3)), (nas, os.makedev(0, 50)), (btrfs, os.makedev(0, 99))):
        mount.check_device(device)
    for mount in (disk, nas):
        with pytest.raises(OSError, match="not visible to the agent"):
            mount.check_device(os.makedev(8, 2))
