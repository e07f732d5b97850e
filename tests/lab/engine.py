"""What the lab and its tests ask of a container engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import msgspec

from tests.lab.images import lab_images


class Confinement(msgspec.Struct, frozen=True):
    """What a container runs as and may do."""

    user: str
    read_only_root: bool
    privileged: bool
    mount_points: tuple[str, ...]


class Engine(ABC):
    """A container engine of a running lab. Calls fail with LabError or subprocess errors if it does not respond."""

    # Name of the component, and of the runtime in facts of the agent and ids of containers in the API.
    component: str
    runtime: str
    # Directory of images and containers, and the one in it to which layers are downloaded.
    root: Path
    downloads: Path

    def import_images(self, busybox: str) -> None:
        """Load the two images that pods need; nothing is pulled."""
        self.load(lab_images(busybox))

    @abstractmethod
    def answers(self) -> bool:
        """Whether the engine responds."""

    @abstractmethod
    def agent_settings(self) -> dict[str, str]:
        """Settings of an agent that reads this engine alone."""

    @abstractmethod
    def chart_values(self) -> dict[str, Any]:
        """Values of `agent.host` of the chart for this engine alone."""

    @abstractmethod
    def shell_variables(self) -> dict[str, str]:
        """Variables by which the engine's own command line program finds it."""

    @abstractmethod
    def load(self, archive: bytes | Path) -> None:
        """Load images from an archive as `docker save` writes it."""

    @abstractmethod
    def tag(self, name: str, other: str) -> None:
        """Add a name to an image."""

    @abstractmethod
    def remove_images(self, *names: str) -> None:
        """Remove images, whatever uses them."""

    @abstractmethod
    def images(self) -> set[str]:
        """Names of all images."""

    @abstractmethod
    def pull_error(self, image: str) -> str:
        """The error of pulling an image, empty if that works."""

    @abstractmethod
    def container_pid(self, container: str) -> int:
        """Pid of a container's first process; LabError if the container does not run."""

    @abstractmethod
    def confinement(self, container: str) -> Confinement:
        """What a container runs as and may do."""

    @abstractmethod
    def kill_containers_of(self, pod_uid: str) -> None:
        """Kill the containers of a pod and its sandbox behind the kubelet's back."""

    @abstractmethod
    def logs_of(self, pod_uid: str) -> list[str]:
        """The end of the log of every container of a pod."""

    @abstractmethod
    def remove_containers(self) -> None:
        """Kill and remove every container if the engine still responds."""

    @abstractmethod
    def shim_sockets(self) -> list[Path]:
        """Sockets outside the lab's directory that killed shims leave behind."""
