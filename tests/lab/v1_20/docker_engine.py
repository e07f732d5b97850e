"""The Docker engine of the lab."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import docker.errors

from tests.lab.engine import Confinement, Engine
from tests.lab.errors import LabError
from tests.lab.http_probes import UnixConnection, answers
from tests.lab.layout import Layout
from tests.lab.v1_20 import paths

ANSWER_LIMIT = 30
LOG_LINE_COUNT = 20


class DockerLabEngine(Engine):
    """A dockerd and its API."""

    component = "dockerd"
    runtime = "docker"

    def __init__(self, layout: Layout) -> None:
        self.socket = paths.docker_socket(layout)
        self.root = paths.docker_root(layout)
        self.downloads = self.root / "tmp"
        self._exec_root = paths.docker_exec(layout)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Client of the engine; docker.errors.DockerException if it does not respond."""
        client = docker.APIClient(base_url=f"unix://{self.socket}", version="1.41", timeout=ANSWER_LIMIT)
        try:
            yield client
        finally:
            client.close()

    def answers(self) -> bool:
        return answers(UnixConnection(self.socket), "/_ping")

    def agent_settings(self) -> dict[str, str]:
        return {"AGENT__PATHS__DOCKER_SOCKET": str(self.socket)}

    def chart_values(self) -> dict[str, Any]:
        return {"dockerSocket": str(self.socket), "criSockets": []}

    def shell_variables(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    def load(self, archive: bytes | Path) -> None:
        with self.client() as client:
            if isinstance(archive, bytes):
                client.load_image(archive)
            else:
                with archive.open("rb") as content:
                    client.load_image(content)

    def tag(self, name: str, other: str) -> None:
        repository, _, version = other.rpartition(":")
        with self.client() as client:
            client.tag(name, repository, version)

    def remove_images(self, *names: str) -> None:
        with self.client() as client:
            for name in names:
                client.remove_image(name, force=True)

    def images(self) -> set[str]:
        with self.client() as client:
            return {name for image in client.images() for name in image["RepoTags"] or ()}

    def pull_error(self, image: str) -> str:
        repository, _, tag = image.rpartition(":")
        with self.client() as client:
            try:
                client.pull(repository, tag)
            except docker.errors.APIError as error:
                return str(error)
        return ""

    def container_pid(self, container: str) -> int:
        with self.client() as client:
            state = client.inspect_container(container)["State"]
        if not state["Running"]:
            raise LabError(f"container {container} is {state['Status']}")
        return int(state["Pid"])

    def confinement(self, container: str) -> Confinement:
        with self.client() as client:
            found = client.inspect_container(container)
        return Confinement(
            user=found["Config"]["User"].split(":")[0],
            read_only_root=found["HostConfig"]["ReadonlyRootfs"],
            privileged=found["HostConfig"]["Privileged"],
            mount_points=tuple(mount["Destination"] for mount in found["Mounts"]),
        )

    def kill_containers_of(self, pod_uid: str) -> None:
        with self.client() as client:
            for found in client.containers(filters=_of_pod(pod_uid)):
                client.kill(found["Id"])

    def logs_of(self, pod_uid: str) -> list[str]:
        with self.client() as client:
            found = client.containers(all=True, filters=_of_pod(pod_uid))
            return [client.logs(each["Id"], tail=LOG_LINE_COUNT).decode() for each in found]

    def remove_containers(self) -> None:
        if not self.answers():
            return
        try:
            with self.client() as client, ThreadPoolExecutor(8) as pool:
                found = [container["Id"] for container in client.containers(all=True)]
                list(pool.map(lambda container: _remove(client, container), found))
        except (docker.errors.DockerException, OSError):
            return  # inconsistent engine state: its processes are killed directly

    def shim_sockets(self) -> list[Path]:
        found = self._exec_root.glob("containerd/daemon/io.containerd.runtime.*/*/*/address")
        return [Path(address.read_text().strip().removeprefix("unix://")) for address in found]


def _of_pod(uid: str) -> dict[str, str]:
    return {"label": f"io.kubernetes.pod.uid={uid}"}


def _remove(client: Any, container: str) -> None:
    try:
        client.remove_container(container, force=True, v=True)
    except docker.errors.APIError:
        return  # already being removed, or stuck: its processes are searched for afterwards anyway
