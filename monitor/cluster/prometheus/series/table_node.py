"""Series of GPUs, processes and collectors of a node."""

from __future__ import annotations

from monitor.cluster.prometheus.series.thing import Take, Thing, truth, value, words
from monitor.facts.gpu import (
    GpuFact,
    GpuInventory,
    GpuProcessFact,
    MigFact,
    NvlinkFact,
    PodDeviceFact,
    RowRemapFact,
    XidCount,
    XidEvent,
)
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.facts.workload import HostFact

NODE = Thing(
    "",
    NodeSnapshot,
    {
        "gpuwarden_snapshot_time_seconds": value("at"),
        "gpuwarden_agent_info": words(agent_version="version", node="node", boot_id="boot_id"),
    },
)
COLLECTORS = Thing(
    "collectors[collector]",
    CollectorFact,
    {
        "gpuwarden_collector_outcome_info": words(outcome="outcome", message="message"),
        "gpuwarden_collector_interval_seconds": value("interval_seconds"),
        "gpuwarden_collector_duration_seconds": value("duration_seconds"),
        "gpuwarden_collector_last_success_seconds": value("succeeded_at"),
        "gpuwarden_collector_hung_since_seconds": value("hung_since"),
    },
    named={"name": "collector"},
)
HOST = Thing(
    "host",
    HostFact,
    {
        "gpuwarden_host_cpus": value("cpus"),
        "gpuwarden_host_memory_total_bytes": value("memory_total_bytes"),
        "gpuwarden_host_memory_available_bytes": value("memory_available_bytes"),
        "gpuwarden_host_cpu_seconds_total": value("cpu_seconds_total.{mode}"),
        "gpuwarden_host_load1": value("load1"),
        "gpuwarden_host_boot_time_seconds": value("booted_at"),
        "gpuwarden_host_info": words(kernel="kernel"),
    },
)
DRIVER = Thing(
    "gpu",
    GpuInventory,
    {"gpuwarden_gpu_driver_info": words(driver_version="version", cuda_version="cuda_version")},
)
GPUS = Thing(
    "gpu.gpus[gpu,uuid]",
    GpuFact,
    {
        "gpuwarden_gpu_info": words(model="model", pci_bus_id="pci_bus_id", serial="serial"),
        "gpuwarden_gpu_lost": truth("lost"),
        "gpuwarden_gpu_error_info": words(error="error"),
        "gpuwarden_gpu_utilization_ratio": value("utilization_ratio"),
        "gpuwarden_gpu_utilization_peak_ratio": value("utilization_peak_ratio"),
        "gpuwarden_gpu_memory_activity_ratio": value("memory_activity_ratio"),
        "gpuwarden_gpu_memory_total_bytes": value("memory_total_bytes"),
        "gpuwarden_gpu_memory_used_bytes": value("memory_used_bytes"),
        "gpuwarden_gpu_temperature_celsius": value("temperature_celsius"),
        "gpuwarden_gpu_power_watts": value("power_watts"),
        "gpuwarden_gpu_power_limit_watts": value("power_limit_watts"),
        "gpuwarden_gpu_sm_clock_hertz": value("sm_clock_hertz"),
        "gpuwarden_gpu_throttle_reasons": Take(known="throttle_reasons"),
        "gpuwarden_gpu_throttled": Take(each=("throttle_reasons", "reason")),
        "gpuwarden_gpu_ecc_enabled": truth("ecc.enabled"),
        "gpuwarden_gpu_ecc_errors_total": value("ecc.{lifetime}_{kind}_{location}"),
        "gpuwarden_gpu_row_remaps_total": value("row_remaps.{kind}"),
        "gpuwarden_gpu_row_remap_pending": truth("row_remaps.pending"),
        "gpuwarden_gpu_row_remap_failed": truth("row_remaps.failed"),
        "gpuwarden_gpu_retired_pages_pending": truth("retired_pages.pending"),
        "gpuwarden_gpu_nvlinks": value("nvlink.links"),
        "gpuwarden_gpu_nvlinks_active": value("nvlink.active"),
        "gpuwarden_gpu_pcie_replays_total": value("pcie_replays"),
        "gpuwarden_gpu_recovery_action": words(recovery_action="action"),
        "gpuwarden_gpu_mig_enabled": truth("mig_enabled"),
    },
    named={"index": "gpu", "uuid": "uuid"},
    parts={"row_remaps": RowRemapFact, "nvlink": NvlinkFact},
)
MIGS = Thing(
    "gpu.gpus[gpu,uuid].mig[mig_uuid]",
    MigFact,
    {
        "gpuwarden_gpu_mig_info": words(
            profile="profile", gpu_instance="gpu_instance", compute_instance="compute_instance"
        )
    },
    named={"uuid": "mig_uuid"},
)
PROCESSES = Thing(
    "gpu_processes[uuid,mig_uuid,pid]",
    GpuProcessFact,
    {
        "gpuwarden_gpu_process_info": words(
            kind="kind", name="process", uid="uid", container_id="container_id", pod_uid="pod_uid"
        ),
        "gpuwarden_gpu_process_memory_bytes": value("memory_bytes"),
        "gpuwarden_gpu_process_start_time_seconds": value("started_at"),
        "gpuwarden_gpu_process_state": words(state="state"),
        "gpuwarden_gpu_process_state_since_seconds": value("state_since"),
    },
    named={"gpu_uuid": "uuid", "mig_uuid": "mig_uuid", "pid": "pid"},
)
XID_COUNTS = Thing(
    "xid.counts[uuid,pci_bus_id,xid]",
    XidCount,
    {"gpuwarden_gpu_xid_errors_total": value("count"), "gpuwarden_gpu_xid_last_seconds": value("last_at")},
    named={"gpu_uuid": "uuid", "pci_bus_id": "pci_bus_id", "code": "xid"},
)
XID_EVENTS = Thing(
    "xid.recent[uuid,pci_bus_id,xid,source,pid,message,number]",
    XidEvent,
    {"gpuwarden_gpu_xid_event_seconds": value("at")},
    named={
        "gpu_uuid": "uuid", "pci_bus_id": "pci_bus_id", "code": "xid", "source": "source", "pid": "pid",
        "message": "message",
    },
)  # fmt: skip
ALLOCATIONS = Thing(
    "pod_devices[resource,device,pod_uid,pod,namespace,container,source]",
    PodDeviceFact,
    {"gpuwarden_gpu_allocation_info": words(gpu_uuid="uuid", replica="replica")},
    named={
        "resource": "resource", "device_id": "device", "pod_uid": "pod_uid", "pod_name": "pod",
        "namespace": "namespace", "container": "container", "source": "source",
    },
)  # fmt: skip

THINGS = (
    NODE, COLLECTORS, HOST, DRIVER, GPUS, MIGS, PROCESSES, XID_COUNTS, XID_EVENTS, ALLOCATIONS,
)  # fmt: skip
