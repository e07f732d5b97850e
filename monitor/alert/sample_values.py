"""Figures of sample alerts: what each rule typically reports, so that a test message reads like a real one.

Everything about a sample derives from these tables: its labels, headline, evidence and the values of every field.
"""

from __future__ import annotations

from monitor.facts.text import Value

GIB = 2**30
TIB = 2**40
AGE_SECONDS = 900.0

# Values of fields by name, unless a rule or a text has its own. Names are those of one cluster and one job.
COMMON: dict[str, Value] = {
    "node": "gpu-01", "place": "gpu-01", "where": "gpu-01", "gpu": "3", "cluster": "lab", "namespace": "team-a",
    "user": "zhang", "job": "bert", "container": "train", "queue": "vc-a", "mount": "/data", "device": "nvme0n1",
    "image": "harbor.lab/team-a/train:2.1", "registry": "harbor.lab", "host": "harbor.lab", "service": "portal",
    "condition": "GpuHasXidErrors", "seconds": AGE_SECONDS, "count": 3, "pid": 41235, "process": "python",
    "pids": "41236, 41240, 41251", "uid": "1005", "bytes": 60 * GIB, "ratio": 1.0, "error": "connection refused",
    "message": "no space left on device", "why": "connection refused", "code": 79, "restarts": 4, "share": 0.97,
    "available": 14 * GIB, "used": 466 * GIB, "size": 480 * GIB,
    "capacity": 8, "cards": 7, "gpus": 8, "nodes": 3,
    "kind": "wecom", "source": "pods", "target": "http://portal.lab:8080/", "path": "/data", "name": "bert",
    "limit": 16, "owner": "storage.example.com/keep", "server": "nfs-01", "volume": "data", "file": "train.py",
    "key": "token", "each": 8, "total": 40, "window": 600.0, "rate": 6 * GIB, "left": 7 * 3600.0, "state": "hung",
    "hung": 1800.0, "exception": "RuntimeError: CUDA out of memory", "finalizers": "storage.example.com/keep",
    "stuck": 1800.0, "inodes": 31_000_000,
    "resource": "nvidia.com/gpu", "action": "GPU reset", "errors": 2, "pods": "team-a/bert-0, team-a/bert-1",
}  # fmt: skip
POD_NAME, POD_IN_NAMESPACE = "bert-0", "team-a/bert-0"

