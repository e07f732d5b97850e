"""English: text of the rule about the kernel log."""

from __future__ import annotations

_LIMITS = {
    "memory_error": "memory or CPU errors that could not be corrected",
    "memory_corrected": "corrected memory or CPU errors",
    "pcie_error": "PCIe errors that could not be corrected",
    "pcie_corrected": "corrected PCIe errors",
    "disk_error": "I/O errors of a disk",
    "filesystem_error": "errors of a filesystem",
    "filesystem_read_only": "filesystems that became read-only",
    "nfs_not_responding": "messages that an NFS server does not respond, unless it has recovered",
    "hung_task": "tasks blocked for minutes",
    "cpu_lockup": "CPUs that are stuck",
    "nvswitch_reboot": "NVSwitch errors that require a reboot",
    "nvswitch_reset": "NVSwitch errors that require a reset of GPUs",
    "nvswitch_vendor": "NVSwitch errors of unknown meaning",
    "nvswitch_harmless": "NVSwitch errors that require no action",
    "node_out_of_memory": "processes killed because the node had no memory left",
    "container_out_of_memory": "processes killed because a container exceeded its memory limit",
}

WORDS: dict[str, str] = {
    # kernel-fault
    "rule.kernel-fault": "Kernel reports a fault",
    "doc.kernel-fault": (
        "The kernel log of a node has errors of memory, PCIe, NVSwitches, disks or network filesystems, stuck CPUs or "
        "tasks, or out-of-memory kills."
    ),
    "doc.kernel-fault.severity": "depends on the cause, critical to info",
    "doc.kernel-fault.incident": "Broken hardware was noticed only when jobs had failed for days.",
    **{
        f"doc.kernel-fault.limit.{name}": f"Reported: this many {what}, in this time." for name, what in _LIMITS.items()
    },
    "doc.kernel-fault.limit.everywhere": "Number of nodes that miss an NFS server from which the server is at fault.",
    "kernel-fault.line": "Kernel log, {count:line|lines}: {message}",
    "kernel-fault.memory-error": (
        "The memory or CPU of {node} had {count:error|errors} that the hardware could not correct ({device})."
    ),
    "kernel-fault.memory-error.advice": (
        "Drain {node}: results may be wrong and it may crash. Find the module (ras-mc-ctl --errors, or the BMC's event "
        "log: ipmitool sel elist) and contact the vendor to replace it."
    ),
    "kernel-fault.memory-corrected": (
        "The hardware of {node} corrected {count:memory or CPU error|memory or CPU errors}."
    ),
    "kernel-fault.memory-corrected.advice": (
        "Nothing is lost yet. Find the module ({device}; ras-mc-ctl --errors on {node}) and contact the vendor to "
        "replace "
        "it before it fails."
    ),
    "kernel-fault.pcie-error": "PCIe device {device} of {node} had {count:uncorrectable error|uncorrectable errors}.",
    "kernel-fault.pcie-error.advice": (
        "Drain and reboot {node}: lspci -s {device} shows the device. If the errors return, reseat it, then contact "
        "the "
        "vendor."
    ),
    "kernel-fault.pcie-corrected": "PCIe device {device} of {node} had {count:corrected error|corrected errors}.",
    "kernel-fault.pcie-corrected.advice": (
        "No action now: the link repeats what was lost, which costs speed. At the next maintenance of {node}, check "
        "the "
        "seating and riser of {device}."
    ),
    "kernel-fault.nvswitch-reboot": "NVSwitch {device} of {node} failed (SXid {code}): only a reboot recovers it.",
    "kernel-fault.nvswitch-reboot.advice": (
        "Drain and reboot {node}: kubectl drain {node} --ignore-daemonsets. If SXid {code} returns, contact the vendor."
    ),
    "kernel-fault.nvswitch-reset": (
        "NVSwitch {device} of {node} had a fatal error (SXid {code}): jobs on its NVLinks fail."
    ),
    "kernel-fault.nvswitch-reset.advice": (
        "Stop the jobs of {node}, then reset all of its GPUs together: nvidia-smi --gpu-reset. If SXid {code} returns, "
        "contact the vendor."
    ),
    "kernel-fault.nvswitch-vendor": "NVSwitch {device} of {node} reports SXid {code}, whose meaning is not documented.",
    "kernel-fault.nvswitch-vendor.advice": (
        "Contact the vendor of {node} with the output of nvidia-bug-report.sh, and quote SXid {code}."
    ),
    "kernel-fault.nvswitch-harmless": (
        "NVSwitch {device} of {node} had {count:error|errors} that it survived (last: SXid {code})."
    ),
    "kernel-fault.nvswitch-harmless.advice": (
        "No action needed. If the number keeps growing on {node}, check its NVLinks: nvidia-smi nvlink -e"
    ),
    "kernel-fault.disk-error": "Disk {device} of {node} had {count:I/O error|I/O errors} ({mount}).",
    "kernel-fault.disk-error.advice": (
        "Back up what is on {mount} of {node}, then check the disk (smartctl -a /dev/{device}; nvme smart-log) and "
        "contact "
        "the vendor to replace it."
    ),
    "kernel-fault.filesystem-error": "The filesystem on {device} of {node} is damaged ({mount}).",
    "kernel-fault.filesystem-error.advice": (
        "Drain {node}, unmount {mount} and check the filesystem (fsck or xfs_repair). Check the disk as well: "
        "smartctl -a "
        "/dev/{device}"
    ),
    "kernel-fault.filesystem-read-only": (
        "{node} has made the filesystem on {device} read-only or shut it down after an error ({mount}): nothing can be "
        "written to it."
    ),
    "kernel-fault.filesystem-read-only.advice": (
        "Drain {node}, check the disk (smartctl -a /dev/{device}) and the filesystem (fsck or xfs_repair), then reboot."
    ),
    "kernel-fault.nfs-not-responding": "NFS server {device} does not respond to {node} ({mount}).",
    "kernel-fault.nfs-server": "NFS server {device} does not respond to {count:node|nodes} ({mount}).",
    "kernel-fault.nfs-not-responding.advice": (
        "Check the server and the network from {node}: ping {device}; nfsstat -m. Processes continue once {device} "
        "responds; restarting them does not help."
    ),
    "kernel-fault.hung-task": "Task {device} on {node} has been blocked for minutes.",
    "kernel-fault.hung-task.advice": (
        "It waits for a disk, a network filesystem or a driver: on {node}, dmesg -T shows where. A task that stays "
        "blocked "
        "ends only with a reboot: drain {node} first."
    ),
    "kernel-fault.cpu-lockup": "{device} of {node} was stuck in the kernel.",
    "kernel-fault.cpu-lockup.advice": (
        "Drain and reboot {node}. If it happens again, update the kernel and the drivers that dmesg -T names, then "
        "contact "
        "the vendor."
    ),
    "kernel-fault.node-out-of-memory": (
        "{node} ran out of memory: the kernel killed {count:process|processes}, last {device}."
    ),
    "kernel-fault.node-out-of-memory.advice": (
        "Restart the killed job. Find which pods use the memory (kubectl top pod -A --field-selector "
        "spec.nodeName={node}) "
        "and set memory limits; reserve memory for the system (kubelet --system-reserved)."
    ),
    "kernel-fault.container-out-of-memory": (
        "Container {container} of {pod} on {node} exceeded its memory limit: the kernel killed {device}."
    ),
    "kernel-fault.container-out-of-memory.advice": (
        "Restart the job with a higher memory limit, or let it use less: fewer data loader workers, smaller /dev/shm. "
        "Container {container} may still run without the killed process."
    ),
}
