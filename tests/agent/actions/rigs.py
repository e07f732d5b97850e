"""Two real engines behind one interface, each on its own small disk, so that `df` is exact."""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import docker.errors
import grpc

from monitor.agent.actions.images import ImageActions
from monitor.agent.actions.runtime_images import HoldJournal
from monitor.agent.journal import ActionJournal
from monitor.agent.runtime import Runtimes
from monitor.facts import ImageCacheFact, ImageFact
from tests.support import wait_until
from tests.support.engines import ContainerdEngine, DockerEngine, make_containerd, make_docker
from tests.support.filesystems import ext4_disk
from tests.support.image_archive import Image, archive, tagged

SLEEP = ("/bin/sleep", "100000")
KINDS = ("docker", "containerd")


class NoImageError(Exception):
    """The engine has no image of this name; nothing is pulled to create a container."""


@dataclass
class Rig(ABC):
    """An engine and its disk."""

    disk: Path
    journal: Path
    runtimes: Runtimes = field(init=False)

    name = ""

    def load(self, *images: Image) -> None:
        self.import_archive(archive(images))

    def facts(self) -> dict[str, ImageFact]:
        """All images by each of their names, in short form."""
        (runtime,) = self.runtimes.present()
        images = runtime.images().images
        return {name.removeprefix("docker.io/"): image for image in images for name in image.names}

    def actions(self, *, young: frozenset[str] = frozenset(), settle: float = 0.1) -> ImageActions:
        """Actions of an agent that saw all images long ago, except the young ones."""
        (runtime,) = self.runtimes.present()

        def known_images() -> tuple[ImageCacheFact, ...]:
            cache = runtime.images()
            images = [
                ImageFact(id=image.id, first_seen_at=2e9 if image.id in young else 1.0, last_used_at=None)
                for image in cache.images
            ]
            return (ImageCacheFact(runtime=cache.runtime, images=tuple(images)),)

        holds = HoldJournal(ActionJournal(str(self.journal)))
        return ImageActions(self.runtimes, known_images, holds, settle=settle)

    def used_bytes(self) -> int:
        os.sync()
        status = os.statvfs(self.disk)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    @abstractmethod
    def publish(self, image: str) -> None:
        """Push an image to the registry in its name, so that the engine knows its digest there."""

    @abstractmethod
    def import_archive(self, tar: bytes) -> None: ...

    @abstractmethod
    def create(self, image: str) -> str:
        """Create a container and return its id. Raise NoImageError."""

    @abstractmethod
    def start(self, container: str) -> None: ...

    @abstractmethod
    def stop(self, container: str) -> None: ...

    @abstractmethod
    def discard(self, container: str) -> None:
        """Remove a container, running or not."""

    @abstractmethod
    def tag(self, image: str, name: str) -> None: ...


@dataclass
class DockerRig(Rig):
    engine: DockerEngine

    name = "docker"

    def __post_init__(self) -> None:
        self.runtimes = Runtimes(self.engine.socket, ())

    def import_archive(self, tar: bytes) -> None:
        self.engine.client.images.load(tar)

    def publish(self, image: str) -> None:
        reply = self.engine.client.images.push(image)
        assert "error" not in reply, reply

    def create(self, image: str) -> str:
        try:
            container = self.engine.client.containers.create(image, entrypoint=list(SLEEP), network_mode="none")
        except docker.errors.NotFound as error:
            raise NoImageError(image) from error
        except docker.errors.APIError as error:  # the image was removed while its container was created
            if "no such image" in str(error).lower() or "does not exist" in str(error).lower():
                raise NoImageError(image) from error
            raise
        return cast("str", container.id)

    def start(self, container: str) -> None:
        self.engine.client.api.start(container)

    def stop(self, container: str) -> None:
        self.engine.client.api.kill(container)
        self.engine.client.api.wait(container)

    def discard(self, container: str) -> None:
        self.engine.client.api.remove_container(container, force=True)

    def tag(self, image: str, name: str) -> None:
        self.engine.client.images.get(image).tag(name)


