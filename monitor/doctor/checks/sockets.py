"""The sockets of this node: container runtimes and the kubelet."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, joined, not_checked, ok, problem, warning

SOCKET_SECONDS = 2.0


@dataclass(frozen=True)
class RuntimeSocket:
    """The socket of a container runtime. `denied`: no permission; `dead`: no listener or no answer."""

    path: str
    state: Literal["ok", "absent", "denied", "dead"]
    why: str = ""


@dataclass(frozen=True)
class KubeletFacts:
    """The kubelet of this node. `devices` is the number of devices in use; None, with `why`, if it does not answer."""

    socket: str
    present: bool = False
    has_socket: bool = False
    has_checkpoint: bool = False
    devices: int | None = None
    why: str = ""


def judge_runtimes(sockets: tuple[RuntimeSocket, ...]) -> Verdicts:
    """Sockets that cannot be used."""
    present = [socket for socket in sockets if socket.state != "absent"]
    if not present:
        paths = joined([socket.path for socket in sockets])
        return (warning("runtimes.none", paths=paths),) if paths else (not_checked("runtimes.not-configured"),)
    return tuple(
        problem(f"runtimes.{socket.state}", path=socket.path, why=socket.why)
        for socket in present
        if socket.state != "ok"
    ) or (ok("runtimes.ok", paths=joined([socket.path for socket in present])),)


def judge_kubelet(facts: KubeletFacts) -> Verdicts:
    """Whether the kubelet reports which pod has which GPU."""
    if not facts.present:
        return (not_checked("kubelet.none"),)
    if facts.devices is not None:
        return (ok("kubelet.ok", count=facts.devices),)
    if facts.has_socket:
        return (problem("kubelet.silent", socket=facts.socket, why=facts.why),)
    if facts.has_checkpoint:
        return (warning("kubelet.checkpoint", socket=facts.socket),)
    return (problem("kubelet.no-socket", socket=facts.socket),)


def read_runtimes(context: DoctorContext) -> tuple[RuntimeSocket, ...]:
    """Connect to the socket of each configured runtime."""
    paths = context.config.agent.paths
    return tuple(_connect(path) for path in (paths.docker_socket, *paths.cri_sockets))


def _connect(path: str) -> RuntimeSocket:
    from monitor.agent.runtime import EngineError, NotServedError
    from monitor.agent.runtime.dial import dial

    try:
        dial(path, SOCKET_SECONDS).close()
    except NotServedError:
        return RuntimeSocket(path, "absent")
    except EngineError as error:
        denied = isinstance(error.__cause__, PermissionError)
        return RuntimeSocket(path, "denied" if denied else "dead", str(error).removeprefix(f"{path}: "))
    return RuntimeSocket(path, "ok")


def read_kubelet(context: DoctorContext) -> KubeletFacts:
    """Ask the kubelet which devices are in use."""
    root = context.config.agent.paths.kubelet
    path = os.path.join(root, "pod-resources/kubelet.sock")
    has_checkpoint = os.path.exists(os.path.join(root, "device-plugins/kubelet_internal_checkpoint"))
    if not is_socket(path):
        return KubeletFacts(path, present=os.path.isdir(root), has_checkpoint=has_checkpoint)
    from monitor.agent.kubelet.pod_resources import PodResourcesClient, PodResourcesError

    devices, why = None, ""
    try:
        with closing(PodResourcesClient(path)) as kubelet:
            devices = len(kubelet.allocations(SOCKET_SECONDS))
    except PodResourcesError as error:
        why = str(error)
    return KubeletFacts(path, True, True, has_checkpoint, devices, why)


def is_socket(path: str) -> bool:
    """Whether `path` is a Unix socket."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


CHECKS = (
    Check("node.runtimes", read_runtimes, judge_runtimes, on_node=True),
    Check("node.kubelet", read_kubelet, judge_kubelet, on_node=True),
)
