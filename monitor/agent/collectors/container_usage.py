"""CPU and memory of each running container, out of its cgroup (v1 and v2)."""

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

_LIMITS_AGE = 300.0  # limits hardly ever change, and then by hand
_UNLIMITED = 1 << 62  # cgroup v1 writes "no limit" as the largest number of whole pages
_FILE_SIZE = 16384
_PREFIX_DEPTH = 5

Limits = tuple[float | None, int | None]  # cores, bytes


@dataclass(slots=True)
class _Place:
    """Where one container's figures are, and its limits as last read."""

    pid: int
    cgroup: _V1 | _V2
    limits: Limits = (None, None)
    limits_read_at: float = field(default=float("-inf"))
    last_cpu: tuple[float, float] | None = None  # when (monotonic), and seconds used by then

    def cores(self, now: float, cpu: float | None) -> float | None:
        """Return how many cores were in use since this was last asked, or None the first time."""
        before, self.last_cpu = self.last_cpu, None if cpu is None else (now, cpu)
        if before is None or cpu is None or now <= before[0] or cpu < before[1]:
            return None
        return (cpu - before[1]) / (now - before[0])


class ContainerUsageCollector:
    """Reads the cgroups of the containers that `containers` returns. Remembers where they are."""

    name = "container_usage"

    def __init__(
        self, paths: Paths, containers: Callable[[], tuple[ContainerFact, ...] | None], clock: Clock = time
    ) -> None:
        self._proc = paths.proc
        self._root = os.path.join(paths.sys, "fs/cgroup")
        self._containers = containers
        self._clock = clock
        self._places: dict[str, _Place] = {}

    def collect(self) -> tuple[ContainerUsageFact, ...]:
        """Return the usage of every running container. Raise AbsentError while containers or cgroups are not known."""
        if not os.path.isdir(self._root):
            raise AbsentError(f"no cgroups at {self._root}")
        containers = self._containers()
        if containers is None:
            raise AbsentError("the containers of this node are not known")
        places: dict[str, _Place] = {}
        facts = []
        for container in containers:
            # A sandbox only holds namespaces open: it uses nothing worth a fact.
            if container.state != "running" or container.pid is None or container.sandbox:
                continue
            place = self._place(container.id, container.pid)
            if place is not None and (fact := self._read(container.id, place)) is not None:
                places[container.id] = place
                facts.append(fact)
        self._places = places  # those that have vanished are forgotten, and looked for anew should they come back
        return tuple(facts)

    def _place(self, container_id: str, pid: int) -> _Place | None:
        known = self._places.get(container_id)
        if known is not None and known.pid == pid:
            return known
        cgroup = locate(self._proc, self._root, pid, container_id)
        return None if cgroup is None else _Place(pid, cgroup)

    def _read(self, container_id: str, place: _Place) -> ContainerUsageFact | None:
        cpu, throttled = place.cgroup.cpu()
        memory = place.cgroup.memory()
        if cpu is None and memory is None:
            return None  # it has ended since it was listed
        now = self._clock.monotonic()
        if now - place.limits_read_at >= _LIMITS_AGE:
            place.limits, place.limits_read_at = place.cgroup.limits(), now
        cpu_limit, memory_limit = place.limits
        return ContainerUsageFact(
            container_id=container_id,
            cpu_seconds_total=cpu,
            cpu_cores=place.cores(now, cpu),
            cpu_limit_cores=cpu_limit,
            throttled_seconds_total=throttled,
            memory_bytes=memory,
            memory_limit_bytes=memory_limit,
        )


