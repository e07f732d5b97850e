"""Real container engines for tests: a private dockerd and containerd, each in a temporary directory.

They share nothing with the machine's own engines, need no network, and are removed with their containers, shims and
mounts at the end of the session. Requires root and Debian's docker.io, containerd, runc and busybox-static.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import grpc
import pytest

from tests.support import need, wait_until
from tests.support.image_archive import BUSYBOX, Image, archive, busybox_layer, layer
from tests.support.protos import messages

MIB = 1 << 20
# Images of both engines: two that share a base, one that no container uses, and the pod sandbox image.
BASE, ONE, TWO, PAUSE = "local/base:1", "local/one:1", "local/two:1", "local/pause:1"
DRIVER = Path(__file__).with_name("cri_driver.proto")
BLOB_ONE, BLOB_TWO = 1 * MIB, 2 * MIB


def images() -> bytes:
    """Archive of the images above."""
    base = busybox_layer()
    one, two = layer({"one": bytes(BLOB_ONE)}), layer({"two": bytes(BLOB_TWO)})
    return archive((Image(BASE, (base,)), Image(ONE, (base, one)), Image(TWO, (base, two)), Image(PAUSE, (base,))))


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Suspend a process: its socket still accepts connections, like that of a wedged engine."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: _states(pid) <= {"T", "t"}, 5, "every thread of it has stopped")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    """States of all threads of a process."""
    stats = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {stat.rpartition(")")[2].split()[0] for stat in stats}


@dataclass
class Engine:
    """A running engine."""

    base: Path
    argv: list[str]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def socket(self) -> str:
        return str(self.base / "engine.sock")

    @property
    def root(self) -> str:
        return str(self.base / "root")

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self, *, wait: bool = True) -> None:
        """Start the engine and wait until it answers."""
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(self.argv, stdout=log, stderr=log, start_new_session=True)
        if wait:
            self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                tail = (self.base / "log").read_text(errors="replace")[-3000:]
                pytest.fail(f"{self.argv[0]} did not start: {tail}")
            time.sleep(0.05)

    def accepts(self) -> bool:
        """Whether a process listens on the socket, regardless of protocol."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def answers(self) -> bool:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the engine only; its containers keep running."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def clean_up(self) -> None:
        """Kill leftover processes and unmount leftover mounts, identified by the engine's directory."""
        for name in os.listdir("/proc"):
            if name.isdecimal():
                self._kill_ours(int(name))
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith(f"{self.base}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(self.base, ignore_errors=True)

    def _kill_ours(self, pid: int) -> None:
        """Kill a process whose command line names the engine's directory, and no other that gets its id meanwhile."""
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if f"{self.base}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


@dataclass
class DockerEngine(Engine):
    """A dockerd and its client."""

    client: Any = field(init=False)

    def __post_init__(self) -> None:
        self.client = docker.DockerClient(base_url=f"unix://{self.socket}", version="1.41", timeout=60)

    def answers(self) -> bool:
        # The client leaks a socket when the connection is refused, so check first that the engine listens.
        return self.accepts() and bool(self.client.ping())

    def stop(self) -> None:
        self.client.close()
        super().stop()

    def run(self, image: str, *command: str, **options: Any) -> Any:
        """Start a container and return its handle."""
        return self.client.containers.run(
            image, entrypoint=list(command) or None, detach=True, network_mode="none", **options
        )

    def build(self, dockerfile: str, files: dict[str, bytes]) -> None:
        """Build an image with BuildKit, which leaves a build cache.

        The context is part of the request, so no session is needed.
        """
        context = layer({"Dockerfile": dockerfile.encode(), **files})
        api = self.client.api
        api.post(
            f"{api.base_url}/v1.41/build",
            params={"version": "2", "networkmode": "none", "t": "local/built:1"},
            data=context,
            headers={"Content-Type": "application/x-tar"},
        ).raise_for_status()

    def remove_containers(self) -> None:
        for container in self.client.containers.list(all=True):
            container.remove(force=True, v=True)


@dataclass(frozen=True)
class Pod:
    """Sandbox and single container of a started pod."""

    sandbox: str
    container: str


@dataclass
class ContainerdEngine(Engine):
    """A containerd and its CRI calls."""

    messages: Any = field(init=False, default_factory=lambda: messages(DRIVER))
    pods: list[Pod] = field(init=False, default_factory=list)

    def answers(self) -> bool:
        try:
            self._call("Status", self.messages.Empty(), self.messages.Empty)
        except grpc.RpcError:
            return False
        return True

    def _call(self, method: str, request: Any, reply: Any, service: str = "RuntimeService") -> Any:
        with grpc.insecure_channel(f"unix://{self.socket}") as channel:
            call = channel.unary_unary(
                f"/runtime.v1.{service}/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=reply.FromString,
            )
            return call(request, timeout=60)

    def load(self, tar: bytes) -> None:
        self.ctr("images", "import", "-", given=tar)

    def ctr(self, *arguments: str, given: bytes = b"") -> None:
        program = ["ctr", "--address", self.socket, "--namespace", "k8s.io", *arguments]
        subprocess.run(program, input=given, check=True, capture_output=True, timeout=300)

    def pull(self, image: str) -> None:
        """Pull an image the way the kubelet does."""
        new = self.messages
        request = new.PullImageRequest(image=new.ImageSpec(image=image))
        self._call("PullImage", request, new.Id, "ImageService")

    def run_pod(self, name: str, image: str, *command: str) -> Pod:
        """Start a pod with one container in the host network."""
        new = self.messages
        node = new.NamespaceOption(network=new.NODE)
        pod = new.PodSandboxConfig(
            metadata=new.PodSandboxMetadata(name=name, uid=f"uid-of-{name}", namespace="lab"),
            log_directory=str(self.base / "pods" / name),
            linux=new.LinuxPodSandboxConfig(security_context=new.LinuxSandboxSecurityContext(namespace_options=node)),
        )
        sandbox = self._call("RunPodSandbox", new.RunPodSandboxRequest(config=pod), new.Id).id
        container = new.ContainerConfig(
            metadata=new.ContainerMetadata(name="main"),
            image=new.ImageSpec(image=f"docker.io/{image}"),
            command=command,
            log_path="main/0.log",
            linux=new.LinuxContainerConfig(security_context=new.LinuxContainerSecurityContext(namespace_options=node)),
        )
        request = new.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=pod)
        created = self._call("CreateContainer", request, new.Id).id
        self._call("StartContainer", new.Id(id=created), new.Empty)
        self.pods.append(Pod(sandbox, created))
        return self.pods[-1]

    def stop_container(self, container: str) -> None:
        self._call("StopContainer", self.messages.Id(id=container), self.messages.Empty)

    def remove_pods(self) -> None:
        while self.pods:
            sandbox = self.messages.Id(id=self.pods.pop().sandbox)
            self._call("StopPodSandbox", sandbox, self.messages.Empty)
            self._call("RemovePodSandbox", sandbox, self.messages.Empty)


