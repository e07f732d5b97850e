"""The lab's engine on a small disk, and images that fill it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab.engine import engine, import_images, remove_containers
from tests.lab.lab import Lab
from tests.lab.programs import find_programs
from tests.support.filesystems import ext4_disk
from tests.support.image_archive import Image, archive, busybox_layer, layer

MIB = 1 << 20


@contextmanager
def engine_on_small_disk(lab: Lab, megabytes: int) -> Iterator[Path]:
    """Run the lab's engine, without pods, on a small disk of its own; yields the disk."""
    root = lab.docker_socket.parent
    with ExitStack() as undo:
        undo.callback(_start, lab)
        undo.callback((root / "docker.img").unlink, missing_ok=True)
        _stop(lab)
        disk = undo.enter_context(ext4_disk(root, "docker", megabytes=megabytes, inodes=16384))
        undo.callback(_stop, lab)
        lab.start_component("dockerd")
        import_images(lab.docker_socket, find_programs()["busybox"])
        lab.start_component("kubelet")
        yield disk


def _start(lab: Lab) -> None:
    lab.start_component("dockerd")
    lab.start_component("kubelet")


def _stop(lab: Lab) -> None:
    lab.stop_component("kubelet")
    remove_containers(lab.docker_socket)
    lab.stop_component("dockerd")


def load(lab: Lab, name: str, megabytes: int) -> None:
    """Load an image with this many bytes on top of a shared base."""
    own = layer({"own": secrets.token_bytes(megabytes * MIB)})
    with engine(lab.docker_socket) as client:
        client.load_image(archive((Image(name, (busybox_layer(), own)),)))


def tag(lab: Lab, name: str, other: str) -> None:
    """Add a tag to an image."""
    repository, _, version = other.rpartition(":")
    with engine(lab.docker_socket) as client:
        client.tag(name, repository, version)


def pour(lab: Lab, name: str, megabytes: int) -> None:
    """Build an image with one layer directly on the disk: a load would need twice the space."""
    repository, _, version = name.rpartition(":")
    content = layer({"own": secrets.token_bytes(megabytes * MIB)})
    with engine(lab.docker_socket) as client:
        client.import_image_from_data(content, repository=repository, tag=version)


def images(lab: Lab) -> set[str]:
    """Names of all images of the engine."""
    with engine(lab.docker_socket) as client:
        return {name for image in client.images() for name in image["RepoTags"] or ()}


@contextmanager
def container_of(lab: Lab, image: str) -> Iterator[None]:
    """Run a container of an image without a pod."""
    with engine(lab.docker_socket) as client:
        container = client.create_container(image, host_config=client.create_host_config(network_mode="none"))["Id"]
        try:
            client.start(container)
            yield
        finally:
            client.remove_container(container, force=True)


def used_share(disk: Path) -> float:
    """Usage ratio of a disk, as shown by df."""
    used, available = used_bytes(disk)
    return used / (used + available)


def used_bytes(disk: Path) -> tuple[int, int]:
    """Used and available bytes of a disk."""
    space = os.statvfs(disk)
    return (space.f_blocks - space.f_bfree) * space.f_frsize, space.f_bavail * space.f_frsize