# Values by rule.
BY_RULE: dict[str, dict[str, Value]] = {
    "gpu-idle": {"idle": 2, "idle_for": 5400.0, "hours": "01:00-07:00", "days": 3, "cards": "gpu-01:3, gpu-01:4",
                 "log_age": 3000.0, "cores": 6, "seconds": 5400.0},
    "gpu-ghost": {"bytes": 38 * GIB},
    "gpu-hot": {"celsius": 87, "watts": 290, "limit": 400, "megahertz": 1005},
    "gpu-underused": {"gpus": 4, "ratio": 0.18, "window": 3600.0, "cores": 7.9, "limit": 8, "used": 62 * GIB,
                      "size": 64 * GIB},
    "gpu-fragmented": {"asked": 8, "free": 11, "most": 5, "count": 2,
                       "moves": "team-a/vit-0 from gpu-02 to gpu-05; team-b/eval from gpu-02 to gpu-06",
                       "pods": "team-a/vit-0, team-b/eval"},
    "gpu-fault": {"error": "the driver cannot reach it", "name": "GPU has fallen off the bus", "place": "0000:3b:00.0",
                  "message": "NVRM: Xid (PCI:0000:3b:00): 79, pid=41235, GPU has fallen off the bus."},
    "capacity-mismatch": {"capacity": 8, "cards": 8, "allocatable": 7},
    "image-pull-slow": {"service": "harbor.lab",
                        "took": 1500.0, "rate": 11 * 2**20, "limit": 50 * 2**20, "bytes": 24 * GIB, "seconds": 1500.0},
    "registry-unreachable": {"service": "harbor.lab",
                             "nodes": "gpu-01, gpu-02", "registries": "harbor.lab", "count": 2, "pods": 3, "images": 2,
                             "error": "Temporary failure in name resolution"},
    "pod-pending": {"count": 2, "needs": 16, "each": 8, "workers": 2, "largest": 5, "gpus": 8, "nodes": "gpu-07",
                    "taint": "dedicated=training:NoSchedule", "fit": "gpu-02", "object": "data", "claim": "data",
                    "wanted": "zone=b", "scheduler": "volcano", "cluster_queue": "research", "group": "bert",
                    "gates": "kueue.x-k8s.io/admission", "seconds": 2400.0,
                    "message": "0/40 nodes are available: 40 Insufficient nvidia.com/gpu."},
    "pod-stuck-creating": {"source": "nfs-01:/exports/data", "count": 2, "nodes": 2},
    "pod-start-failed": {"count": 3, "kind": "ConfigMap", "name": "bert-config", "message": "exit code 1"},
    "pod-stuck-terminating": {"seconds": 3600.0},
    "pod-silent": {"gpus": 8, "seconds": 5400.0},
    "quota-exhausted": {"name": "team-a", "used": 16, "limit": 16, "quota": "gpu-quota", "needs": 24,
                        "jobs": "bert, llama, vit", "holders": "zhang (8 GPUs), li (6 GPUs)"},
    "shm-pressure": {"used": 60 * GIB, "size": 64 * GIB, "share": 0.94, "count": 8, "wanted": "128Gi"},
    "disk-full": {"bytes": 310 * GIB, "layer": 84 * GIB, "log": 3 * GIB},
    "disk-filling": {"bytes": 36 * GIB, "window": 6 * 3600.0, "used": 400 * GIB, "available": 80 * GIB},
    "disk-io-saturated": {"share": 0.99, "queue": 64, "before": 21, "mounts": "/data", "count": 4},
    "image-cache-large": {"bytes": 310 * GIB, "share": 0.65, "unused": 190 * GIB, "build": 120 * GIB,
                          "mount": "/var/lib/containerd", "users": "zhang"},
    "image-oversize": {"bytes": 42 * GIB, "nodes": "gpu-01, gpu-02, gpu-05", "users": "zhang, li"},
    "mass-deletion": {"bytes": 3 * TIB, "share": 0.4, "before": 7 * TIB, "now": 4 * TIB},
    "mount-lost": {"count": 3, "error": "Stale file handle"},
    "node-down": {"count": 6, "gpus": 8, "changes": 6, "message": "container runtime network not ready",
                  "error": "no route to host"},
    "node-condition": {"message": "GPU 3 reported XID 79"},
    "kernel-fault": {"device": "nvme0n1", "code": 20034, "count": 4,
                     "message": "blk_update_request: I/O error, dev nvme0n1, sector 1048576"},
    "agent-silent": {"collector": "disk", "error": "connection refused", "target": "10.0.0.11:9835", "count": 2},
    "actions-refused": {"count": 3, "ago": 120.0},
    "service-down": {"status": 502, "component": "database", "message": "502 Bad Gateway"},
    "monitor-blind": {"source": "pods", "why": "connection refused"},
    "receiver-failing": {"receiver": "ops", "count": 5, "error": "HTTP 503 Service Unavailable"},
}  # fmt: skip

