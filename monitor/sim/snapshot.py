"""Agent snapshots of simulated nodes."""

from __future__ import annotations

import msgspec

from monitor.facts import (
    ContainerFact,
    ContainerUsageFact,
    DiskFact,
    DiskIoFact,
    EccFact,
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    HostFact,
    ImageCacheFact,
    LogFact,
    NodeSnapshot,
    PodDeviceFact,
    ProbeFact,
    RowRemapFact,
    RuntimeUsageFact,
    ShmFact,
    XidFacts,
)
from monitor.facts.actions import ActionsFact
from monitor.facts.kernel import KernelFacts
from monitor.sim.node import GIB, GPU_MEMORY_BYTES, SimContainer, SimDisk, SimGpu, SimNode, SimProcess

MODEL = "NVIDIA A100-SXM4-80GB"
REGISTRY = "https://harbor.lab"
RUNTIME_ROOT = "/var/lib/docker"
IDLE_WATTS, BUSY_WATTS = 62.0, 330.0
IDLE_CELSIUS, BUSY_CELSIUS = 34.0, 74.0
CPU_COUNT, SYSTEM_CPU_COUNT = 96, 4.0  # of a node, and what it uses without containers
MEMORY_BYTES, SYSTEM_MEMORY_BYTES = 1024 * GIB, 96 * GIB
SYSTEM_RECEIVED_BYTES_PER_SECOND = 4e6
TRANSMITTED_RATIO = 0.5  # of what is received


def snapshot(node: SimNode, now: float) -> NodeSnapshot:
    """Snapshot that the agent of a node reports now."""
    containers = list(node.containers.values())
    allocated = [*containers, *node.booked]
    hung = {collector.name for collector in node.collectors if collector.hung_since is not None}
    return NodeSnapshot(
        node=node.name,
        at=now,
        agent_version="simulated",
        boot_id=f"boot-{node.name}",
        collectors=tuple(node.collectors),
        host=_host(node, now),
        gpu=None if "gpu" in hung else _inventory(node),
        gpu_processes=tuple(_process(node, process) for process in node.processes),
        xid=XidFacts(recent=tuple(node.xids)),
        kernel=KernelFacts(recent=tuple(node.kernel_events)),
        pod_devices=tuple(_device(node, container, gpu) for container in allocated for gpu in container.gpus),
        containers=tuple(map(_container, containers)),
        container_usage=tuple(map(_usage, containers)),
        shm=tuple(_shm(number, container) for number, container in enumerate(containers, 50)),
        logs=tuple(_log(container, now) for container in containers),
        disk=tuple(map(_disk, node.disks)),
        disk_io=tuple(_disk_io(disk) for disk in node.disks if "nas" not in disk.roles),
        images=(_image_cache(node),),
        runtime_usage=(RuntimeUsageFact(runtime="docker", build_cache_bytes=node.build_cache_bytes),),
        probes=(_probe(node, now),),
        mounts=tuple(node.mounts),
        actions=ActionsFact(enabled=True, refused=dict(node.refused)),
    )


def _inventory(node: SimNode) -> GpuInventory:
    gpus = tuple(_gpu(node, gpu) for gpu in node.gpus if not gpu.missing)
    return GpuInventory(gpus=gpus, driver_version="550.90", cuda_version="12.4")


def _host(node: SimNode, now: float) -> HostFact:
    up, worked = now - node.booted_at, node.worked_seconds
    received = up * SYSTEM_RECEIVED_BYTES_PER_SECOND + node.received_bytes
    used = SYSTEM_MEMORY_BYTES + sum(container.memory_bytes for container in node.containers.values())
    return HostFact(
        cpus=CPU_COUNT, memory_total_bytes=MEMORY_BYTES, memory_available_bytes=MEMORY_BYTES - used,
        cpu_seconds_total={
            "user": up * SYSTEM_CPU_COUNT + worked, "idle": up * (CPU_COUNT - SYSTEM_CPU_COUNT) - worked,
            "iowait": node.waited_seconds,
        },
        load1=21.0, booted_at=node.booted_at, kernel="5.15.0",
        network_received_bytes_total=int(received),
        network_transmitted_bytes_total=int(received * TRANSMITTED_RATIO),
    )  # fmt: skip


