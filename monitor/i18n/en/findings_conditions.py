"""English: text of the rule about conditions and taints that other tools set on nodes."""

from __future__ import annotations

_CHECK_GPU = (
    "Keep new pods off the node (kubectl cordon {node}), let its jobs end or move, and check: ssh {node} nvidia-smi "
    "-q; "
    "dmesg -T | grep -i -e NVRM -e Xid"
)

WORDS: dict[str, str] = {
    "rule.node-condition": "Node marked as faulty",
    "doc.node-condition": (
        "Another tool, such as node-problem-detector, NVSentinel or the cloud, has marked a node as faulty by a "
        "condition or "
        "taint. A condition that is not in the table is reported only if its name says which status is a fault "
        "(`SomethingUnhealthy`, `SomethingReady`). Suppressed where a finding of our own says the same."
    ),
    "doc.node-condition.severity": (
        "warning; critical for lost GPUs, GPU memory, XIDs, the kernel and file systems; info for maintenance"
    ),
    "doc.node-condition.incident": "A node with the condition GpuXidError stayed ready, and nothing was reported.",
    "doc.node-condition.limit.ignored": "Condition types and taint keys that are not reported; shell patterns.",
    "doc.node-condition.limit.conditions": (
        "Cause by `TYPE=True` or `TYPE=False`, for conditions that the table lacks or has wrong."
    ),
    "doc.node-condition.limit.taints": "Keys of further taints that are set on faulty nodes; shell patterns.",
    "node-condition.gpu-missing": "Node {node} has lost a GPU, according to {condition}.",
    "node-condition.gpu-memory": "A GPU of node {node} has memory errors, according to {condition}.",
    "node-condition.gpu-error": "A GPU of node {node} reports an error (XID), according to {condition}.",
    "node-condition.gpu-link": "NVLink or InfiniBand of node {node} is disturbed, according to {condition}.",
    "node-condition.gpu-driver": "The GPU driver or device plugin of node {node} fails, according to {condition}.",
    "node-condition.gpu-throttled": "A GPU of node {node} is throttled, according to {condition}.",
    "node-condition.gpu-unhealthy": "A GPU of node {node} is unhealthy, according to {condition}.",
    "node-condition.kernel": "The kernel of node {node} is in trouble, according to {condition}.",
    "node-condition.filesystem": (
        "A disk or file system of node {node} is damaged or read-only, according to {condition}."
    ),
    "node-condition.runtime": (
        "The container runtime of node {node} hangs or keeps restarting, according to {condition}."
    ),
    "node-condition.kubelet": "The kubelet of node {node} is unhealthy or keeps restarting, according to {condition}.",
    "node-condition.network": "The network of node {node} is disturbed, according to {condition}.",
    "node-condition.processes": "Node {node} is short of process ids or open files, according to {condition}.",
    "node-condition.inodes": "Node {node} is short of inodes, according to {condition}.",
    "node-condition.clock": "The clock of node {node} is not synchronized, according to {condition}.",
    "node-condition.isolated": "Another tool has isolated node {node} because of a fault: taint {condition}.",
    "node-condition.reported": "Another tool reports a fault of node {node}: {condition}.",
    "node-condition.maintenance": "Node {node} is to be maintained, checked or stopped, according to {condition}.",
    "node-condition.says": "It says: {message}",
    "node-condition.taint": "The taint: {message}",
    "node-condition.gpu-missing.advice": (
        "Compare nvidia-smi -L on {node} with the number of GPUs it should have. Reboot it; if the GPU stays lost, "
        "have "
        "the hardware checked."
    ),
    "node-condition.gpu-memory.advice": (
        "Drain node {node} and reset the GPU (nvidia-smi -r) or reboot, so that rows are remapped. Have the GPU "
        "replaced if "
        "the errors return."
    ),
    "node-condition.gpu-error.advice": _CHECK_GPU,
    "node-condition.gpu-link.advice": (
        "Check the links on {node}: nvidia-smi nvlink -s; ibstat; systemctl status nvidia-fabricmanager. Jobs over "
        "several GPUs are slow or hang meanwhile."
    ),
    "node-condition.gpu-driver.advice": (
        "Does nvidia-smi on {node} respond? Does the pod of the device plugin run there? kubectl get pod -A -o "
        "wide "
        "--field-selector spec.nodeName={node}"
    ),
    "node-condition.gpu-throttled.advice": (
        "Check cooling and power supply of {node}: nvidia-smi -q -d PERFORMANCE,TEMPERATURE"
    ),
    "node-condition.gpu-unhealthy.advice": _CHECK_GPU,
    "node-condition.kernel.advice": (
        "Read dmesg -T on {node}. A node whose tasks are stuck needs a reboot: kubectl drain {node} "
        "--ignore-daemonsets, "
        "then reboot it."
    ),
    "node-condition.filesystem.advice": (
        "Find the damaged file system: ssh {node} dmesg -T | grep -i -e 'I/O error' -e read-only; then drain the "
        "node, and "
        "check or replace the disk."
    ),
    "node-condition.runtime.advice": (
        "Read its log: ssh {node} journalctl -u containerd -u docker -n 200; restart it once its cause is known."
    ),
    "node-condition.kubelet.advice": "Read its log: ssh {node} journalctl -u kubelet -n 200",
    "node-condition.network.advice": (
        "Check the network plugin's pod there, and the kernel log of {node}: kubectl get pod -n kube-system -o wide "
        "--field-selector spec.nodeName={node}"
    ),
    "node-condition.processes.advice": (
        "Find what has the most processes or open files: ssh {node} ps -eo user,nlwp,cmd --sort=-nlwp | head; set a "
        "limit "
        "(podPidsLimit of the kubelet)."
    ),
    "node-condition.inodes.advice": "Find what has the most files: ssh {node} df -i; du --inodes -x / | sort -n | tail",
    "node-condition.clock.advice": "Check time synchronization: ssh {node} timedatectl; chronyc tracking",
    "node-condition.isolated.advice": (
        "Find out what the tool has seen (kubectl describe node {node}) and repair it; the tool removes the taint "
        "then. Do "
        "not tolerate the taint."
    ),
    "node-condition.reported.advice": (
        "See who set it and why: kubectl describe node {node}. If it is harmless, add it to "
        "daemon.rules.node_condition.ignored."
    ),
    "node-condition.maintenance.advice": (
        "Let jobs on {node} end or move in time: kubectl drain {node} --ignore-daemonsets"
    ),
}
