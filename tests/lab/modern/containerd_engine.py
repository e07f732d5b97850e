"""The containerd of the lab, through CRI as the kubelet uses it, and through its own program ctr."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import grpc

from monitor.agent.runtime.proto.cri_pb2 import ListPodSandboxRequest, ListPodSandboxResponse
from tests.lab.engine import Confinement, Engine
from tests.lab.errors import LabError
from tests.lab.layout import Layout
from tests.lab.logs import tail
from tests.lab.modern import paths
from tests.support.engines import DRIVER
from tests.support.protos import messages

ANSWER_LIMIT = 60.0
LOAD_LIMIT = 300.0


class ContainerdLabEngine(Engine):
    """A containerd, its CRI service and its namespace of Kubernetes."""

    component = "containerd"
    runtime = "containerd"

    def __init__(self, layout: Layout, ctr: Path) -> None:
        self.socket = paths.containerd_socket(layout)
        self.root = paths.containerd_root(layout)
        self.downloads = self.root / "io.containerd.content.v1.content" / "ingest"
        self._state = paths.containerd_state(layout)
        self._hosts = paths.registry_hosts(layout)
        self._logs = layout.root / "pod-logs"
        self._ctr_program = ctr

    def answers(self) -> bool:
        try:
            self._cri("Status", self._new.Empty(), self._new.Empty, limit=3.0)
        except grpc.RpcError:
            return False
        return True

    def agent_settings(self) -> dict[str, str]:
        return {"AGENT__PATHS__CRI_SOCKETS": f"['{self.socket}']"}

    def chart_values(self) -> dict[str, Any]:
        return {"criSockets": [str(self.socket)]}

    def shell_variables(self) -> dict[str, str]:
        return {"CONTAINERD_ADDRESS": str(self.socket), "CONTAINERD_NAMESPACE": "k8s.io"}

    # Images

    def load(self, archive: bytes | Path) -> None:
        if isinstance(archive, bytes):
            self._ctr("images", "import", "-", given=archive)
        else:
            self._ctr("images", "import", str(archive))

    def tag(self, name: str, other: str) -> None:
        self._ctr("images", "tag", name, other)

    def remove_images(self, *names: str) -> None:
        listed = [line.split()[:3] for line in self._ctr("images", "list").splitlines()[1:]]
        digests = {digest for name, _, digest in listed if name in names}
        # CRI adds names made of digests, which would keep the content.
        self._ctr("images", "remove", "--sync", *(name for name, _, digest in listed if digest in digests))

    def images(self) -> set[str]:
        names = self._ctr("images", "list", "--quiet").split()
        return {name for name in names if "@" not in name and not name.startswith("sha256:")}

    def pull_error(self, image: str) -> str:
        request = self._new.PullImageRequest(image=self._new.ImageSpec(image=image))
        try:
            self._cri("PullImage", request, self._new.Id, "ImageService")
        except grpc.RpcError as error:
            return str(error)
        return ""

    def add_mirror(self, registry: str, *urls: str) -> None:
        """Let pulls from a registry, such as `docker.io`, ask these servers first."""
        directory = self._hosts / registry
        directory.mkdir(exist_ok=True)
        servers = [f'[host."{url}"]\ncapabilities = ["pull", "resolve"]\n' for url in urls]
        (directory / "hosts.toml").write_text("\n".join(servers))

    def remove_mirror(self, registry: str) -> None:
        """Let pulls from a registry ask the registry itself again."""
        directory = self._hosts / registry
        (directory / "hosts.toml").unlink()
        directory.rmdir()

    # Containers

    def container_pid(self, container: str) -> int:
        for line in self._ctr("tasks", "list").splitlines()[1:]:
            task, pid, status = line.split()[:3]
            if task == container and status == "RUNNING":
                return int(pid)
        raise LabError(f"container {container} does not run")

    def confinement(self, container: str) -> Confinement:
        spec = json.loads(self._ctr("containers", "info", "--spec", container))
        return Confinement(
            user=str(spec["process"]["user"]["uid"]),
            read_only_root=spec["root"].get("readonly", False),
            privileged=not spec["linux"].get("maskedPaths"),
            mount_points=tuple(mount["destination"] for mount in spec["mounts"]),
        )

    def kill_containers_of(self, pod_uid: str) -> None:
        of_pod = f'labels."io.kubernetes.pod.uid"=={pod_uid}'
        containers = self._ctr("containers", "list", "--quiet", of_pod).split()
        for container in {*containers} & self._running():
            self._ctr("tasks", "kill", "--signal=SIGKILL", container)

    def _running(self) -> set[str]:
        """Ids of containers that run; others, such as init containers, have ended."""
        tasks = (line.split()[:3] for line in self._ctr("tasks", "list").splitlines()[1:])
        return {container for container, _, status in tasks if status == "RUNNING"}

    def logs_of(self, pod_uid: str) -> list[str]:
        return [tail(log) for log in sorted(self._logs.glob(f"*_{pod_uid}/*/*.log"))]

    def remove_containers(self) -> None:
        if not self.answers():
            return
        found = self._cri("ListPodSandbox", ListPodSandboxRequest(), ListPodSandboxResponse)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._remove_sandbox, [sandbox.id for sandbox in found.items]))

    def _remove_sandbox(self, sandbox: str) -> None:
        try:
            for step in ("StopPodSandbox", "RemovePodSandbox"):
                self._cri(step, self._new.Id(id=sandbox), self._new.Empty)
        except grpc.RpcError:
            return  # stuck: its processes are searched for afterwards anyway

    def shim_sockets(self) -> list[Path]:
        found = self._state.glob("io.containerd.runtime.v2.task/*/*/bootstrap.json")
        return [Path(json.loads(file.read_text())["address"].removeprefix("unix://")) for file in found]

    # Internals

    @cached_property
    def _new(self) -> Any:
        return messages(DRIVER)

    def _cri(
        self, method: str, request: Any, reply: Any, service: str = "RuntimeService", limit: float = ANSWER_LIMIT
    ) -> Any:
        with grpc.insecure_channel(f"unix://{self.socket}") as channel:
            call = channel.unary_unary(
                f"/runtime.v1.{service}/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=reply.FromString,
            )
            return call(request, timeout=limit)

    def _ctr(self, *arguments: str, given: bytes = b"") -> str:
        line = [str(self._ctr_program), f"--address={self.socket}", "--namespace=k8s.io", *arguments]
        done = subprocess.run(line, input=given, capture_output=True, check=False, timeout=LOAD_LIMIT)
        if done.returncode != 0:
            raise LabError(f"`ctr {' '.join(arguments)}`: {done.stderr.decode(errors='replace')[-2000:]}")
        return done.stdout.decode()
