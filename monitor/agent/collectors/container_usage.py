"""CPU and memory of each running container, from its cgroup (v1 and v2)."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from monitor.agent.collectors import AbsentError
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ContainerUsageFact

_LIMITS_MAX_AGE_SECONDS = 300.0  # limits hardly ever change
_UNLIMITED_BYTES = 1 << 62  # cgroup v1 writes "no limit" as the largest number of whole pages
_MAX_FILE_BYTES = 16384
_MAX_PREFIX_DEPTH = 5

Limits = tuple[float | None, int | None]  # cores, bytes


@dataclass(slots=True)
class _ContainerCgroup:
    """The cgroup of one container, with its limits as last read."""

    pid: int
    cgroup: _CgroupV1 | _CgroupV2
    limits: Limits = (None, None)
    limits_read_at: float = field(default=float("-inf"))
    last_cpu: tuple[float, float] | None = None  # time (monotonic), and CPU seconds used until then

    def cores(self, now: float, cpu: float | None) -> float | None:
        """Cores in use since the last call; None on the first."""
        before, self.last_cpu = self.last_cpu, None if cpu is None else (now, cpu)
        if before is None or cpu is None or now <= before[0] or cpu < before[1]:
            return None
        return (cpu - before[1]) / (now - before[0])


class ContainerUsageCollector:
    """Reads the cgroups of the containers that `containers` returns, and remembers their location."""

    name = "container_usage"

    def __init__(
        self, paths: Paths, containers: Callable[[], tuple[ContainerFact, ...] | None], clock: Clock = time
    ) -> None:
        self._proc = paths.proc
        self._root = os.path.join(paths.sys, "fs/cgroup")
        self._containers = containers
        self._clock = clock
        self._cgroups: dict[str, _ContainerCgroup] = {}

    def collect(self) -> tuple[ContainerUsageFact, ...]:
        """Usage of every running container. Raise AbsentError without cgroups or a list of containers."""
        if not os.path.isdir(self._root):
            raise AbsentError(f"no cgroups at {self._root}")
        containers = self._containers()
        if containers is None:
            raise AbsentError("the containers of this node are unknown")
        cgroups: dict[str, _ContainerCgroup] = {}
        facts = []
        for container in containers:
            # A sandbox only holds namespaces open: its usage is negligible.
            if container.state != "running" or container.pid is None or container.sandbox:
                continue
            cgroup = self._cgroup(container.id, container.pid)
            if cgroup is not None and (fact := self._read(container.id, cgroup)) is not None:
                cgroups[container.id] = cgroup
                facts.append(fact)
        self._cgroups = cgroups  # a cgroup that has vanished is located again if its container returns
        return tuple(facts)

    def _cgroup(self, container_id: str, pid: int) -> _ContainerCgroup | None:
        known = self._cgroups.get(container_id)
        if known is not None and known.pid == pid:
            return known
        cgroup = locate(self._proc, self._root, pid, container_id)
        return None if cgroup is None else _ContainerCgroup(pid, cgroup)

    def _read(self, container_id: str, known: _ContainerCgroup) -> ContainerUsageFact | None:
        cpu, throttled = known.cgroup.cpu()
        memory = known.cgroup.memory()
        if cpu is None and memory is None:
            return None  # it has ended since it was listed
        now = self._clock.monotonic()
        if now - known.limits_read_at >= _LIMITS_MAX_AGE_SECONDS:
            known.limits, known.limits_read_at = known.cgroup.limits(), now
        cpu_limit, memory_limit = known.limits
        return ContainerUsageFact(
            container_id=container_id,
            cpu_seconds_total=cpu,
            cpu_cores=known.cores(now, cpu),
            cpu_limit_cores=cpu_limit,
            throttled_seconds_total=throttled,
            memory_bytes=memory,
            memory_limit_bytes=memory_limit,
        )


class _CgroupV2:
    """A cgroup of the unified hierarchy."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._cpu_stat = f"{directory}/cpu.stat"
        self._memory = (f"{directory}/memory.current", f"{directory}/memory.stat")

    def cpu(self) -> tuple[float | None, float | None]:
        """Seconds used and seconds throttled."""
        stat = _read(self._cpu_stat)
        return _scaled(_value(stat, b"usage_usec "), 1e6), _scaled(_value(stat, b"throttled_usec "), 1e6)

    def memory(self) -> int | None:
        usage, stat = self._memory
        return _working_set(_number(_read(usage)), _value(_read(stat), b"inactive_file "))

    def limits(self) -> Limits:
        quota, _, period = _read(f"{self._directory}/cpu.max").partition(b" ")
        return _ratio(_number(quota), _number(period)), _number(_read(f"{self._directory}/memory.max"))


