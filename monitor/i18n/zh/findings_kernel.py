"""Chinese: text of the rule about the kernel log."""

from __future__ import annotations

_LIMITS = {
    "memory_error": "无法纠正的内存或 CPU 错误",
    "memory_corrected": "已纠正的内存或 CPU 错误",
    "pcie_error": "无法纠正的 PCIe 错误",
    "pcie_corrected": "已纠正的 PCIe 错误",
    "disk_error": "磁盘 I/O 错误",
    "filesystem_error": "文件系统错误",
    "filesystem_read_only": "文件系统变为只读",
    "nfs_not_responding": "NFS 服务器无响应（尚未恢复）",
    "hung_task": "任务阻塞数分钟",
    "cpu_lockup": "CPU 卡死",
    "nvswitch_reboot": "需要重启节点的 NVSwitch 错误",
    "nvswitch_reset": "需要重置 GPU 的 NVSwitch 错误",
    "nvswitch_vendor": "含义不明的 NVSwitch 错误",
    "nvswitch_harmless": "无需处理的 NVSwitch 错误",
    "node_out_of_memory": "节点内存耗尽而被杀的进程",
    "container_out_of_memory": "容器超出内存限额而被杀的进程",
}

WORDS: dict[str, str] = {
    # kernel-fault
    "rule.kernel-fault": "内核报告故障",
    "doc.kernel-fault": "节点的内核日志出现内存、PCIe、NVSwitch、磁盘或网络文件系统错误，CPU 或任务卡死，或 OOM。",
    "doc.kernel-fault.severity": "取决于原因，从严重到提示",
    "doc.kernel-fault.incident": "硬件损坏，作业失败数天后才被发现。",
    **{f"doc.kernel-fault.limit.{name}": f"在此时间内达到此次数才告警：{what}。" for name, what in _LIMITS.items()},
    "doc.kernel-fault.limit.everywhere": "至少几个节点连不上同一台 NFS 服务器时，认定是服务器的问题。",
    "kernel-fault.line": "内核日志，{count} 行：{message}",
    "kernel-fault.memory-error": "{node} 的内存或 CPU 出现 {count} 个硬件无法纠正的错误（{device}）。",
    "kernel-fault.memory-error.advice": (
        "腾空 {node}：结果可能是错的，节点也可能崩溃。找出故障模块（ras-mc-ctl --errors，或 BMC 事件日志："
        "ipmitool sel elist），联系厂商更换。"
    ),
    "kernel-fault.memory-corrected": "{node} 的硬件纠正了 {count} 个内存或 CPU 错误。",
    "kernel-fault.memory-corrected.advice": (
        "暂无损失。找出模块（{device}；在 {node} 上执行 ras-mc-ctl --errors），在它损坏之前联系厂商更换。"
    ),
    "kernel-fault.pcie-error": "{node} 的 PCIe 设备 {device} 出现 {count} 个无法纠正的错误。",
    "kernel-fault.pcie-error.advice": (
        "腾空并重启 {node}：lspci -s {device} 显示是哪个设备。如果再次出现，重新插拔它，然后联系厂商。"
    ),
    "kernel-fault.pcie-corrected": "{node} 的 PCIe 设备 {device} 出现 {count} 个已纠正的错误。",
    "kernel-fault.pcie-corrected.advice": (
        "暂时无需处理：链路会重传，只影响速度。下次维护 {node} 时检查 {device} 的插槽和转接卡。"
    ),
    "kernel-fault.nvswitch-reboot": "{node} 的 NVSwitch {device} 故障（SXid {code}）：重启节点才能恢复。",
    "kernel-fault.nvswitch-reboot.advice": (
        "腾空并重启 {node}：kubectl drain {node} --ignore-daemonsets。如果再次出现 SXid {code}，联系厂商。"
    ),
    "kernel-fault.nvswitch-reset": (
        "{node} 的 NVSwitch {device} 出现致命错误（SXid {code}）：用到其 NVLink 的作业会失败。"
    ),
    "kernel-fault.nvswitch-reset.advice": (
        "停掉 {node} 的作业，然后一起重置它的所有 GPU：nvidia-smi --gpu-reset。如果再次出现 SXid {code}，联系厂商。"
    ),
    "kernel-fault.nvswitch-vendor": "{node} 的 NVSwitch {device} 报告 SXid {code}，文档没有说明其含义。",
    "kernel-fault.nvswitch-vendor.advice": (
        "联系 {node} 的厂商，附上 nvidia-bug-report.sh 的输出，并注明 SXid {code}。"
    ),
    "kernel-fault.nvswitch-harmless": "{node} 的 NVSwitch {device} 出现 {count} 个非致命错误（最近：SXid {code}）。",
    "kernel-fault.nvswitch-harmless.advice": (
        "无需处理。如果 {node} 上的次数持续增加，检查它的 NVLink：nvidia-smi nvlink -e"
    ),
    "kernel-fault.disk-error": "{node} 的磁盘 {device} 出现 {count} 个 I/O 错误（{mount}）。",
    "kernel-fault.disk-error.advice": (
        "备份 {node} 上 {mount} 的数据，然后检查磁盘（smartctl -a /dev/{device}；nvme smart-log），联系厂商更换。"
    ),
    "kernel-fault.filesystem-error": "{node} 的 {device} 上的文件系统已损坏（{mount}）。",
    "kernel-fault.filesystem-error.advice": (
        "腾空 {node}，卸载 {mount} 并检查文件系统（fsck 或 xfs_repair）。同时检查磁盘：smartctl -a /dev/{device}"
    ),
    "kernel-fault.filesystem-read-only": (
        "{node} 因错误把 {device} 上的文件系统改为只读或关闭（{mount}）：无法再写入。"
    ),
    "kernel-fault.filesystem-read-only.advice": (
        "腾空 {node}，检查磁盘（smartctl -a /dev/{device}）和文件系统（fsck 或 xfs_repair），然后重启。"
    ),
    "kernel-fault.nfs-not-responding": "NFS 服务器 {device} 对 {node} 没有响应（{mount}）。",
    "kernel-fault.nfs-server": "NFS 服务器 {device} 对 {count} 个节点没有响应（{mount}）。",
    "kernel-fault.nfs-not-responding.advice": (
        "从 {node} 检查服务器和网络：ping {device}；nfsstat -m。{device} 恢复后进程会继续，重启进程没有用。"
    ),
    "kernel-fault.hung-task": "{node} 上的任务 {device} 已阻塞数分钟。",
    "kernel-fault.hung-task.advice": (
        "它在等磁盘、网络文件系统或驱动：在 {node} 上用 dmesg -T 查看位置。一直阻塞的任务只有重启才能结束：先腾空 "
        "{node}。"
    ),
    "kernel-fault.cpu-lockup": "{node} 的 {device} 在内核中卡死。",
    "kernel-fault.cpu-lockup.advice": (
        "腾空并重启 {node}。如果再次出现，更新内核和 dmesg -T 里提到的驱动，然后联系厂商。"
    ),
    "kernel-fault.node-out-of-memory": "{node} 内存耗尽：内核杀掉了 {count} 个进程，最近是 {device}。",
    "kernel-fault.node-out-of-memory.advice": (
        "重启被杀的作业。找出哪些 Pod 占用内存（kubectl top pod -A --field-selector spec.nodeName={node}）"
        "并设置内存限额；"
        "为系统预留内存（kubelet --system-reserved）。"
    ),
    "kernel-fault.container-out-of-memory": ("{node} 上 {pod} 的容器 {container} 超出内存限额：内核杀掉了 {device}。"),
    "kernel-fault.container-out-of-memory.advice": (
        "调高内存限额后重启作业，或让它少用内存：减少数据加载进程，缩小 /dev/shm。"
        "容器 {container} 可能缺了被杀的进程仍在运行。"
    ),
}
