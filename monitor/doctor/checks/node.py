"""What an agent may see of this node: processes, the kernel's log, other people's files, control groups."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, ok, problem, warning


@dataclass(frozen=True)
class ProcessFacts:
    """`of_host` tells whether /proc shows the processes of the whole machine, `hidden` those of other users not."""

    proc: str
    of_host: bool
    hidden: bool
    in_container: bool


@dataclass(frozen=True)
class KernelLogFacts:
    """The kernel's log, and why it cannot be read; `denied` if this user may not."""

    path: str
    why: str | None = None
    denied: bool = False


@dataclass(frozen=True)
class CapabilityFacts:
    """Which of the capabilities that reading takes are missing, by their names without CAP_."""

    missing: tuple[str, ...]


@dataclass(frozen=True)
class CgroupFacts:
    """Which version of control groups the node has: 2, 1, or none that could be found."""

    version: int | None
    path: str


def judge_processes(facts: ProcessFacts) -> Verdicts:
    """Given what /proc shows, return whether the processes on cards can be found in it."""
    if facts.hidden:
        return (problem("processes.hidden", path=facts.proc),)
    if not facts.of_host:
        say = problem if facts.in_container else warning
        return (say("processes.own-only", path=facts.proc),)
    return (ok("processes.ok"),)


def judge_kernel_log(facts: KernelLogFacts) -> Verdicts:
    """Given the log, return whether card errors that only it tells are seen."""
    if facts.why is None:
        return (ok("kernel-log.ok", path=facts.path),)
    return (warning("kernel-log.denied" if facts.denied else "kernel-log.error", path=facts.path, why=facts.why),)


def judge_capabilities(facts: CapabilityFacts) -> Verdicts:
    """Given what is missing, return what an agent run by this user could not read."""
    if not facts.missing:
        return (ok("capabilities.ok"),)
    return (warning("capabilities.missing", names=", ".join(facts.missing)),)


def judge_cgroup(facts: CgroupFacts) -> Verdicts:
    """Given the version, return whether processes can be told apart by container."""
    if facts.version is None:
        return (problem("cgroup.none", path=facts.path),)
    return (ok("cgroup.ok", version=facts.version),)
