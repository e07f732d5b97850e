"""An agent's snapshot of a node with these pods."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from monitor.facts import (
    CollectorFact,
    ContainerFact,
    ContainerUsageFact,
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    ImageCacheFact,
    ImageFact,
    LogFact,
    PodDeviceFact,
    RowRemapFact,
    RuntimeUsageFact,
    ShmFact,
)
from tests.support.snapshots import AT, GIB, busy_card, full_snapshot

COLLECTORS = (
    "gpu", "gpu_processes", "xid", "pod_devices", "containers", "container_usage", "shm", "logs", "disk", "disk_io",
    "mounts", "images", "runtime_usage", "probes",
)  # fmt: skip
CACHED = 40


@dataclass(frozen=True)
class Placed:
    """A pod on a node."""

    uid: str
    name: str
    namespace: str
    gpus: int
    container_id: str
    sandbox_id: str
    image: str
    user: int


def snapshot(node: str, pods: Sequence[Placed], gpus: int, chance: random.Random, images: int = CACHED) -> bytes:
    """Snapshot of a node with these pods: one process per allocated GPU, two containers per pod."""
    given = [pod for pod in pods for _ in range(pod.gpus)]
    cards = [_card(node, index, busy=index < len(given), chance=chance) for index in range(gpus)]
    held = list(zip(cards, given, strict=False))
    whole = msgspec.structs.replace(
        full_snapshot(),
        node=node,
        collectors=tuple(
            CollectorFact(
                name=name, outcome="ok", interval_seconds=5, runs=900, duration_seconds=0.002, succeeded_at=AT
            )
            for name in COLLECTORS
        ),
        gpu=GpuInventory(gpus=tuple(cards), driver_version="550.54.15", cuda_version="12.4"),
        gpu_processes=tuple(_process(card, pod, chance) for card, pod in held),
        xid=None,
        kernel=None,
        pod_devices=tuple(_device(card, pod) for card, pod in held),
        containers=tuple(container for pod in pods for container in _containers(pod)),
        container_usage=tuple(_usage(pod, chance) for pod in pods),
        shm=(
            ShmFact(size_bytes=256 * GIB, used_bytes=GIB, device=22),
            *(
                ShmFact(size_bytes=64 * GIB, used_bytes=GIB, device=number, container_id=pod.container_id, pid=4200)
                for number, pod in enumerate(pods, 50)
            ),
        ),
        logs=tuple(LogFact(container_id=pod.container_id, size_bytes=1_000_000, written_at=AT) for pod in pods),
        images=(ImageCacheFact(runtime="docker", root="/var/lib/docker", images=_images(pods, chance, images)),),
        runtime_usage=(
            RuntimeUsageFact(runtime="docker", layers_bytes=GIB, writable={pod.container_id: GIB for pod in pods}),
        ),
    )
    return msgspec.json.encode(whole)


def _card(node: str, index: int, *, busy: bool, chance: random.Random) -> GpuFact:
    return msgspec.structs.replace(
        busy_card(),
        index=index,
        uuid=f"GPU-{node}-1111-2222-3333-{chance.getrandbits(48):012x}",
        utilization_ratio=chance.random() if busy else 0.0,
        utilization_peak_ratio=1.0 if busy else 0.0,
        memory_activity_ratio=0.3 if busy else 0.0,
        memory_used_bytes=61 * GIB if busy else 0,
        row_remaps=RowRemapFact(corrected=1, uncorrected=0, pending=False, failed=False),
        recovery_action="none",
        mig_enabled=False,
        mig=(),
    )


def _process(card: GpuFact, pod: Placed, chance: random.Random) -> GpuProcessFact:
    return GpuProcessFact(
        gpu_uuid=card.uuid or "", pid=chance.randrange(1000, 4_000_000), kind="compute", memory_bytes=60 * GIB,
        name="python3", state="R", state_since=AT - 3, started_at=AT - 7200, uid=pod.user,
        container_id=pod.container_id, pod_uid=pod.uid,
    )  # fmt: skip


def _device(card: GpuFact, pod: Placed) -> PodDeviceFact:
    return PodDeviceFact(
        resource="nvidia.com/gpu", device_id=card.uuid or "", source="pod-resources", pod_uid=pod.uid,
        pod_name=pod.name, namespace=pod.namespace, container="main", gpu_uuid=card.uuid,
    )  # fmt: skip


def _containers(pod: Placed) -> tuple[ContainerFact, ContainerFact]:
    main = ContainerFact(
        id=pod.container_id, runtime="docker", state="running", name=f"k8s_main_{pod.name}_{pod.namespace}_{pod.uid}_0",
        image=pod.image, image_id=_digest(pod.image), pid=4200, created_at=AT - 7300, started_at=AT - 7200,
        pod_uid=pod.uid, pod_name=pod.name, namespace=pod.namespace, container="main",
        log_path=f"/var/lib/docker/containers/{pod.container_id}/{pod.container_id}-json.log",
    )  # fmt: skip
    return main, msgspec.structs.replace(main, id=pod.sandbox_id, sandbox=True, container=None, log_path=None)


def _usage(pod: Placed, chance: random.Random) -> ContainerUsageFact:
    return ContainerUsageFact(
        container_id=pod.container_id, cpu_seconds_total=chance.random() * 1e5, cpu_cores=chance.random() * 8,
        cpu_limit_cores=8.0, throttled_seconds_total=3.5, memory_bytes=20 * GIB, memory_limit_bytes=64 * GIB,
    )  # fmt: skip


def _digest(text: str) -> str:
    """An image of the same name is the same image on every node."""
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _images(pods: Sequence[Placed], chance: random.Random, count: int) -> tuple[ImageFact, ...]:
    """Images of the node's pods, and leftover ones."""
    users = {pod.image: pod.container_id for pod in pods}
    names = [*users, *(f"harbor.lab:8443/old/image:{chance.randrange(1000)}" for _ in range(count - len(users)))]
    return tuple(
        ImageFact(
            id=_digest(name), names=(name,), digests=(f"{name.rpartition(':')[0]}@{_digest('manifest ' + name)}",),
            size_bytes=9 * GIB, unique_bytes=5 * GIB, created_at=AT - 9e5, first_seen_at=AT - 8e5, last_used_at=AT - 10,
            containers=(users[name],) if name in users else (),
        )
        for name in names
    )  # fmt: skip
