"""What an agent run by this user could read on this node: processes, kernel log, other users' files, cgroups."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from monitor.base.net import connect_host
from monitor.doctor.checks import driver
from monitor.doctor.checks.driver import gpus_on_bus, read_text
from monitor.doctor.checks.sockets import is_socket
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, ok, problem, warning

# Bits in CapEff, for other users' files, /dev/shm of their containers, and the kernel log.
CAPABILITIES = {2: "DAC_READ_SEARCH", 19: "SYS_PTRACE", 34: "SYSLOG"}
CONTAINER_MARKERS = ("/.dockerenv", "/run/.containerenv")


@dataclass(frozen=True)
class ProcessFacts:
    """`of_host`: /proc shows the processes of the whole machine; `hidden`: but not those of other users."""

    proc: str
    of_host: bool
    hidden: bool
    in_container: bool


@dataclass(frozen=True)
class KernelLogFacts:
    """The kernel log, and why it cannot be read; `denied` if this user lacks the permission."""

    path: str
    why: str | None = None
    denied: bool = False


@dataclass(frozen=True)
class CgroupFacts:
    """The cgroup version of the node: 2, 1, or None if no hierarchy is mounted."""

    version: int | None
    path: str


def judge_processes(facts: ProcessFacts) -> Verdicts:
    """Whether /proc shows the processes that use GPUs."""
    if facts.hidden:
        return (problem("processes.hidden", path=facts.proc),)
    if not facts.of_host:
        verdict = problem if facts.in_container else warning
        return (verdict("processes.own-only", path=facts.proc),)
    return (ok("processes.ok"),)


def judge_kernel_log(facts: KernelLogFacts) -> Verdicts:
    """Whether GPU errors that appear only in the kernel log are seen."""
    if facts.why is None:
        return (ok("kernel-log.ok", path=facts.path),)
    return (warning("kernel-log.denied" if facts.denied else "kernel-log.error", path=facts.path, why=facts.why),)


def judge_capabilities(missing: tuple[str, ...]) -> Verdicts:
    """Required capabilities that this process lacks, named without CAP_."""
    return (warning("capabilities.missing", names=", ".join(missing)) if missing else ok("capabilities.ok"),)


def judge_cgroup(facts: CgroupFacts) -> Verdicts:
    """Whether processes can be assigned to containers."""
    if facts.version is None:
        return (problem("cgroup.none", path=facts.path),)
    return (ok("cgroup.ok", version=facts.version),)


def agent_could_run(context: DoctorContext) -> bool:
    """Whether an agent runs here, or has something to monitor: GPUs, a container runtime or a kubelet."""
    paths = context.config.agent.paths
    devices = ("/dev/nvidiactl", "/dev/dxg", f"{paths.proc}/driver/nvidia/version")
    return (
        bool(gpus_on_bus(paths.sys))
        or os.path.isdir(paths.kubelet)
        or any(is_socket(path) for path in (paths.docker_socket, *paths.cri_sockets))
        or any(os.path.exists(path) for path in devices)
        or context.cached(driver.read).missing is None
        or _agent_listens(context)
    )


def _agent_listens(context: DoctorContext) -> bool:
    listen = context.config.agent.listen
    try:
        socket.create_connection((connect_host(listen.host), listen.port), timeout=1.0).close()
    except OSError:
        return False
    return True


def read_processes(context: DoctorContext) -> ProcessFacts:
    """Look in /proc for a kernel thread and for the init process."""
    proc = context.config.agent.paths.proc
    return ProcessFacts(
        proc=proc,
        of_host=read_text(f"{proc}/2/comm") == "kthreadd",
        hidden=os.geteuid() != 0 and read_text(f"{proc}/1/comm") == "",
        in_container=any(map(os.path.exists, CONTAINER_MARKERS)) or context.in_pod,
    )


def read_kernel_log(context: DoctorContext) -> KernelLogFacts:
    """Read one record of the kernel log, without blocking."""
    path = context.config.agent.paths.kmsg
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.read(file, 16384)
        except (BlockingIOError, BrokenPipeError):  # empty, or the record was overwritten before it was read
            pass
        finally:
            os.close(file)
    except OSError as error:
        return KernelLogFacts(path, error.strerror or str(error), isinstance(error, PermissionError))
    return KernelLogFacts(path)


def read_capabilities(_context: DoctorContext) -> tuple[str, ...]:
    """Required capabilities that this process lacks."""
    lines = dict(line.split(":", 1) for line in read_text("/proc/self/status").splitlines() if ":" in line)
    effective = int(lines.get("CapEff", "0").strip() or "0", 16)
    return tuple(name for bit, name in CAPABILITIES.items() if not effective >> bit & 1)


def read_cgroup(context: DoctorContext) -> CgroupFacts:
    """Look for a mounted cgroup hierarchy."""
    path = os.path.join(context.config.agent.paths.sys, "fs/cgroup")
    if os.path.exists(os.path.join(path, "cgroup.controllers")):
        return CgroupFacts(2, path)
    version_1 = any(os.path.isdir(os.path.join(path, name)) for name in ("memory", "cpu", "devices", "systemd"))
    return CgroupFacts(1 if version_1 else None, path)


CHECKS = (
    Check("node.processes", read_processes, judge_processes, on_node=True),
    Check("node.kernel-log", read_kernel_log, judge_kernel_log, on_node=True),
    Check("node.capabilities", read_capabilities, judge_capabilities, on_node=True),
    Check("node.cgroups", read_cgroup, judge_cgroup, on_node=True),
)
