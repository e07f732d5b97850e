"""What the agent of a simulated node says: the node's state as a snapshot."""

from __future__ import annotations

import msgspec

from monitor.facts import (
    ContainerFact,
    ContainerUsageFact,
    DiskFact,
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    HostFact,
    ImageCacheFact,
    LogFact,
    NodeSnapshot,
    PodDeviceFact,
    ProbeFact,
    ShmFact,
    XidFacts,
)
from monitor.sim.node import GIB, TOTAL_MEMORY, Card, Container, Disk, Process, SimNode

MODEL = "NVIDIA A100-SXM4-80GB"
REGISTRY = "https://harbor.lab"
RUNTIME_ROOT = "/var/lib/docker"
IDLE_WATTS, BUSY_WATTS = 62.0, 330.0


def snapshot(node: SimNode, now: float) -> NodeSnapshot:
    """Given a node, return what its agent would say now."""
    held = list(node.containers.values())
    return NodeSnapshot(
        node=node.name,
        at=now,
        agent_version="simulated",
        boot_id=f"boot-{node.name}",
        host=_host(node, now),
        gpu=GpuInventory(
            gpus=tuple(_gpu(node, card) for card in node.cards), driver_version="550.90", cuda_version="12.4"
        ),
        gpu_processes=tuple(_process(node, process) for process in node.processes),
        xid=XidFacts(),
        pod_devices=tuple(_device(node, container, card) for container in held for card in container.cards),
        containers=tuple(map(_container, held)),
        container_usage=tuple(map(_usage, held)),
        shm=tuple(_shm(number, container) for number, container in enumerate(held, 50)),
        logs=tuple(
            LogFact(container_id=each.id, size_bytes=each.log_bytes, written_at=each.quiet_since or now)
            for each in held
        ),
        disk=tuple(map(_disk, node.disks)),
        images=(_image_cache(node),),
        probes=(_probe(node, now),),
        mounts=(),
    )


def _host(node: SimNode, now: float) -> HostFact:
    up = now - node.booted_at
    return HostFact(
        cpus=96, memory_total_bytes=1024 * GIB, memory_available_bytes=700 * GIB,
        cpu_seconds_total={"user": up * 20, "idle": up * 70}, load1=21.0, booted_at=node.booted_at, kernel="5.15.0",
    )  # fmt: skip


def _gpu(node: SimNode, card: Card) -> GpuFact:
    if card.lost:
        return GpuFact(index=card.index, uuid=card.uuid, model=MODEL, lost=True, error="GPU is lost")
    used = sum(process.memory_bytes for process in node.processes if process.card == card.index)
    return GpuFact(
        index=card.index, uuid=card.uuid, model=MODEL, pci_bus_id=f"0000:{0x10 + card.index:02x}:00.0",
        utilization_ratio=round(card.busy, 2), utilization_peak_ratio=round(card.busy, 2),
        memory_total_bytes=TOTAL_MEMORY, memory_used_bytes=used + card.stray_bytes,
        temperature_celsius=34.0 + 40 * card.busy,
        power_watts=round(IDLE_WATTS + (BUSY_WATTS - IDLE_WATTS) * card.busy, 1), power_limit_watts=400.0,
        performance_state=0 if card.busy else 8, persistence_mode=True, recovery_action="none", mig_enabled=False,
    )  # fmt: skip


def _process(node: SimNode, process: Process) -> GpuProcessFact:
    return GpuProcessFact(
        gpu_uuid=node.cards[process.card].uuid, pid=process.pid, kind="compute", memory_bytes=process.memory_bytes,
        name=process.name, state=process.state, state_since=process.started_at, started_at=process.started_at,
        uid=1000, container_id=process.container_id, pod_uid=process.pod_uid,
    )  # fmt: skip


def _device(node: SimNode, container: Container, card: int) -> PodDeviceFact:
    uuid = node.cards[card].uuid
    return PodDeviceFact(
        resource="nvidia.com/gpu", device_id=uuid, source="pod-resources", pod_uid=container.pod_uid,
        pod_name=container.pod, namespace=container.namespace, container="main", gpu_uuid=uuid,
    )  # fmt: skip


def _container(container: Container) -> ContainerFact:
    return ContainerFact(
        id=container.id, runtime="docker", state="running", name=f"k8s_main_{container.pod}", image=container.image,
        pid=4200, created_at=container.started_at, started_at=container.started_at, pod_uid=container.pod_uid,
        pod_name=container.pod, namespace=container.namespace, container="main", user=container.user,
    )  # fmt: skip


def _usage(container: Container) -> ContainerUsageFact:
    return ContainerUsageFact(
        container_id=container.id, cpu_seconds_total=container.cpu_cores * 1000, cpu_cores=container.cpu_cores,
        cpu_limit_cores=16.0, memory_bytes=container.memory_bytes, memory_limit_bytes=64 * GIB,
    )  # fmt: skip


def _shm(device: int, container: Container) -> ShmFact:
    return ShmFact(
        size_bytes=container.shm_size, used_bytes=container.shm_used, device=device, container_id=container.id, pid=4200
    )


def _disk(disk: Disk) -> DiskFact:
    used = int(disk.used)
    return DiskFact(
        mount=disk.mount, device=disk.device, fstype="nfs4" if "nas" in disk.roles else "ext4", roles=disk.roles,
        size_bytes=disk.size, used_bytes=used, available_bytes=disk.size - used,
        inodes=100_000_000, inodes_used=int(disk.inodes_used), read_only=False,
    )  # fmt: skip


def _image_cache(node: SimNode) -> ImageCacheFact:
    images = tuple(
        msgspec.structs.replace(image, containers=node.users_of(name)) for name, image in node.images.items()
    )
    total = sum(image.unique_bytes or 0 for image in images) + 8 * GIB
    return ImageCacheFact(runtime="docker", images=images, version="24.0", root=RUNTIME_ROOT, total_bytes=total)


def _probe(node: SimNode, now: float) -> ProbeFact:
    if node.probe_failure is None:
        return ProbeFact(target=REGISTRY, ok=True, at=now, status=401, duration_seconds=0.012)
    stage, cause, error = node.probe_failure
    return ProbeFact(target=REGISTRY, ok=False, at=now, stage=stage, cause=cause, error=error)