def make_docker(base: Path) -> DockerEngine:
    """A dockerd that is not started yet."""
    need(os.geteuid() == 0 and shutil.which("dockerd") is not None, "root and dockerd (Debian: docker.io)")
    need(BUSYBOX.exists(), f"{BUSYBOX} (Debian: busybox-static)")
    network = ["--iptables=false", "--bridge=none", "--ip-forward=false"]
    argv = ["dockerd", *network, "--data-root", f"{base}/root", "--exec-root", f"{base}/exec"]
    return DockerEngine(base, [*argv, "--pidfile", f"{base}/pid", "--host", f"unix://{base}/engine.sock"])


def make_containerd(base: Path, *, cri: bool = True) -> ContainerdEngine:
    """A containerd that is not started yet, with or without its CRI plug-in."""
    need(os.geteuid() == 0 and shutil.which("containerd") is not None, "root and containerd (Debian: containerd)")
    need(BUSYBOX.exists(), f"{BUSYBOX} (Debian: busybox-static)")
    (base / "config.toml").write_text(
        f"""version = 2
root = "{base}/root"
state = "{base}/state"
disabled_plugins = [{"" if cri else '"io.containerd.grpc.v1.cri"'}]
[grpc]
address = "{base}/engine.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{base}/opt"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "{PAUSE}"
stats_collect_period = 1
"""
    )
    return ContainerdEngine(base, ["containerd", "--config", f"{base}/config.toml"])


@pytest.fixture(scope="session")
def docker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """A running dockerd with the images above and no containers."""
    engine = make_docker(tmp_path_factory.mktemp("dockerd"))
    try:
        engine.start()
        engine.client.images.load(images())
        yield engine
        engine.remove_containers()
    finally:
        engine.stop()
        engine.clean_up()


@pytest.fixture(scope="session")
def containerd_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerdEngine]:
    """A running containerd with the images above and no pods."""
    engine = make_containerd(tmp_path_factory.mktemp("containerd"))
    try:
        engine.start()
        engine.load(images())
        yield engine
        engine.remove_pods()
    finally:
        engine.stop()
        engine.clean_up()
