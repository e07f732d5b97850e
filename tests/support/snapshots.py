"""A snapshot with a value in every field, as from a busy node with every kind of problem."""

from __future__ import annotations

from monitor.facts import (
    CollectorFact,
    ContainerFact,
    ContainerUsageFact,
    DiskFact,
    DiskIoFact,
    EccFact,
    EvictionFact,
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    HostFact,
    ImageCacheFact,
    ImageFact,
    KubeletFact,
    LogFact,
    LogTailFact,
    MigFact,
    MountFact,
    NodeSnapshot,
    NvlinkFact,
    PodDeviceFact,
    ProbeFact,
    RetiredPagesFact,
    RowRemapFact,
    RuntimeUsageFact,
    ShmFact,
    VolumeFact,
    XidCount,
    XidEvent,
    XidFacts,
)
from monitor.facts.actions import ActionsFact
from monitor.facts.kernel import KernelCount, KernelEvent, KernelFacts

AT = 1_763_260_000.0
GIB = 1024**3
CARD = "GPU-00000000-1111-2222-3333-444444444444"
LOST = "GPU-00000001-1111-2222-3333-444444444444"
MIG = "MIG-00000000-aaaa-bbbb-cccc-dddddddddddd"
POD = "9493223b-0000-4000-8000-000000000001"
TRAINER = "a" * 64


def busy_card() -> GpuFact:
    return GpuFact(
        index=0, uuid=CARD, pci_bus_id="0000:3b:00.0", model="NVIDIA A100-SXM4-80GB", serial="1320",
        utilization_ratio=0.55, utilization_peak_ratio=0.99, memory_activity_ratio=0.31,
        memory_total_bytes=80 * GIB, memory_used_bytes=61 * GIB, temperature_celsius=67.0,
        power_watts=301.5, power_limit_watts=400.0, sm_clock_hertz=1_410_000_000, memory_clock_hertz=1_593_000_000,
        throttle_reasons=("sw-thermal", "power-cap"), performance_state=0, persistence_mode=True,
        compute_mode="default",
        ecc=EccFact(
            enabled=True, volatile_corrected_sram=1, volatile_corrected_dram=2, volatile_uncorrected_sram=0,
            volatile_uncorrected_dram=0, aggregate_corrected_sram=3, aggregate_corrected_dram=4,
            aggregate_uncorrected_sram=0, aggregate_uncorrected_dram=5,
        ),
        row_remaps=RowRemapFact(corrected=1, uncorrected=2, pending=True, failed=False),
        retired_pages=RetiredPagesFact(single_bit=3, double_bit=1, pending=False),
        nvlink=NvlinkFact(links=12, active=11, crc_flit_errors=7, crc_data_errors=0, replay_errors=2,
            recovery_errors=1),
        pcie_replays=9, recovery_action="drain-and-reset", mig_enabled=True,
        mig=(
            MigFact(
                uuid=MIG, gpu_instance=1, compute_instance=0, profile="1g.10gb",
                memory_total_bytes=10 * GIB, memory_used_bytes=2 * GIB,
            ),
        ),
    )  # fmt: skip