@dataclass
class ContainerdRig(Rig):
    engine: ContainerdEngine
    sandbox: Any = field(init=False)

    name = "containerd"

    def __post_init__(self) -> None:
        self.runtimes = Runtimes("/nonexistent", (self.engine.socket,))

    def open_sandbox(self) -> None:
        """Start a pod for the containers, with one container, so that it does not count as starting."""
        new = self.engine.messages
        node = new.NamespaceOption(network=new.NODE)
        self.sandbox = new.PodSandboxConfig(
            metadata=new.PodSandboxMetadata(name="rig", uid="uid-of-rig", namespace="lab"),
            log_directory=str(self.engine.base / "pods"),
            linux=new.LinuxPodSandboxConfig(security_context=new.LinuxSandboxSecurityContext(namespace_options=node)),
        )
        self.sandbox_id = self.engine._call("RunPodSandbox", new.RunPodSandboxRequest(config=self.sandbox), new.Id).id
        self.create("local/base:1")

    def close_sandbox(self) -> None:
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            self.engine._call(method, self.engine.messages.Id(id=self.sandbox_id), self.engine.messages.Empty)

    def import_archive(self, tar: bytes) -> None:
        """Import images and wait until CRI, which learns of them by events, lists them."""
        self.engine.load(tar)
        names = set(tagged(tar))
        wait_until(lambda: names <= self.facts().keys(), 30, "the images are listed")

    def publish(self, image: str) -> None:
        self.engine.ctr("images", "push", "--plain-http", image)
        self.engine.pull(image)

    def create(self, image: str) -> str:
        new = self.engine.messages
        node = new.NamespaceOption(network=new.NODE)
        container = new.ContainerConfig(
            metadata=new.ContainerMetadata(name=f"c-{uuid.uuid4().hex[:8]}"),
            image=new.ImageSpec(image=f"docker.io/{image}"),
            command=SLEEP,
            log_path="0.log",
            linux=new.LinuxContainerConfig(security_context=new.LinuxContainerSecurityContext(namespace_options=node)),
        )
        request = new.CreateContainerRequest(
            pod_sandbox_id=self.sandbox_id, config=container, sandbox_config=self.sandbox
        )
        try:
            return cast("str", self.engine._call("CreateContainer", request, new.Id).id)
        except grpc.RpcError as error:
            if "not found" in str(error.details()).lower():
                raise NoImageError(image) from error
            raise

    def start(self, container: str) -> None:
        self.engine._call("StartContainer", self.engine.messages.Id(id=container), self.engine.messages.Empty)

    def stop(self, container: str) -> None:
        self.engine.stop_container(container)

    def discard(self, container: str) -> None:
        self.engine._call("RemoveContainer", self.engine.messages.Id(id=container), self.engine.messages.Empty)

    def tag(self, image: str, name: str) -> None:
        self.engine.ctr("images", "tag", f"docker.io/{image}", f"docker.io/{name}")


@contextlib.contextmanager
def rig(kind: str, directory: Path, first: bytes) -> Iterator[Rig]:
    """An engine with the images of an archive, which must include local/base:1 and local/pause:1."""
    with ext4_disk(directory, megabytes=768, inodes=32768) as disk:
        base = disk / "e"
        base.mkdir()
        engine = make_docker(base) if kind == "docker" else make_containerd(base)
        try:
            engine.start()
            if isinstance(engine, DockerEngine):
                started: Rig = DockerRig(disk, directory / "journal", engine)
                started.import_archive(first)
                yield started
                engine.remove_containers()
            else:
                started = ContainerdRig(disk, directory / "journal", engine)
                started.import_archive(first)
                started.open_sandbox()
                yield started
                started.close_sandbox()
        finally:
            engine.stop()
            engine.clean_up()