def _gpu(node: SimNode, gpu: SimGpu) -> GpuFact:
    if gpu.lost:
        return GpuFact(index=gpu.index, uuid=gpu.uuid, model=MODEL, lost=True, error="GPU is lost")
    used = sum(process.memory_bytes for process in node.processes if process.gpu == gpu.index)
    busy = max(gpu.busy, gpu.latched)
    peaks = (container.peak or 0.0 for container in node.containers.values() if gpu.index in container.gpus)
    return GpuFact(
        index=gpu.index, uuid=gpu.uuid, model=MODEL, pci_bus_id=f"0000:{0x10 + gpu.index:02x}:00.0",
        utilization_ratio=round(busy, 2), utilization_peak_ratio=round(max(busy, *peaks, 0.0), 2),
        memory_total_bytes=GPU_MEMORY_BYTES, memory_used_bytes=used + gpu.stray_bytes,
        temperature_celsius=round(IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * gpu.busy, 1),
        power_watts=round(IDLE_WATTS + (BUSY_WATTS - IDLE_WATTS) * gpu.busy, 1), power_limit_watts=400.0,
        performance_state=0 if gpu.busy else 8, persistence_mode=True, recovery_action=gpu.recovery,
        mig_enabled=False, throttle_reasons=gpu.throttled, ecc=EccFact(volatile_uncorrected_dram=gpu.ecc_errors),
        row_remaps=RowRemapFact(
            corrected=0, uncorrected=0, pending=gpu.remap == "pending", failed=gpu.remap == "failed"
        ),
    )  # fmt: skip


def _process(node: SimNode, process: SimProcess) -> GpuProcessFact:
    return GpuProcessFact(
        gpu_uuid=node.gpus[process.gpu].uuid, pid=process.pid, kind="compute", memory_bytes=process.memory_bytes,
        name=process.name, state=process.state, state_since=process.state_since or process.started_at,
        started_at=process.started_at, uid=process.uid, container_id=process.container_id, pod_uid=process.pod_uid,
    )  # fmt: skip


def _device(node: SimNode, container: SimContainer, gpu: int) -> PodDeviceFact:
    uuid = node.gpus[gpu].uuid
    return PodDeviceFact(
        resource="nvidia.com/gpu", device_id=uuid, source="pod-resources", pod_uid=container.pod_uid,
        pod_name=container.pod, namespace=container.namespace, container="main", gpu_uuid=uuid,
    )  # fmt: skip


def _container(container: SimContainer) -> ContainerFact:
    return ContainerFact(
        id=container.id, runtime="docker", state="running", name=f"k8s_main_{container.pod}", image=container.image,
        pid=4200, created_at=container.started_at, started_at=container.started_at, pod_uid=container.pod_uid,
        pod_name=container.pod, namespace=container.namespace, container="main", user=container.user,
    )  # fmt: skip


def _usage(container: SimContainer) -> ContainerUsageFact:
    return ContainerUsageFact(
        container_id=container.id, cpu_seconds_total=container.cpu_cores * 1000, cpu_cores=container.cpu_cores,
        cpu_limit_cores=16.0, memory_bytes=container.memory_bytes, memory_limit_bytes=64 * GIB,
    )  # fmt: skip


def _shm(device: int, container: SimContainer) -> ShmFact:
    return ShmFact(
        size_bytes=container.shm_size, used_bytes=container.shm_used, device=device, container_id=container.id, pid=4200
    )


def _log(container: SimContainer, now: float) -> LogFact:
    return LogFact(
        container_id=container.id, size_bytes=container.log_bytes, written_at=container.quiet_since or now,
        error=container.log_error,
    )  # fmt: skip


def _disk(disk: SimDisk) -> DiskFact:
    used = int(disk.used)
    return DiskFact(
        mount=disk.mount, device=disk.device, fstype="nfs4" if "nas" in disk.roles else "ext4", roles=disk.roles,
        size_bytes=disk.size, used_bytes=used, available_bytes=disk.size - used,
        inodes=100_000_000, inodes_used=int(disk.inodes_used), read_only=disk.read_only,
    )  # fmt: skip


def _disk_io(disk: SimDisk) -> DiskIoFact:
    return DiskIoFact(
        device=disk.device, read_bytes_total=0, written_bytes_total=0, reads_total=0, writes_total=0,
        busy_seconds_total=0.0, queue_seconds_total=0.0, busy_ratio=disk.busy, queue_length=disk.queue,
        mounts=(disk.mount,),
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