def full_snapshot() -> NodeSnapshot:
    """Snapshot of a node with every fact known."""
    return NodeSnapshot(
        node="gpu-01",
        at=AT,
        agent_version="0.1.0",
        boot_id="11111111-2222-3333-4444-555555555555",
        collectors=(
            CollectorFact(
                name="gpu", outcome="ok", interval_seconds=5, runs=10, duration_seconds=0.002, succeeded_at=AT - 1
            ),
            CollectorFact(
                name="images", outcome="failed", interval_seconds=60, runs=4, failures=2, duration_seconds=1.5,
                hung_since=AT - 30, message="OSError: no",
            ),
            CollectorFact(name="probes", outcome="absent", interval_seconds=30, runs=1, duration_seconds=0.0001),
        ),
        host=HostFact(
            cpus=96, memory_total_bytes=512 * GIB, memory_available_bytes=300 * GIB, load1=12.5, booted_at=AT - 86400,
            cpu_seconds_total={"user": 1000.5, "iowait": 20.25, "idle": 9000.0}, kernel="5.15.0",
            network_received_bytes_total=7 * 10**12, network_transmitted_bytes_total=3 * 10**12,
        ),
        gpu=GpuInventory(
            gpus=(busy_card(), GpuFact(index=1, uuid=LOST, lost=True, error="GPU is lost")),
            driver_version="550.54.15",
            cuda_version="12.4",
        ),
        gpu_processes=(
            GpuProcessFact(
                gpu_uuid=CARD, pid=4242, kind="compute", mig_uuid=MIG, memory_bytes=60 * GIB, name='py"th\\on\n训练',
                state="D", state_since=AT - 400, started_at=AT - 7200, uid=1000, container_id=TRAINER, pod_uid=POD,
            ),
            GpuProcessFact(gpu_uuid=CARD, pid=4343, kind="compute", state="gone", state_since=AT - 10),
        ),
        kernel=KernelFacts(
            counts=(
                KernelCount(kind="disk-error", count=3, last_at=AT - 30),
                KernelCount(kind="container-oom", count=1, last_at=AT - 90),
            ),
            recent=(
                KernelEvent(
                    kind="container-oom", since=AT - 90, at=AT - 90, device="python", container_id="c" * 64,
                    pod_uid="9493223b-0000-4000-8000-000000000000", message="oom-kill:constraint=CONSTRAINT_MEMCG",
                ),
                KernelEvent(
                    kind="disk-error", since=AT - 40, at=AT - 30, count=3, device="sda",
                    message="I/O error, dev sda, sector 2048 op 0x0:(READ)",
                ),
            ),
            skipped_lines=7,
        ),
        xid=XidFacts(
            counts=(XidCount(code=79, count=2, last_at=AT - 60, gpu_uuid=LOST, pci_bus_id="0000:86:00.0"),),
            recent=(XidEvent(at=AT - 60, code=79, source="both", gpu_uuid=LOST, message="GPU fell off the bus."),),
        ),
        pod_devices=(
            PodDeviceFact(
                resource="nvidia.com/gpu", device_id=f"{CARD}::2", source="pod-resources", pod_uid=POD,
                pod_name="bert-0", namespace="team-a", container="trainer", gpu_uuid=CARD, replica=2,
            ),
        ),
        containers=(
            ContainerFact(
                id=TRAINER, runtime="docker", state="running", name="k8s_trainer_bert-0", image="harbor.lab/nlp/bert:1",
                image_id="sha256:1", pid=4200, created_at=AT - 7300, started_at=AT - 7200, pod_uid=POD,
                pod_name="bert-0", namespace="team-a", container="trainer", log_path="/var/lib/docker/a-json.log",
            ),
            ContainerFact(id="b" * 64, runtime="docker", state="running", sandbox=True, pod_uid=POD, user="li.lei"),
        ),
        container_usage=(
            ContainerUsageFact(
                container_id=TRAINER, cpu_seconds_total=812.5, cpu_cores=2.5, cpu_limit_cores=8.0,
                throttled_seconds_total=3.5,
                memory_bytes=20 * GIB, memory_limit_bytes=64 * GIB,
            ),
        ),
        shm=(
            ShmFact(size_bytes=256 * GIB, used_bytes=GIB, device=22),
            ShmFact(size_bytes=64 * 1024**2, used_bytes=60 * 1024**2, device=57, container_id=TRAINER, pid=4200),
        ),
        logs=(
            LogFact(container_id=TRAINER, size_bytes=1_000_000, written_at=AT - 3),
            LogFact(container_id="c" * 64, error="PermissionError: no"),
        ),
        log_tails=(
            LogTailFact(
                container_id="d" * 64, cause="python-exception", line="[rank2]: KeyError: 'input_ids'",
                exception="KeyError", rank=2, finished_at=AT - 20,
            ),
        ),
        disk=(
            DiskFact(
                mount="/", device="/dev/sda2", fstype="ext4", roles=("system", "runtime", "kubelet"),
                size_bytes=500 * GIB, used_bytes=450 * GIB, available_bytes=30 * GIB, inodes=1_000_000,
                inodes_used=900_000, read_only=False,
            ),
            DiskFact(mount="/mnt/数据", device="nas:/export", fstype="nfs4", roles=("nas",), hung_since=AT - 120),
            DiskFact(mount="/mnt/old", device="nas:/old", fstype="nfs4", roles=("nas",), error="Stale file handle"),
        ),
        disk_io=(
            DiskIoFact(
                device="sda", read_bytes_total=10 * GIB, written_bytes_total=20 * GIB, reads_total=1000,
                writes_total=2000, busy_seconds_total=500.5, queue_seconds_total=900.25, in_flight=3,
                busy_ratio=0.93, queue_length=7.5, mounts=("/",),
            ),
        ),
        mounts=(MountFact(path="/mnt/数据", state="hung", since=AT - 120, latency_seconds=5.0, error="no answer"),),
        images=(
            ImageCacheFact(
                runtime="docker", version="20.10.24", root="/var/lib/docker", total_bytes=59 * GIB,
                images=(
                    ImageFact(
                        id="sha256:1", names=("harbor.lab/nlp/bert:1",), digests=("harbor.lab/nlp/bert@sha256:2",),
                        size_bytes=59 * GIB, unique_bytes=50 * GIB, created_at=AT - 9e5, first_seen_at=AT - 8e5,
                        last_used_at=AT - 10, containers=(TRAINER,), pinned=True,
                    ),
                    ImageFact(id="sha256:3"),
                    ImageFact(id="sha256:4", names=("mine:1",), local=True),
                ),
            ),
        ),
        runtime_usage=(
            RuntimeUsageFact(
                runtime="docker", layers_bytes=70 * GIB, writable_bytes=3 * GIB, writable={TRAINER: 3 * GIB},
                build_cache_bytes=5 * GIB, build_cache_reclaimable_bytes=4 * GIB,
                volumes=(VolumeFact(name="scratch", size_bytes=2 * GIB, references=0),),
            ),
        ),
        kubelet=KubeletFact(
            image_gc_high_ratio=0.85, image_gc_low_ratio=0.8,
            eviction_hard=(
                EvictionFact(signal="nodefs.available", available_ratio=0.1),
                EvictionFact(signal="imagefs.available", available_bytes=50 * GIB),
            ),
        ),
        probes=(
            ProbeFact(
                target="https://harbor.lab", ok=False, at=AT - 5, stage="tcp", cause="refused", status=None,
                error="connection refused", address="127.0.0.1", duration_seconds=0.01,
            ),
            ProbeFact(target="https://hub.lab", ok=True, at=AT - 5, status=401, duration_seconds=0.05),
        ),
        actions=ActionsFact(
            enabled=True, done={"remove-image/removed": 12, "remove-image/in-use": 3}, failed={"kill-process/stuck": 1},
            refused={"token": 2, "replayed": 1}, refused_at=AT - 40, running=("a1",),
        ),
    )  # fmt: skip