class _V2:
    """A cgroup of the unified hierarchy."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._cpu_stat = f"{directory}/cpu.stat"
        self._memory = (f"{directory}/memory.current", f"{directory}/memory.stat")

    def cpu(self) -> tuple[float | None, float | None]:
        """Return seconds used and seconds throttled."""
        stat = _read(self._cpu_stat)
        return _scaled(_value(stat, b"usage_usec "), 1e6), _scaled(_value(stat, b"throttled_usec "), 1e6)

    def memory(self) -> int | None:
        usage, stat = self._memory
        return _working_set(_number(_read(usage)), _value(_read(stat), b"inactive_file "))

    def limits(self) -> Limits:
        quota, _, period = _read(f"{self._directory}/cpu.max").partition(b" ")
        return _ratio(_number(quota), _number(period)), _number(_read(f"{self._directory}/memory.max"))


class _V1:
    """A cgroup of the older kind: one directory for each controller, None where it is not used."""

    def __init__(self, cpu: str | None, cpuacct: str | None, memory: str | None) -> None:
        self._cpu = cpu
        self._cpu_files = (cpuacct and f"{cpuacct}/cpuacct.usage", cpu and f"{cpu}/cpu.stat")
        self._memory = memory
        self._memory_files = (
            memory and f"{memory}/memory.usage_in_bytes",
            memory and f"{memory}/memory.stat",
        )

    def cpu(self) -> tuple[float | None, float | None]:
        """Return seconds used and seconds throttled."""
        usage, stat = self._cpu_files
        return _scaled(_number(_read(usage)), 1e9), _scaled(_value(_read(stat), b"throttled_time "), 1e9)

    def memory(self) -> int | None:
        usage, stat = self._memory_files
        # `total_` counts what is below this cgroup too, as the usage does.
        return _working_set(_number(_read(usage)), _value(_read(stat), b"total_inactive_file "))

    def limits(self) -> Limits:
        quota = _number(_read(self._cpu and f"{self._cpu}/cpu.cfs_quota_us"))
        period = _number(_read(self._cpu and f"{self._cpu}/cpu.cfs_period_us"))
        memory = _number(_read(self._memory and f"{self._memory}/memory.limit_in_bytes"))
        return _ratio(quota, period), memory if memory is not None and memory < _UNLIMITED else None


def locate(proc: str, root: str, pid: int, container_id: str) -> _V1 | _V2 | None:
    """Given a container and its main process, return its cgroup below `root`, or None when it is gone."""
    by_controller: dict[str, tuple[str, str]] = {}
    for line in _read(f"{proc}/{pid}/cgroup").decode("utf-8", "surrogateescape").split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if own := _own_path(path, container_id):
            by_controller.update((controller, (controllers, own)) for controller in controllers.split(","))
    v1 = [_v1_directory(root, controller, by_controller) for controller in ("cpu", "cpuacct", "memory")]
    if any(v1):
        return _V1(*v1)
    if "" not in by_controller:
        return None
    directory = _below(root, by_controller[""][1])
    return None if directory is None else _V2(directory)


def _own_path(path: str, container_id: str) -> str | None:
    """Given the cgroup of a container's process, return the container's own, or None when it is not of that container.

    The process may have moved further down (systemd in a container does that). And it may be another process by now,
    that was given the same pid.
    """
    place = path.find(container_id)
    if place < 0:
        return None
    end = path.find("/", place)
    return path if end < 0 else path[:end]


def _v1_directory(root: str, controller: str, by_controller: dict[str, tuple[str, str]]) -> str | None:
    if controller not in by_controller:
        return None
    controllers, path = by_controller[controller]
    # Controllers that share a hierarchy are mounted as `cpu,cpuacct`, mostly with links for each of them.
    for name in (controllers, controller):
        if os.path.isdir(f"{root}/{name}"):
            return _below(f"{root}/{name}", path)
    return None


def _below(root: str, path: str) -> str | None:
    """Given a path out of /proc/<pid>/cgroup, return the directory, or None when there is none.

    Read from inside a cgroup namespace the path is relative to our own cgroup (`/../../kubepods-…`), of which we do not
    know where it is. What follows the dots names one container, so it is looked for in the upper levels of the tree.
    """
    if not path.startswith("/../"):
        return root + path
    while path.startswith("/../"):
        path = path[len("/..") :]
    return next((prefix + path for prefix in _upper_levels(root) if os.path.isdir(prefix + path)), None)


def _upper_levels(root: str) -> Iterator[str]:
    """Return the directories below `root`, those at the top first."""
    waiting = deque([(root, 0)])
    while waiting:
        directory, depth = waiting.popleft()
        yield directory
        if depth < _PREFIX_DEPTH:
            try:
                below = [entry.path for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue  # removed meanwhile
            waiting.extend((path, depth + 1) for path in below)


def _read(path: str | None) -> bytes:
    """Return the content of a cgroup's file, nothing when it is not there: containers end, controllers may be off."""
    if path is None:
        return b""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _FILE_SIZE)
        finally:
            os.close(file)
    except OSError:
        return b""


def _number(content: bytes) -> int | None:
    """Given `123` and a line end, return 123; None for nothing and for `max`."""
    content = content.strip()
    return int(content) if content and content != b"max" else None


def _value(content: bytes, key: bytes) -> int | None:
    """Given lines of `key value`, return the value, or None when there is no such key."""
    _, found, rest = (b"\n" + content).partition(b"\n" + key)
    return int(rest.partition(b"\n")[0]) if found else None


def _scaled(value: int | None, per_second: float) -> float | None:
    return None if value is None else value / per_second


def _ratio(quota: int | None, period: int | None) -> float | None:
    return quota / period if quota is not None and quota > 0 and period else None


def _working_set(usage: int | None, inactive_file: int | None) -> int | None:
    """What the kernel could not simply drop, which is what counts against the limit before the OOM killer comes."""
    return None if usage is None or inactive_file is None else max(usage - inactive_file, 0)
