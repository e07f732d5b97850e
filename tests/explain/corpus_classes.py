"""Class of the corpus that an explanation names, by the key of its headline."""

from __future__ import annotations

from monitor.explain.model import Explanation

UNKNOWN = "unknown"
# Families of keys whose members have the name of their class; exceptions follow in _BY_KEY.
_FAMILIES = ("pull_", "start_", "mount_", "sandbox_", "crash_", "sched_")
_BY_KEY = {
    "pull_connection_refused": "refused",
    "pull_kubelet_limit": "pull-qps",
    "mount_access_denied": "nfs-denied",
    "mount_unreachable": "storage-unreachable",
    "mount_stale": "mount-dead",
    "mount_multi_attach": "volume-elsewhere",
    "mount_claim_missing": "pvc-missing",
    "mount_host_path": "hostpath-missing",
    "mount_driver_missing": "csi-missing",
    "mount_permission": "mount-permission",
    "mount_timed_out": "mount-timeout",
    "sandbox_no_address": "cni-ip",
    "sandbox_network": "cni",
    "start_driver_broken": "gpu-driver",
    "mount_attach_failed": "attach-failed",
    "crash_inotify": "inotify",
    "start_mount_kind": "file-mount",
    "start_no_start_file": "command-missing",
    "start_hook": "app",
    "start_sysctl": "bad-configuration",
    "start_relabel": "mount-permission",
    "crash_terminated": "sigterm",
    "crash_host_memory": "out-of-memory",
    "crash_interrupted": "sigterm",
    "crash_asked_to_stop": "sigterm",
    "crash_bad_executable": "not-executable",
    "crash_no_command": "command-missing",
    "crash_illegal": "illegal-instruction",
    "crash_native_crash": "segfault",
    "crash_arguments": "usage",
    "crash_gpu_memory": "cuda-oom",
    "crash_no_module": "missing-module",
    "crash_no_file": "missing-file",
    "crash_error": "app",
    "crash_usage": "app",
    "crash_aborted": "app",
    "crash_signal": "app",
    "crash_lost": UNKNOWN,
    "config_root": "root-user",
    "config_key_missing": "key-missing",
    "config_other": UNKNOWN,
    "devices_unavailable": "device-plugin",
    "devices_ill": "device-plugin",
    "devices_failed": "device-plugin",
    "node_refused": "admission-resources",
    "admission_topology": "admission-topology",
    "admission_affinity": "admission-affinity",
    "admission_other": "admission",
    "evicted": "evicted-memory",
    "evicted_disk": "evicted-disk",
    "evicted_emptydir": "evicted-emptydir",
    "evicted_own_limit": "evicted-own-limit",
    "evicted_pids": "evicted-pids",
    "evicted_other": "evicted",
    "preempted": "preempted",
    "preempted_critical": "preempted",
    "node_went_down": "node-shutdown",
    "failed": UNKNOWN,
    "not_enough_gpus": "not-enough-gpus",
    "no_gpu_nodes": "resource-absent",
    "no_single_node_fits": "not-enough-gpus",
    "never_on_one_node": "not-enough-gpus",
    "short_of_cpu": "cpu",
    "short_of_memory": "memory",
    "short_of_pods": "too-many-pods",
    "short_of_resource": "resource-absent",
    "taint": "taint",
    "taint_trouble": "taint",
    "selector": "selector",
    "nodes_cordoned": "cordoned",
    "nodes_not_ready": "node-not-ready",
    "pod_affinity": "affinity",
    "host_ports": "ports",
    "topology_spread": "spread",
    "claim_missing": "pvc-missing",
    "claim_unbound": "pvc-unbound",
    "volume_elsewhere": "volume-node-affinity",
    "volume_unavailable": "pvc-unbound",
    "gang_missing": "gang-incomplete",
    "gang_kueue": "gang-incomplete",
    "gang_too_large": "gang-waiting",
    "gang_unsaid": UNKNOWN,
    "sched_device_claim": "claim",
    "sched_device_claim_missing": "claim-missing",
    "sched_device_claim_driver": "claim-driver",
    "sched_vgpu_card": "vgpu-cardtype",
    "sched_volume_limit": "attach-limit",
    "sched_gpus": "not-enough-gpus",
    "sched_pods": "too-many-pods",
    "sched_resource": "resource-absent",
    "sched_not_ready": "node-not-ready",
    "sched_bad_node": "node-not-ready",
    "gated": "gated",
    "queue_closed": "queue-closed",
    "queue_closed_why": "queue-closed",
    "queue_missing": "queue-missing",
    "queue_full": "queue-full",
    "queue_never": "queue-too-small",
    "kueue_waits": "queue-full",
    "kueue_unclear": UNKNOWN,
    "kueue_short": "queue-full",
    "kueue_never": "queue-too-small",
    "quota_exceeded": "quota",
    "quota_unspecified": "quota-unset",
    "limit_range": "limit-range",
    "webhook_denied": "webhook",
    "webhook_down": "webhook-down",
    "pod_security": "pod-security",
    "denied_other": UNKNOWN,
    "scheduler_disagrees": UNKNOWN,
    "scheduler_says": UNKNOWN,
    "unknown_name": UNKNOWN,
    "pending_fresh": UNKNOWN,
    "no_scheduler": "no-scheduler",
    "no_nodes": "no-nodes",
}
_KINDS = {"Secret": "secret-missing", "ConfigMap": "config-missing", "ServiceAccount": "service-account"}
_UNSAID = ("_other", "_unknown", "start_long", "start_normal")


def class_of(explanation: Explanation) -> str:
    """The class that the explanation names, or "unknown"."""
    key, values = str(explanation.headline.key), explanation.headline.values
    if key in ("config_object_missing", "object_missing"):
        return _KINDS.get(str(values.get("kind")), "bad-configuration")
    if key in _BY_KEY:
        return _BY_KEY[key]
    if key.endswith(_UNSAID):
        return UNKNOWN
    for family in _FAMILIES:
        if key.startswith(family):
            return key.removeprefix(family).replace("_", "-")
    return f"?{key}"
