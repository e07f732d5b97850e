"""Thresholds of the kubelet, from its file and its command line; and which processes are not the kubelet."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.kubelet import KubeletCollector
from monitor.agent.settings import Paths
from monitor.config.root import Config
from monitor.facts import EvictionFact, KubeletFact
from tests.support import need, wait_until

POD = "9493223b-0000-4000-8000-000000000001"
HOST = "0::/system.slice/kubelet.service\n"
FILE = "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\nevictionHard:\n  imagefs.available: 20Gi\n"
FROM_FILE = KubeletFact(
    image_gc_high_ratio=0.7,
    image_gc_low_ratio=0.6,
    eviction_hard=(EvictionFact(signal="imagefs.available", available_bytes=20 * 1024**3),),
)


class Node:
    """Directories of a node, below a directory that is not its root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("proc", "rootfs", "kubelet"):
            (root / name).mkdir()

    @property
    def paths(self) -> Paths:
        given = Config().agent_settings().paths
        changed = {name: str(self.root / name) for name in ("proc", "rootfs", "kubelet")}
        return Paths(**{name: changed.get(name, getattr(given, name)) for name in Paths.__struct_fields__})

    def starts(self, pid: int, *arguments: str, comm: str = "kubelet", cgroup: str = HOST) -> None:
        own = self.root / "proc" / str(pid)
        own.mkdir()
        (own / "comm").write_text(f"{comm}\n")
        (own / "cmdline").write_bytes(b"\0".join(part.encode() for part in ("/usr/bin/kubelet", *arguments)) + b"\0")
        (own / "cgroup").write_text(cgroup)

    def writes(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def collect(self) -> KubeletFact:
        return KubeletCollector(self.paths).collect()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_no_kubelet(node: Node) -> None:
    node.starts(1, comm="systemd")
    with pytest.raises(AbsentError, match="no kubelet on this node"):
        node.collect()


def test_a_drop_in_may_be_a_link_of_the_node(node: Node) -> None:
    node.writes("rootfs/opt/gc.conf", FILE)
    (node.root / "rootfs/etc/d").mkdir(parents=True)
    (node.root / "rootfs/etc/d/1.conf").symlink_to("/opt/gc.conf")
    node.starts(7, "--config-dir=/etc/d")
    assert node.collect() == FROM_FILE


def test_more_drop_ins_than_any_node_has_are_not_read(node: Node) -> None:
    for number in range(65):
        node.writes(f"rootfs/etc/d/{number}.conf", FILE)
    node.starts(7, "--config-dir=/etc/d")
    with pytest.raises(ValueError, match="more than 64 drop-in files"):
        node.collect()


def test_drop_ins_that_cannot_be_read_are_an_error(node: Node) -> None:
    node.starts(7, "--config-dir=/etc/d")
    with pytest.raises(FileNotFoundError):
        node.collect()


# name, files, arguments of the process (None: not running), expected fact
TOLD: list[tuple[str, dict[str, str], Sequence[str] | None, KubeletFact]] = [
    ("a file and no process", {"kubelet/config.yaml": FILE}, None, FROM_FILE),
    ("a file that nobody named", {"kubelet/config.yaml": FILE}, ("--v=2",), FROM_FILE),
    ("neither says anything", {}, ("--v=2",), KubeletFact()),
    ("the file that is named", {"rootfs/etc/k": FILE, "kubelet/config.yaml": ""}, ("--config=/etc/k",), FROM_FILE),
    ("the file in its own directory", {"rootfs/data/config.yaml": FILE}, ("--root-dir", "/data"), FROM_FILE),
    ("a directory without one", {"kubelet/config.yaml": FILE}, ("--root-dir", "/data"), KubeletFact()),
    ("drop-in files, the last one wins",
     {"kubelet/config.yaml": FILE, "rootfs/etc/d/10-gc.conf": "imageGCHighThresholdPercent: 80\n",
      "rootfs/etc/d/20-gc.conf": '{"imageGCHighThresholdPercent": 75}',
      "rootfs/etc/d/9.txt": "imageGCHighThresholdPercent: 1\n"},
     ("--config-dir=/etc/d",), msgspec.structs.replace(FROM_FILE, image_gc_high_ratio=0.75)),
    ("drop-in files in directories, merged key by key",
     {"kubelet/config.yaml": FILE, "rootfs/etc/d/a/1.conf": "evictionHard:\n  nodefs.available: 5%\n",
      "rootfs/etc/d/b.conf": "imageGCLowThresholdPercent: 50\n"},
     ("--config-dir", "/etc/d"),
     KubeletFact(image_gc_high_ratio=0.7, image_gc_low_ratio=0.5, eviction_hard=(
         EvictionFact(signal="nodefs.available", available_ratio=0.05), *(FROM_FILE.eviction_hard or ())))),
    ("drop-in files alone", {"rootfs/etc/d/1.conf": FILE}, ("--config-dir=/etc/d",), FROM_FILE),
    ("flags win over drop-in files", {"rootfs/etc/d/1.conf": FILE},
     ("--config-dir=/etc/d", "--image-gc-high-threshold=90"),
     msgspec.structs.replace(FROM_FILE, image_gc_high_ratio=0.9)),
    ("drop-in files that the kubelet is not told of", {"rootfs/etc/kubernetes/kubelet.conf.d/1.conf": FILE}, ("--v=2",),
     KubeletFact()),
    ("flags win", {"kubelet/config.yaml": FILE}, ("--image-gc-high-threshold=90", "--eviction-hard="),
     KubeletFact(image_gc_high_ratio=0.9, image_gc_low_ratio=0.6, eviction_hard=())),
    ("what cannot be, or says nothing", {"kubelet/config.yaml": "imageGCHighThresholdPercent: 900\n"},
     ("--eviction-hard=nodefs.available<0%,imagefs.available<15%,memory.available<1Gi",),
     KubeletFact(eviction_hard=(EvictionFact(signal="imagefs.available", available_ratio=0.15),))),
]  # fmt: skip


@pytest.mark.parametrize(("files", "arguments", "expect"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD])
def test_what_it_was_told(
    node: Node, files: dict[str, str], arguments: Sequence[str] | None, expect: KubeletFact
) -> None:
    for path, text in files.items():
        node.writes(path, text)
    if arguments is not None:
        node.starts(77, *arguments)
    assert node.collect() == expect


def test_a_file_that_is_named_and_not_there_is_a_fault(node: Node) -> None:
    node.writes("kubelet/config.yaml", FILE)
    node.starts(77, "--config=/etc/k.yaml")
    with pytest.raises(FileNotFoundError):
        node.collect()


def test_a_link_is_followed_on_the_node(node: Node) -> None:
    node.writes("rootfs/opt/k/v2.yaml", FILE)
    (node.root / "rootfs/opt/k/config.yaml").symlink_to("/opt/k/v2.yaml")
    node.starts(77, "--config=/opt/k/config.yaml")
    assert node.collect() == FROM_FILE


@pytest.mark.parametrize(
    ("name", "comm", "cgroup"),
    [
        ("in a pod", "kubelet", f"0::/kubepods/burstable/pod{POD}/{'a' * 64}\n"),
        ("in a container", "kubelet", f"0::/docker/{'a' * 64}\n"),
        ("of nearly the same name", "kubelet-proxy", HOST),
    ],
)  # fmt: skip
def test_who_is_not_the_kubelet(node: Node, name: str, comm: str, cgroup: str) -> None:
    node.starts(5, "--image-gc-high-threshold=1", comm=comm, cgroup=cgroup)
    node.starts(77, "--image-gc-high-threshold=75")
    assert node.collect() == KubeletFact(image_gc_high_ratio=0.75), name


def test_nor_is_the_process_of_another_user(node: Node) -> None:
    need(os.geteuid() == 0, "root")
    node.starts(5, "--image-gc-high-threshold=1")
    os.chown(node.root / "proc" / "5", 1001, 1001)
    with pytest.raises(AbsentError):
        node.collect()


def test_a_process_that_is_gone_while_it_is_read(node: Node) -> None:
    (node.root / "proc" / "5").mkdir()
    node.starts(77)
    assert node.collect() == KubeletFact()


def test_a_real_process(node: Node) -> None:
    """A process that the kernel names so: a waiting shell under another name."""
    shell = node.root / "bin" / "kubelet"
    shell.parent.mkdir()
    shutil.copy(os.path.realpath("/bin/sh"), shell)
    command = [str(shell), "-c", "read line", "kubelet", "--image-gc-high-threshold", "75", "--token=s3cret"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        with process.stdin:
            comm = Path(f"/proc/{process.pid}/comm")
            wait_until(lambda: comm.read_text() == "kubelet\n", 30, "it runs")
            (node.root / "proc" / str(process.pid)).symlink_to(f"/proc/{process.pid}")
            assert node.collect() == KubeletFact(image_gc_high_ratio=0.75)