_NVSWITCH: dict[str, Value] = {
    "device": "0000:84:00.0", "message": "nvidia-nvswitch0: SXid (PCI:0000:84:00.0): 20034, Fatal, Link 30",
}  # fmt: skip
_NFS: dict[str, Value] = {"device": "nfs-01", "message": "nfs: server nfs-01 not responding, still trying"}
# Values by text, where it differs from the others of its rule.
BY_KEY: dict[str, dict[str, Value]] = {
    "gpu-cost": {"cost": "18.75 CNY", "hourly": "12.50 CNY"},
    "gpu-underused.shm-small": {"used": 62 * 2**20, "size": 64 * 2**20},
    "gpu-underused.low-batch": {"used": 11 * GIB, "size": 80 * GIB},
    "gpu-underused.data-loading": {"used": 41 * GIB, "size": 80 * GIB},
    "gpu-underused.io-wait": {"used": 41 * GIB, "size": 80 * GIB},
    "gpu-underused.unknown": {"used": 41 * GIB, "size": 80 * GIB},
    "gpu-phantom.refused": {"pod": "team-a/vit-0"},
    "gpu-fragmented.moves.advice": {"node": "gpu-02"},
    "gpu-underused.bursts": {"ratio": 0.96},
    "gpu-fault.xid-memory": {"code": 48}, "gpu-fault.xid-driver": {"code": 62}, "gpu-fault.xid-reset": {"code": 46},
    "gpu-fault.xid-reboot": {"code": 119}, "gpu-fault.xid-nvlink": {"code": 74}, "gpu-fault.xid-power": {"code": 54},
    "gpu-fault.xid-memory-contained": {"code": 94}, "gpu-fault.xid-vendor": {"code": 140},
    "gpu-fault.xid-software": {"code": 144}, "gpu-fault.xid-unknown": {"code": 999},
    "gpu-fault.xid-application": {"code": 31},
    "capacity-mismatch.device-plugin": {"capacity": 7, "cards": 8, "allocatable": 7},
    "registry-unreachable.node-cannot-connect": {"error": "connection refused"},
    "registry-unreachable.node-does-not-trust": {"error": "certificate signed by unknown authority"},
    "registry-unreachable.registry-down": {"error": "HTTP 503"},
    "pod-pending.no-single-node-fits": {"message": "0/40 nodes are available: 40 Insufficient nvidia.com/gpu."},
    "pod-pending.taint": {
        "message": "0/40 nodes are available: 40 node(s) had untolerated taint {dedicated: training}."},
    "pod-pending.quota": {"message": "queue resource quota insufficient: insufficient nvidia.com/gpu"},
    "pod-pending.gang-incomplete": {"message": "pod group is not ready, 2 Pending, 4 minAvailable"},
    "pod-pending.device-claim": {"message": "0/40 nodes are available: 40 cannot allocate all claims."},
    "pod-pending.vgpu": {"message": "0/40 nodes are available: 40 CardInsufficientMemory."},
    "pod-pending.topology": {"message": "topology \"default\" doesn't allow to fit any of 2 pod(s)"},
    "distribute": {"workers": 2, "count": 4, "each": 4},
    "pod-pending.selector": {"message": "0/40 nodes are available: 40 node(s) didn't match Pod's node selector."},
    "pod-pending.volume": {"message": "0/40 nodes are available: persistentvolumeclaim \"data\" not found."},
    "pod-pending.unschedulable-other": {"message": "0/40 nodes are available: 40 node(s) were unschedulable."},
    "pod-stuck-creating.config-missing": {"name": "bert-config"},
    "pod-stuck-terminating.d-state": {"state": "D"},
    "pod-start-failed.program": {"code": 1},
    "quota-exhausted.queue": {"name": "vc-a"},
    "shm-pressure.default-size": {"used": 12 * 2**20, "size": 64 * 2**20, "wanted": "8Gi"},
    "disk-full.images": {"share": 0.97},
    "disk-inodes": {"used": 30_070_000},
    "disk-part.images": {"share": 0.67}, "disk-part.container-layers": {"share": 0.67},
    "disk-part.logs": {"share": 0.67}, "disk-part.volumes": {"share": 0.67}, "disk-part.datasets": {"share": 0.67},
    "disk-part.other": {"share": 0.67},
    "disk-image.unused": {"bytes": 48 * GIB, "image": "harbor.lab/team-b/old:1.4"},
    "disk-image.used": {"bytes": 42 * GIB},
    "node-condition.gpu-missing": {"condition": "GpuCountMismatch", "message": "7 of 8 GPUs found"},
    "node-condition.gpu-memory": {"condition": "GpuMemoryUnhealthy", "message": "row remapping failed on GPU 3"},
    "node-condition.gpu-link": {"condition": "NVLinkUnhealthy", "message": "link 4 of GPU 3 is down"},
    "node-condition.gpu-driver": {"condition": "GpuDriverUnhealthy", "message": "nvidia-smi does not respond"},
    "node-condition.gpu-throttled": {"condition": "GpuThrottled", "message": "HW slowdown of GPU 3"},
    "node-condition.gpu-unhealthy": {"condition": "GpuUnhealthy", "message": "DCGM health check failed on GPU 3"},
    "node-condition.kernel": {"condition": "KernelDeadlock", "message": "task docker:7 blocked for more than 120 s"},
    "node-condition.filesystem": {"condition": "ReadonlyFilesystem", "message": "Filesystem is read-only"},
    "node-condition.runtime": {"condition": "FrequentContainerdRestart", "message": "containerd restarts frequently"},
    "node-condition.kubelet": {"condition": "FrequentKubeletRestart", "message": "kubelet restarts frequently"},
    "node-condition.network": {"condition": "NetworkUnavailable", "message": "the route to the node is missing"},
    "node-condition.processes": {"condition": "PIDPressure", "message": "32,700 of 32,768 process ids in use"},
    "node-condition.inodes": {"condition": "InodesPressure", "message": "inodes of / are used up"},
    "node-condition.clock": {"condition": "NTPProblem", "message": "the clock is 12 s off"},
    "node-condition.isolated": {"condition": "nvsentinel/unhealthy", "message": "GPU 3 failed its health check"},
    "node-condition.reported": {"condition": "DcgmUnhealthy", "message": "health check failed"},
    "node-condition.maintenance": {"condition": "MaintenanceScheduled", "message": "window from 02:00 to 04:00"},
    "kernel-fault.memory-error": {"device": "DIMM_A1", "message": "EDAC MC0: 4 UE memory read error on DIMM_A1"},
    "kernel-fault.memory-corrected": {"device": "DIMM_A1", "message": "EDAC MC0: 4 CE memory read error on DIMM_A1"},
    "kernel-fault.pcie-error": {"device": "0000:3b:00.0", "message": "pcieport 0000:3a:00.0: AER: Uncorrected error"},
    "kernel-fault.pcie-corrected": {"device": "0000:3b:00.0", "message": "pcieport 0000:3a:00.0: AER: Corrected error"},
    "kernel-fault.filesystem-error": {"message": "EXT4-fs error (device nvme0n1): ext4_lookup: deleted inode"},
    "kernel-fault.filesystem-read-only": {"message": "EXT4-fs (nvme0n1): Remounting filesystem read-only"},
    "kernel-fault.hung-task": {"device": "python:41235", "message": "task python:41235 blocked for more than 120s"},
    "kernel-fault.cpu-lockup": {"device": "CPU 12", "message": "watchdog: BUG: soft lockup - CPU#12 stuck for 26s"},
    "kernel-fault.node-out-of-memory": {"device": "python (41235)", "message": "Out of memory: Killed process 41235"},
    "kernel-fault.container-out-of-memory": {
        "device": "python (41235)", "message": "Memory cgroup out of memory: Killed process 41235 (python)"},
    "kernel-fault.nvswitch-reboot": _NVSWITCH, "kernel-fault.nvswitch-reset": _NVSWITCH,
    "kernel-fault.nvswitch-vendor": _NVSWITCH, "kernel-fault.nvswitch-harmless": _NVSWITCH,
    "kernel-fault.nfs-not-responding": _NFS, "kernel-fault.nfs-server": _NFS,
    "service-down.refused": {"message": "Connection refused"},
    "service-down.timeout": {"message": "no complete answer within 5 s"},
    "service-down.dns": {"message": "Name or service not known"},
    "service-down.tls": {"message": "certificate has expired"},
    "service-down.read-only": {"service": "database", "target": "postgresql://db.lab:5432/", "message": "in recovery"},
    "service-down.component": {"service": "harbor", "target": "https://harbor.lab/", "message": "database: unhealthy"},
    "monitor-blind.state": {"source": "daemon.state", "why": "No space left on device"},
    "monitor-blind.state-damaged": {"source": "alerts.sqlite", "why": "database disk image is malformed"},
    "monitor-blind.state-newer": {"source": "alerts.sqlite", "why": "version 9 instead of 8"},
    "monitor-blind.state-size": {"source": "/var/lib/gpuwarden", "why": "2.1 GiB of at most 2 GiB"},
    "monitor-blind.agents": {"source": "agents", "why": "40 of 40 silent"},
    "monitor-blind.detection": {"source": "rules", "why": "database is locked"},
    "monitor-blind.source": {"source": "harbor", "why": "connection refused"},
}  # fmt: skip


def sample_value(rule: str, headline: str, key: str, template: str, name: str) -> Value:
    """Value of a field in a text of the finding with this headline. Raise KeyError for a field that the tables lack."""
    if name == "pod" and name not in BY_KEY.get(key, {}):
        return POD_NAME if "{namespace}" in template else POD_IN_NAMESPACE
    for table in (BY_KEY.get(key, {}), BY_KEY.get(headline, {}), BY_RULE.get(rule, {})):
        if name in table:
            return table[name]
    return COMMON[name]
