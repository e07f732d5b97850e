"""The node, as an agent run by this user would see it."""

from __future__ import annotations

import glob
import os
import socket
import stat

from monitor.base.net import connect_host
from monitor.config.agent import PathsConfig
from monitor.doctor.checks.node import CapabilityFacts, CgroupFacts, KernelLogFacts, ProcessFacts
from monitor.doctor.checks.nvml import NvmlFacts
from monitor.doctor.checks.sockets import KubeletFacts, RuntimeFacts, SocketLook
from monitor.doctor.context import Visit

NVIDIA = "0x10de"
DISPLAYS = ("0x0300", "0x0302")  # VGA and 3D controllers, without what follows
SOCKET_SECONDS = 2.0
DAC_READ_SEARCH, SYS_PTRACE, SYSLOG = 2, 19, 34
# What reading takes: files of other users, what is in their containers' /dev/shm, the kernel's log.
NEEDED = {DAC_READ_SEARCH: "DAC_READ_SEARCH", SYS_PTRACE: "SYS_PTRACE", SYSLOG: "SYSLOG"}
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
KERNEL_THREADS = "kthreadd"


def agent_could_run(visit: Visit) -> bool:
    """Return whether an agent runs here, or there is something for one: cards, a runtime, a kubelet."""
    paths = visit.config.agent.paths
    if _on_bus(paths.sys) or os.path.isdir(paths.kubelet):
        return True
    if any(_is_socket(path) for path in (paths.docker_socket, *paths.cri_sockets)):
        return True
    if any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg", f"{paths.proc}/driver/nvidia/version")):
        return True
    return _loads_driver() or _agent_listens(visit)


def _agent_listens(visit: Visit) -> bool:
    listen = visit.config.agent.listen
    try:
        socket.create_connection((connect_host(listen.host), listen.port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _loads_driver() -> bool:
    from monitor.agent.gpu.nvml import DriverMissingError, GpuDriverError, NvmlSession

    session = NvmlSession()
    try:
        with session.reading():
            return True
    except DriverMissingError:
        return False
    except GpuDriverError:
        return True
    finally:
        session.close()


def nvml(visit: Visit) -> NvmlFacts:
    """Open the driver, and count the cards."""
    from monitor.agent.gpu.nvml import (  # here: the daemon alone does without
        DriverMissingError,
        GpuDriverError,
        NvmlSession,
    )

    on_bus = _on_bus(visit.config.agent.paths.sys)
    session = NvmlSession()
    try:
        with session.reading():
            unreadable = session.unreadable.items()
            return NvmlFacts(
                driver=session.driver_version,
                cards=len(session.gpus),
                refused=tuple(index for index, card in unreadable if not card.lost),
                lost=tuple(index for index, card in unreadable if card.lost),
                on_bus=on_bus,
            )
    except DriverMissingError as error:
        return NvmlFacts(missing=str(error), on_bus=on_bus)
    except GpuDriverError as error:
        return NvmlFacts(broken=str(error), on_bus=on_bus)
    finally:
        session.close()


def _on_bus(sys: str) -> int | None:
    """Return how many NVIDIA cards are on the PCI bus; None if the bus cannot be seen."""
    devices = glob.glob(f"{glob.escape(sys)}/bus/pci/devices/*")
    if not devices:
        return None
    return sum(_read(f"{each}/vendor") == NVIDIA and _read(f"{each}/class").startswith(DISPLAYS) for each in devices)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def runtimes(visit: Visit) -> RuntimeFacts:
    """Connect to each runtime's socket."""
    paths = visit.config.agent.paths
    return RuntimeFacts(tuple(_dial(path) for path in (paths.docker_socket, *paths.cri_sockets)))


def _dial(path: str) -> SocketLook:
    from monitor.agent.runtime import EngineError, NotServedError
    from monitor.agent.runtime.dial import dial

    try:
        dial(path, SOCKET_SECONDS).close()
    except NotServedError:
        return SocketLook(path, "absent")
    except EngineError as error:
        denied = isinstance(error.__cause__, PermissionError)
        return SocketLook(path, "denied" if denied else "dead", str(error).removeprefix(f"{path}: "))
    return SocketLook(path, "ok")


def kubelet(visit: Visit) -> KubeletFacts:
    """Ask the kubelet which devices are in use."""
    root = visit.config.agent.paths.kubelet
    path = os.path.join(root, "pod-resources/kubelet.sock")
    has_checkpoint = os.path.exists(os.path.join(root, "device-plugins/kubelet_internal_checkpoint"))
    if not _is_socket(path):
        return KubeletFacts(path, present=os.path.isdir(root), has_checkpoint=has_checkpoint)
    from monitor.agent.kubelet.pod_resources import PodResourcesError, list_allocations  # grpc: 16 MiB

    devices, why = None, ""
    try:
        devices = len(list_allocations(path, SOCKET_SECONDS))
    except PodResourcesError as error:
        why = str(error)
    return KubeletFacts(path, True, True, has_checkpoint, devices, why)


def processes(visit: Visit) -> ProcessFacts:
    """Look whether the processes of the whole machine are in /proc."""
    paths: PathsConfig = visit.config.agent.paths
    return ProcessFacts(
        proc=paths.proc,
        of_host=_read(f"{paths.proc}/2/comm") == KERNEL_THREADS,
        hidden=os.geteuid() != 0 and _read(f"{paths.proc}/1/comm") == "",
        in_container=any(map(os.path.exists, CONTAINER_MARKS)) or "KUBERNETES_SERVICE_HOST" in visit.environ,
    )


def kernel_log(visit: Visit) -> KernelLogFacts:
    """Read one record of the kernel's log, without waiting for one."""
    path = visit.config.agent.paths.kmsg
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.read(file, 16384)
        except (BlockingIOError, BrokenPipeError):  # it is empty, or has moved on while we looked
            return KernelLogFacts(path)
        finally:
            os.close(file)
    except OSError as error:
        return KernelLogFacts(path, error.strerror or str(error), isinstance(error, PermissionError))
    return KernelLogFacts(path)


def capabilities(_visit: Visit) -> CapabilityFacts:
    """Read which capabilities this process has."""
    lines = dict(line.split(":", 1) for line in _read("/proc/self/status").splitlines() if ":" in line)
    effective = int(lines.get("CapEff", "0").strip() or "0", 16)
    return CapabilityFacts(tuple(name for bit, name in NEEDED.items() if not effective >> bit & 1))


def cgroup(visit: Visit) -> CgroupFacts:
    """Look which version of control groups is mounted."""
    path = os.path.join(visit.config.agent.paths.sys, "fs/cgroup")
    if os.path.exists(os.path.join(path, "cgroup.controllers")):
        return CgroupFacts(2, path)
    version_1 = any(os.path.isdir(os.path.join(path, name)) for name in ("memory", "cpu", "devices", "systemd"))
    return CgroupFacts(1 if version_1 else None, path)