class _CgroupV1:
    """A cgroup of the legacy hierarchies: one directory per controller, None if the controller is off."""

    def __init__(self, cpu: str | None, cpuacct: str | None, memory: str | None) -> None:
        self._cpu = cpu
        self._cpu_files = (cpuacct and f"{cpuacct}/cpuacct.usage", cpu and f"{cpu}/cpu.stat")
        self._memory = memory
        self._memory_files = (
            memory and f"{memory}/memory.usage_in_bytes",
            memory and f"{memory}/memory.stat",
        )

    def cpu(self) -> tuple[float | None, float | None]:
        """Seconds used and seconds throttled."""
        usage, stat = self._cpu_files
        return _scaled(_number(_read(usage)), 1e9), _scaled(_value(_read(stat), b"throttled_time "), 1e9)

    def memory(self) -> int | None:
        usage, stat = self._memory_files
        # Like the usage, `total_` includes the cgroups below.
        return _working_set(_number(_read(usage)), _value(_read(stat), b"total_inactive_file "))

    def limits(self) -> Limits:
        quota = _number(_read(self._cpu and f"{self._cpu}/cpu.cfs_quota_us"))
        period = _number(_read(self._cpu and f"{self._cpu}/cpu.cfs_period_us"))
        memory = _number(_read(self._memory and f"{self._memory}/memory.limit_in_bytes"))
        return _ratio(quota, period), memory if memory is not None and memory < _UNLIMITED_BYTES else None


def locate(proc: str, root: str, pid: int, container_id: str) -> _CgroupV1 | _CgroupV2 | None:
    """Cgroup, below `root`, of the container with this main process; None if it is gone."""
    by_controller: dict[str, tuple[str, str]] = {}
    for line in _read(f"{proc}/{pid}/cgroup").decode("utf-8", "surrogateescape").split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if container_path := _container_path(path, container_id):
            by_controller.update((controller, (controllers, container_path)) for controller in controllers.split(","))
    v1 = [_v1_directory(root, controller, by_controller) for controller in ("cpu", "cpuacct", "memory")]
    if any(v1):
        return _CgroupV1(*v1)
    if "" not in by_controller:
        return None
    directory = _below(root, by_controller[""][1])
    return None if directory is None else _CgroupV2(directory)


def _container_path(path: str, container_id: str) -> str | None:
    """Cgroup of the container, given that of its main process; None if the process is not of that container.

    The process may have moved further down, as systemd in a container does. Its pid may also have been reused.
    """
    start = path.find(container_id)
    if start < 0:
        return None
    end = path.find("/", start)
    return path if end < 0 else path[:end]


def _v1_directory(root: str, controller: str, by_controller: dict[str, tuple[str, str]]) -> str | None:
    if controller not in by_controller:
        return None
    controllers, path = by_controller[controller]
    # Controllers that share a hierarchy are mounted as `cpu,cpuacct`, usually with a link for each of them.
    for name in (controllers, controller):
        if os.path.isdir(f"{root}/{name}"):
            return _below(f"{root}/{name}", path)
    return None


def _below(root: str, path: str) -> str | None:
    """Directory of a path from /proc/<pid>/cgroup; None if it is not found.

    Inside a cgroup namespace the path is relative to our own cgroup (`/../../kubepods-…`), whose location is unknown.
    The rest of the path names one container, so it is searched in the upper levels of the tree.
    """
    if not path.startswith("/../"):
        return root + path
    while path.startswith("/../"):
        path = path[len("/..") :]
    return next((prefix + path for prefix in _upper_levels(root) if os.path.isdir(prefix + path)), None)


def _upper_levels(root: str) -> Iterator[str]:
    """Directories at and below `root`, breadth first."""
    pending = deque([(root, 0)])
    while pending:
        directory, depth = pending.popleft()
        yield directory
        if depth < _MAX_PREFIX_DEPTH:
            try:
                below = [entry.path for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue  # removed in the meantime
            pending.extend((path, depth + 1) for path in below)


def _read(path: str | None) -> bytes:
    """Content of a cgroup file; empty if it is missing: containers end, controllers may be off."""
    if path is None:
        return b""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _MAX_FILE_BYTES)
        finally:
            os.close(file)
    except OSError:
        return b""


def _number(content: bytes) -> int | None:
    """123 for `123` and a line end; None for an empty file and for `max`."""
    content = content.strip()
    return int(content) if content and content != b"max" else None


def _value(content: bytes, key: bytes) -> int | None:
    """Value of `key` in lines of `key value`; None if it is missing."""
    _, separator, rest = (b"\n" + content).partition(b"\n" + key)
    return int(rest.partition(b"\n")[0]) if separator else None


def _scaled(value: int | None, per_second: float) -> float | None:
    return None if value is None else value / per_second


def _ratio(quota: int | None, period: int | None) -> float | None:
    return quota / period if quota is not None and quota > 0 and period else None


def _working_set(usage: int | None, inactive_file: int | None) -> int | None:
    """Memory that the kernel cannot simply drop, which counts against the limit before the OOM killer acts."""
    return None if usage is None or inactive_file is None else max(usage - inactive_file, 0)
