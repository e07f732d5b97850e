"""Simulated node with its GPUs, containers, disks and images."""

from __future__ import annotations

import hashlib
import itertools
import random
from dataclasses import dataclass, field

from monitor.facts import CollectorFact, ImageFact, MountFact, XidEvent
from monitor.facts.kernel import KernelEvent

GIB = 1 << 30
GPU_MEMORY_BYTES = 80 * GIB
GPU_MEMORY_USED_RATIO = 0.7  # by the process of a container
CONTAINER_RECEIVED_BYTES_PER_SECOND = 60e6
FIRST_LOG_BYTES, LOG_BYTES_PER_SECOND = 4096, 200
_pids = itertools.count(20_000)


@dataclass
class SimGpu:
    """A GPU. `busy` is the utilization by its processes; faults are set from outside."""

    index: int
    uuid: str
    lost: bool = False
    missing: bool = False  # not listed by the driver
    busy: float = 0.0
    latched: float = 0.0  # reported utilization without a process
    stray_bytes: int = 0  # memory that no process owns
    throttled: tuple[str, ...] = ()
    ecc_errors: int = 0
    remap: str | None = None  # row remapping: "pending" or "failed"
    recovery: str = "none"


@dataclass(frozen=True)
class SimProcess:
    """A process on a GPU."""

    pid: int
    gpu: int  # its index
    container_id: str | None
    pod_uid: str | None
    started_at: float
    memory_bytes: int
    name: str | None = "python3"
    state: str = "R"
    state_since: float | None = None  # default: since it was started
    uid: int | None = 1000


@dataclass
class SimContainer:
    """Container of a pod, with the indexes of its GPUs."""

    id: str
    pod_uid: str
    pod: str
    namespace: str
    image: str
    started_at: float
    user: str | None = None
    gpus: tuple[int, ...] = ()
    busy: float = 0.0
    peak: float | None = None  # peak utilization, if higher than `busy`
    shm_size: int = 16 * GIB
    shm_used: int = GIB
    memory_bytes: int = 24 * GIB
    cpu_cores: float = 6.0
    log_bytes: int = FIRST_LOG_BYTES
    quiet_since: float | None = None  # since when it has not logged
    log_error: str | None = None


@dataclass
class SimDisk:
    """A filesystem and the load of its device."""

    mount: str
    device: str
    roles: tuple[str, ...]
    size: int
    used: float
    growth: float = 0.0  # bytes per second
    inodes_used: float = 1.2e6
    read_only: bool = False
    busy: float = 0.2
    queue: float = 0.5


@dataclass
class SimNode:
    """A node, whose faults are set from outside. `monitor.sim.snapshot` reports it as its agent would."""

    name: str
    address: str
    gpus: list[SimGpu]
    disks: list[SimDisk]
    booted_at: float
    images: dict[str, ImageFact] = field(default_factory=dict)
    containers: dict[str, SimContainer] = field(default_factory=dict)
    processes: list[SimProcess] = field(default_factory=list)
    probe_failure: tuple[str, str, str] | None = None  # stage, cause and error of the registry probe
    answering: bool = True
    cordoned: bool = False
    booked: list[SimContainer] = field(default_factory=list)  # whose GPUs the kubelet never released
    mounts: list[MountFact] = field(default_factory=list)
    xids: list[XidEvent] = field(default_factory=list)
    kernel_events: list[KernelEvent] = field(default_factory=list)
    collectors: list[CollectorFact] = field(default_factory=list)  # only failing ones
    build_cache_bytes: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # refused actions by reason
    waiting_cores: float = 0.0  # in iowait
    waited_seconds: float = 0.0
    worked_seconds: float = 0.0  # of all CPUs, by containers
    received_bytes: float = 0.0  # by containers
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311  # no secret

    def start(self, container: SimContainer, now: float) -> None:
        """Start a container with a process on each of its GPUs."""
        self.containers[container.id] = container
        for gpu in container.gpus:
            self.processes.append(
                SimProcess(
                    next(_pids),
                    gpu,
                    container.id,
                    container.pod_uid,
                    now,
                    int(GPU_MEMORY_BYTES * GPU_MEMORY_USED_RATIO),
                )
            )

    def end(self, pod_uid: str, *, keep_processes: bool = False) -> None:
        """End the containers of a pod. `keep_processes` leaves its processes on the GPUs, as a hung job does."""
        gone = {container.id for container in self.containers.values() if container.pod_uid == pod_uid}
        for container_id in gone:
            del self.containers[container_id]
        if not keep_processes:
            self.processes = [process for process in self.processes if process.pod_uid != pod_uid]

    def kill(self, pid: int) -> bool:
        """End a process. Return whether it exists."""
        before = len(self.processes)
        self.processes = [process for process in self.processes if process.pid != pid]
        return len(self.processes) < before

    def free_gpu_indexes(self) -> list[int]:
        """Indexes of the usable GPUs that no container or process holds."""
        held = {gpu for container in self.containers.values() for gpu in container.gpus}
        held |= {process.gpu for process in self.processes}
        held |= {gpu for booked in self.booked for gpu in booked.gpus}
        return [gpu.index for gpu in self.gpus if gpu.index not in held and not gpu.lost and not gpu.missing]

    def pass_time(self, seconds: float) -> None:
        """Advance disk usage, logs and GPU utilization."""
        for disk in self.disks:
            disk.used = min(max(0.0, disk.used + disk.growth * seconds), disk.size * 0.999)
        self.waited_seconds += self.waiting_cores * seconds
        self.worked_seconds += sum(container.cpu_cores for container in self.containers.values()) * seconds
        self.received_bytes += len(self.containers) * CONTAINER_RECEIVED_BYTES_PER_SECOND * seconds
        busy = {gpu: c.busy for c in self.containers.values() for gpu in c.gpus}
        for gpu in self.gpus:
            wobble = self.chance.uniform(-0.06, 0.06)
            gpu.busy = min(1.0, max(0.0, busy.get(gpu.index, 0.0) + wobble)) if busy.get(gpu.index) else 0.0
        for container in self.containers.values():
            if container.quiet_since is None:
                container.log_bytes += int(LOG_BYTES_PER_SECOND * seconds)

    def add_image(self, name: str, size: int, now: float, last_used: float | None, shared: float = 0.2) -> None:
        """Add an image to the cache on the runtime disk."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        first_seen = now if last_used == now else now - 20 * 86400  # just pulled, if first used now
        self.images[name] = ImageFact(
            id=f"sha256:{digest}", names=(name,), size_bytes=size, unique_bytes=int(size * (1 - shared)),
            created_at=now - 30 * 86400, first_seen_at=first_seen, last_used_at=last_used,
        )  # fmt: skip
        self.runtime_disk.used += size * (1 - shared)

    def remove_image(self, image_id: str) -> int | None:
        """Remove an unused image, and return the bytes freed; None if it does not exist."""
        for name, image in self.images.items():
            if image.id == image_id:
                del self.images[name]
                freed = image.unique_bytes or 0
                self.runtime_disk.used -= freed
                return freed
        return None

    @property
    def runtime_disk(self) -> SimDisk:
        return next(disk for disk in self.disks if "runtime" in disk.roles)

    def users_of(self, image: str) -> tuple[str, ...]:
        """Ids of the containers that use an image."""
        return tuple(container.id for container in self.containers.values() if container.image == image)
