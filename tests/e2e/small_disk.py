"""The lab's engine on a small disk, and images that fill it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab.lab import Lab
from tests.support.filesystems import ext4_disk
from tests.support.image_archive import Image, archive, busybox_layer, layer

MIB = 1 << 20


@contextmanager
def engine_on_small_disk(lab: Lab, megabytes: int) -> Iterator[Path]:
    """Run the lab's engine, without pods, on a small disk of its own; yields the disk."""
    root = lab.engine.root
    with ExitStack() as undo:
        undo.callback(_start, lab)
        undo.callback(root.with_name(f"{root.name}.img").unlink, missing_ok=True)
        _stop(lab)
        disk = undo.enter_context(ext4_disk(root.parent, root.name, megabytes=megabytes, inodes=16384))
        undo.callback(_stop, lab)
        lab.start_component(lab.engine.component)
        lab.engine.import_images(lab.busybox)
        lab.start_component("kubelet")
        yield disk


def _start(lab: Lab) -> None:
    lab.start_component(lab.engine.component)
    lab.start_component("kubelet")


def _stop(lab: Lab) -> None:
    lab.stop_component("kubelet")
    lab.engine.remove_containers()
    lab.stop_component(lab.engine.component)


def load(lab: Lab, name: str, megabytes: int) -> None:
    """Load an image of this size on top of a shared base. Its archive is small, so loading needs no further space."""
    own = layer({"own": secrets.token_bytes(16) + bytes(megabytes * MIB)})
    lab.engine.load(archive((Image(name, (busybox_layer(), own)),), compressed=True))


def used_share(disk: Path) -> float:
    """Usage ratio of a disk, as shown by df."""
    used, available = used_bytes(disk)
    return used / (used + available)


def used_bytes(disk: Path) -> tuple[int, int]:
    """Used and available bytes of a disk."""
    space = os.statvfs(disk)
    return (space.f_blocks - space.f_bfree) * space.f_frsize, space.f_bavail * space.f_frsize
