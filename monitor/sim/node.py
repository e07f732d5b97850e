"""A simulated node: its cards, containers, disks and images, and what happens to them."""

from __future__ import annotations

import hashlib
import itertools
import random
from dataclasses import dataclass, field

from monitor.facts import CollectorFact, ImageFact, MountFact, XidEvent

GIB = 1 << 30
GPU_MEMORY_BYTES = 80 * GIB
_pids = itertools.count(20_000)


@dataclass
class SimGpu:
    """One card. `busy` is how much its processes make it work; what is wrong with it is set from outside."""

    index: int
    uuid: str
    lost: bool = False
    missing: bool = False  # the driver does not even count it
    busy: float = 0.0
    latched: float = 0.0  # work that it claims to do for nobody
    stray_bytes: int = 0  # memory that no process owns
    throttled: tuple[str, ...] = ()
    ecc_errors: int = 0
    remap: str | None = None  # of rows of its memory: "pending" or "failed"
    recovery: str = "none"


@dataclass(frozen=True)
class SimProcess:
    """A process on a card."""

    pid: int
    card: int
    container_id: str | None
    pod_uid: str | None
    started_at: float
    memory_bytes: int
    name: str | None = "python3"
    state: str = "R"
    state_since: float | None = None  # since it was started, if nothing is said
    uid: int | None = 1000


@dataclass
class SimContainer:
    """A pod's container on this node, with the cards that it was given."""

    id: str
    pod_uid: str
    pod: str
    namespace: str
    image: str
    started_at: float
    user: str | None = None
    cards: tuple[int, ...] = ()
    busy: float = 0.0
    peak: float | None = None  # how much its cards work at times, if that is more
    shm_size: int = 16 * GIB
    shm_used: int = GIB
    memory_bytes: int = 24 * GIB
    cpu_cores: float = 6.0
    log_bytes: int = 4096
    quiet_since: float | None = None  # its log has stood still since
    log_error: str | None = None


@dataclass
class SimDisk:
    """A filesystem, how fast it fills, and how busy its device is."""

    mount: str
    device: str
    roles: tuple[str, ...]
    size: int
    used: float
    growth: float = 0.0  # bytes a second
    inodes_used: float = 1.2e6
    read_only: bool = False
    busy: float = 0.2
    queue: float = 0.5


@dataclass
class SimNode:
    """A node. What happens to it is set from outside; `monitor.sim.snapshot` tells of it as the agent would."""

    name: str
    address: str
    cards: list[SimGpu]
    disks: list[SimDisk]
    booted_at: float
    images: dict[str, ImageFact] = field(default_factory=dict)
    containers: dict[str, SimContainer] = field(default_factory=dict)
    processes: list[SimProcess] = field(default_factory=list)
    probe_failure: tuple[str, str, str] | None = None  # stage, cause, error of reaching the registry
    answering: bool = True
    cordoned: bool = False
    booked: list[SimContainer] = field(default_factory=list)  # what the kubelet gave cards and never took back
    mounts: list[MountFact] = field(default_factory=list)
    xids: list[XidEvent] = field(default_factory=list)
    collectors: list[CollectorFact] = field(default_factory=list)  # those in trouble
    build_cache_bytes: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # what its agent was asked to do and did not, by reason
    waiting_cores: float = 0.0  # that wait for disks
    waited_seconds: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311  # no secret

    def start(self, container: SimContainer, now: float) -> None:
        """Start a container, with a process on each of its cards."""
        self.containers[container.id] = container
        for card in container.cards:
            self.processes.append(
                SimProcess(next(_pids), card, container.id, container.pod_uid, now, int(GPU_MEMORY_BYTES * 0.7))
            )

    def end(self, pod_uid: str, *, keep_processes: bool = False) -> None:
        """End a pod's containers. `keep_processes` leaves what runs on the cards behind, as a hung job does."""
        gone = {container.id for container in self.containers.values() if container.pod_uid == pod_uid}
        for container_id in gone:
            del self.containers[container_id]
        if not keep_processes:
            self.processes = [each for each in self.processes if each.pod_uid != pod_uid]

    def kill(self, pid: int) -> bool:
        """End a process, and return whether there was one."""
        before = len(self.processes)
        self.processes = [each for each in self.processes if each.pid != pid]
        return len(self.processes) < before

    def free_gpu_indexes(self) -> list[int]:
        """Return the cards that no container has."""
        held = {card for container in self.containers.values() for card in container.cards}
        held |= {process.card for process in self.processes}
        held |= {card for booked in self.booked for card in booked.cards}
        return [card.index for card in self.cards if card.index not in held and not card.lost and not card.missing]

    def pass_time(self, seconds: float) -> None:
        """Let disks fill, logs grow and cards work for so long."""
        for disk in self.disks:
            disk.used = min(max(0.0, disk.used + disk.growth * seconds), disk.size * 0.999)
        self.waited_seconds += self.waiting_cores * seconds
        busy = {card: c.busy for c in self.containers.values() for card in c.cards}
        for card in self.cards:
            wobble = self.chance.uniform(-0.06, 0.06)
            card.busy = min(1.0, max(0.0, busy.get(card.index, 0.0) + wobble)) if busy.get(card.index) else 0.0
        for container in self.containers.values():
            if container.quiet_since is None:
                container.log_bytes += int(200 * seconds)

    def add_image(self, name: str, size: int, now: float, last_used: float | None, shared: float = 0.2) -> None:
        """Put an image into the cache; it takes its room on the runtime's disk."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        first_seen = now if last_used == now else now - 20 * 86400  # what is used for the first time has just come
        self.images[name] = ImageFact(
            id=f"sha256:{digest}", names=(name,), size_bytes=size, unique_bytes=int(size * (1 - shared)),
            created_at=now - 30 * 86400, first_seen_at=first_seen, last_used_at=last_used,
        )  # fmt: skip
        self.runtime_disk.used += size * (1 - shared)

    def remove_image(self, image_id: str) -> int | None:
        """Remove an image nobody uses, and return what that freed; None if there is none."""
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
        """Return the containers that run from an image."""
        return tuple(container.id for container in self.containers.values() if container.image == image)
