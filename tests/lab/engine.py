"""The lab's Docker engine: images, pushes and containers."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import docker.errors

from tests.lab.components import PAUSE_IMAGE
from tests.lab.errors import LabError
from tests.lab.probes import UnixConnection, answers

IMAGE = "local/bb:1"
# PID 1 without a handler ignores SIGTERM, and the kubelet would wait 10 s per sandbox.
PAUSE = """ENTRYPOINT ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]"""
ANSWER_LIMIT = 30


@contextmanager
def engine(socket: Path) -> Iterator[Any]:
    """Client of the engine at this socket; docker.errors.DockerException if it does not respond."""
    client = docker.APIClient(base_url=f"unix://{socket}", version="1.41", timeout=ANSWER_LIMIT)
    try:
        yield client
    finally:
        client.close()


def import_images(socket: Path, busybox: str) -> None:
    """Build the two images that pods need; nothing is pulled."""
    content = root_file_system(busybox)
    with engine(socket) as client:
        for image, changes in ((IMAGE, []), (PAUSE_IMAGE, [PAUSE])):
            name, _, tag = image.rpartition(":")
            client.import_image_from_data(content, repository=name, tag=tag, changes=changes)


def root_file_system(busybox: str) -> bytes:
    """Tar archive of a static busybox under the names of all its applets."""
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=60)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in ("bin", "etc", "root", "tmp"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o777 if name == "tmp" else 0o755
            tar.addfile(directory)
        tar.add(busybox, "bin/busybox", filter=_owned_by_root)
        for applet in sorted({*listing.stdout.split()} - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return archive.getvalue()


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.type, member.mode = tarfile.REGTYPE, 0o755
    return member


def push(socket: Path, registry: str, name: str) -> str:
    """Push the lab image under another name, untag it locally, and return the full name with the registry.

    A pod with the image `<registry>/team/train:1` then has to pull it. LabError if the push fails.
    """
    repository, _, tag = name.partition(":")
    target, tag = f"{registry}/{repository}", tag or "latest"
    with engine(socket) as client:
        client.tag(IMAGE, target, tag)
        for line in client.push(target, tag, stream=True, decode=True):
            if "error" in line:
                raise LabError(f"cannot push {target}:{tag}: {line['error']}")
        client.remove_image(f"{target}:{tag}")
    return f"{target}:{tag}"


def container_pid(socket: Path, container_id: str) -> int:
    """Pid of a container's first process; LabError if the container does not run."""
    with engine(socket) as client:
        state = client.inspect_container(container_id)["State"]
    if not state["Running"]:
        raise LabError(f"container {container_id} is {state['Status']}")
    return int(state["Pid"])


def remove_containers(socket: Path) -> None:
    """Kill and remove every container if the engine still responds."""
    if not answers(UnixConnection(socket), "/_ping"):
        return
    try:
        with engine(socket) as client:
            found = [container["Id"] for container in client.containers(all=True)]
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda container: _remove(client, container), found))
    except (docker.errors.DockerException, OSError):
        return  # inconsistent engine state: its processes are killed directly


def _remove(client: Any, container: str) -> None:
    try:
        client.remove_container(container, force=True, v=True)
    except docker.errors.APIError:
        return  # already being removed, or stuck: its processes are searched for afterwards anyway
