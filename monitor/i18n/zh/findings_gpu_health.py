"""Chinese: text of the rules about GPU health and utilisation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # gpu-fault
    "rule.gpu-fault": "GPU 故障",
    "doc.gpu-fault": "GPU 或节点驱动故障：XID、ECC 错误、显存行重映射失败，或没有响应。",
    "doc.gpu-fault.severity": "取决于原因，从严重到提示",
    "doc.gpu-fault.incident": "服务器反复出现不可用状态。",
    "doc.gpu-fault.limit.hung_after": "驱动多久没有响应才告警。",
    "doc.gpu-fault.limit.missing_after": "GPU 缺失多久才告警。",
    "doc.gpu-fault.limit.xid_hold": "XID 出现后持续告警多久。",
    "doc.gpu-fault.limit.xid_application_hold": "同上，针对程序类 XID。",
    "doc.gpu-fault.limit.xid_application": "按程序错误处理的 XID，优先于 NVIDIA 的目录。",
    "doc.gpu-fault.limit.xid_memory_contained": "同上，按已隔离的显存错误处理：方便时重置。",
    "doc.gpu-fault.limit.xid_memory": "同上，按显存不可信处理：重置 GPU。",
    "doc.gpu-fault.limit.xid_nvlink": "同上，按 NVLink 错误处理。",
    "doc.gpu-fault.limit.xid_off_bus": "同上，按 GPU 从总线掉线处理：重启节点。",
    "doc.gpu-fault.limit.xid_driver": "同上，按驱动或固件错误处理：重置，不行则重启。",
    "doc.gpu-fault.limit.xid_reset": "同上：重置 GPU。",
    "doc.gpu-fault.limit.xid_reboot": "同上：重启节点。",
    "doc.gpu-fault.limit.xid_vendor": "同上：联系厂商。",
    "doc.gpu-fault.limit.xid_ignored": "忽略的 XID。",
    "doc.gpu-fault.limit.xid_thresholds": "反复出现才告警的 XID，例如 `31: 5 in 1h`。",
    "gpu-fault.driver-hung": "{node} 的 GPU 驱动已 {seconds:duration}没有响应：看不到它的任何 GPU。",
    "gpu-fault.driver-hung.advice": (
        "在 {node} 上执行：dmesg -T | grep -i nvrm | tail。卡死的驱动不会自己恢复："
        "kubectl drain {node} --ignore-daemonsets，然后重启。"
    ),
    "gpu-fault.card-lost": "{node} 的 GPU {gpu} 丢失：{error}。",
    "gpu-fault.card-lost.advice": "腾空 {node} 并断电重启（热重启常常不够）。如果 GPU {gpu} 再次丢失，请更换。",
    "gpu-fault.xid-off-bus": "{node} 的 GPU {gpu} 从总线掉线（XID {code}）。",
    "gpu-fault.xid-off-bus.advice": "腾空并重启 {node}。如果 GPU {gpu} 再次掉线，检查供电和插槽，然后更换。",
    "gpu-fault.cards-missing": (
        "{node} 只有 {cards} 张 GPU，而 Kubernetes 记为 {capacity} 张，已 {seconds:duration}。"
    ),
    "gpu-fault.cards-missing.advice": (
        "在 {node} 上执行：lspci | grep -i nvidia 和 nvidia-smi -L，看缺少哪张 GPU。腾空并重启 {node}。"
    ),
    "gpu-fault.remap-failed": "{node} 的 GPU {gpu} 显存损坏，已无法再重映射。",
    "gpu-fault.remap-failed.advice": (
        "停用并更换：kubectl cordon {node}；nvidia-smi -q -i {gpu} -d ROW_REMAPPER 的输出就是凭据。"
    ),
    "gpu-fault.xid-memory": "{node} 的 GPU {gpu} 显存不可信（XID {code}）：结果可能是错的。",
    "gpu-fault.xid-memory.advice": (
        "停掉作业，然后在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}。如果再次出现，更换 GPU。"
    ),
    "gpu-fault.ecc-uncorrectable": "{node} 的 GPU {gpu} 有 {errors} 个无法纠正的显存错误。",
    "gpu-fault.ecc-uncorrectable.advice": (
        "从 checkpoint 重启作业；然后在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}。之后还有错误就更换。"
    ),
    "gpu-fault.xid-driver": "{node} 的 GPU {gpu} 驱动或固件出错（XID {code}）。",
    "gpu-fault.xid-driver.advice": ("在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}；不行就腾空并重启 {node}。"),
    "gpu-fault.recovery-due": "驱动要求恢复 {node} 的 GPU {gpu}：{action}。",
    "gpu-fault.recovery-due.advice": (
        "腾空 {node}，然后按要求处理：nvidia-smi --gpu-reset -i {gpu}；如果是 node_reboot 就重启。"
    ),
    "gpu-fault.xid-nvlink": "{node} 的 GPU {gpu} NVLink 出错（XID {code}）：多 GPU 作业可能卡住或变慢。",
    "gpu-fault.xid-nvlink.advice": (
        "在 {node} 上执行：nvidia-smi nvlink -e -i {gpu}；然后停掉作业，一起重置该节点所有 GPU"
        "（nvidia-smi --gpu-reset），或重启 {node}。"
    ),
    "gpu-fault.remap-pending": "{node} 的 GPU {gpu} 需要重置才能替换损坏的显存。",
    "gpu-fault.remap-pending.advice": ("等它的作业结束后，在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}"),
    "gpu-fault.xid-memory-contained": ("{node} 的 GPU {gpu} 出现显存错误，已被隔离（XID {code}），只影响当时的程序。"),
    "gpu-fault.xid-memory-contained.advice": (
        "重启失败的作业。{node} 的 GPU {gpu} 空闲后执行：nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-fault.xid-unknown": "{node} 的 GPU {gpu} 报告未归类的 XID {code}。",
    "gpu-fault.xid-unknown.advice": (
        "NVIDIA 的目录没有说明如何处理。在 {node} 上执行：dmesg -T | grep Xid，并在更新的目录里查 XID {code}；"
        "然后在 gpu-fault 的设置里给它归类。"
    ),
    "gpu-fault.xid-application": "{node} 的 GPU {gpu} 上有程序出错或被杀（XID {code}）。",
    "gpu-fault.xid-application.advice": (
        "查看 {node} 上该作业的日志并重启作业；GPU 本身无需处理。"
        "如果很多不同的作业都在 GPU {gpu} 上失败，请检测该 GPU：dcgmi diag -r 3 -i {gpu}"
    ),
    "gpu-fault.xid-reset": "{node} 的 GPU {gpu} 工作异常，重置后才能恢复（XID {code}）。",
    "gpu-fault.xid-reset.advice": (
        "停掉作业，然后在 {node} 上重置 GPU：nvidia-smi --gpu-reset -i {gpu}。如果重置失败，腾空并重启 {node}。"
    ),
    "gpu-fault.xid-reboot": "{node} 的 GPU {gpu} 要重启节点才能恢复（XID {code}）。",
    "gpu-fault.xid-reboot.advice": (
        "先停止调度：kubectl cordon {node}。等其他作业结束后腾空并重启 {node}：kubectl drain {node} --ignore-daemonsets"
    ),
    "gpu-fault.xid-vendor": "{node} 的 GPU {gpu} 报告 XID {code}，需要厂商判断。",
    "gpu-fault.xid-vendor.advice": "联系 {node} 的厂商，并附上 nvidia-bug-report.sh 的输出。",
    "gpu-fault.xid-software": "{node} 的 GPU {gpu} 需要更新软件（XID {code}）。",
    "gpu-fault.xid-software.advice": "更新 {node} 的驱动和固件；如果有虚拟机，也更新其中的驱动。",
    "gpu-fault.xid-power": "{node} 的 GPU {gpu} 供电不足（XID {code}）。",
    "gpu-fault.xid-power.advice": (
        "检查 GPU {gpu} 的供电线和插槽，以及 {node} 的电源：ipmitool sdr type 'Power Supply'"
    ),
    "gpu-fault.init-failed": "驱动无法初始化 {node} 的 GPU {gpu}。",
    "gpu-fault.init-failed.advice": (
        "腾空并重启 {node}。如果 GPU {gpu} 仍然失败，断电重启节点，然后联系厂商并附上 nvidia-bug-report.sh 的输出。"
    ),
    "gpu-fault.then.contact-vendor": (
        "如果 GPU {gpu} 再次出现 XID {code}，联系厂商并附上 nvidia-bug-report.sh 的输出。"
    ),
    "gpu-fault.then.check-program": (
        "如果同一程序再次出现 XID {code}，用 compute-sanitizer 调试它；如果是不同的程序，检测 GPU {gpu}："
        "dcgmi diag -r 3 -i {gpu}"
    ),
    "gpu-fault.then.check-software": "如果 GPU {gpu} 再次出现 XID {code}，更新 {node} 的驱动，然后向 NVIDIA 反馈。",
    "gpu-fault.then.check-link": (
        "如果再次出现 XID {code}，检查 GPU {gpu} 的 NVLink 和线缆：nvidia-smi nvlink -s -i {gpu}"
    ),
    "gpu-fault.then.restart-fabric-manager": (
        "如果没有其他 XID 而 XID {code} 再次出现，并且 {node} 有 NVSwitch：systemctl restart nvidia-fabricmanager"
    ),
    "gpu-fault.xid": "XID {code}（{name}），位置 {place}：{message}",
    "gpu-fault.line": "内核日志，位置 {place}：{error}",
    "gpu-fault.ecc": "驱动加载以来有 {errors} 个无法纠正的 ECC 错误。",
    "gpu-fault.remap-failed-seen": "显存行重映射失败。",
    "gpu-fault.remap-pending-seen": "显存行重映射待重置后生效。",
    "gpu-fault.recovery": "驱动要求：{action}。",
    "gpu-fault.hit": "Pod {pod} 正在使用它。",
    # gpu-hot
    "rule.gpu-hot": "GPU 过热或限电降频",
    "doc.gpu-hot": "GPU 因过热或供电限制而长时间降频。",
    "doc.gpu-hot.severity": "警告",
    "doc.gpu-hot.incident": "训练变慢，却不知道原因。",
    "gpu-hot.thermal": "{node} 的 GPU {gpu} 过热，已降频 {seconds:duration}。",
    "gpu-hot.thermal.advice": (
        "检查 {node} 的风扇、风道和机房温度：ipmitool sdr type fan；nvidia-smi -q -i {gpu} -d TEMPERATURE,PERFORMANCE"
    ),
    "gpu-hot.power-brake": "{node} 的电源使 GPU {gpu} 降频，已 {seconds:duration}。",
    "gpu-hot.power-brake.advice": (
        "检查 {node} 的电源和功率上限：ipmitool sdr type 'Power Supply'；"
        "在此之前可以调低 GPU {gpu} 的上限：nvidia-smi -i {gpu} -pl WATTS"
    ),
    "gpu-hot.temperature": "温度 {celsius} 摄氏度。",
    "gpu-hot.power": "功率 {watts} W，上限 {limit} W。",
    "gpu-hot.clock": "当前频率 {megahertz} MHz。",
    # gpu-underused
    "rule.gpu-underused": "GPU 利用率低",
    "doc.gpu-underused": "作业长时间只用到 GPU 的一小部分；并指出可能的瓶颈。",
    "doc.gpu-underused.severity": "警告",
    "doc.gpu-underused.incident": "GPU 在等 CPU、数据或共享内存。",
    "doc.gpu-underused.limit.below": "平均利用率低于多少算低。",
    "doc.gpu-underused.limit.window": "统计多长时间。",
    "gpu-underused.cpu-limit": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}：被 CPU 限额卡住。"
    ),
    "gpu-underused.cpu-limit.advice": ("调高 {namespace}/{pod} 的 resources.limits.cpu：一般每张 GPU 配 8 到 16 核。"),
    "gpu-underused.shm-small": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}：/dev/shm 太小。"
    ),
    "gpu-underused.shm-small.advice": (
        "给 {namespace}/{pod} 在 /dev/shm 挂一个 medium: Memory 的 emptyDir，并增加 data loader 的 num_workers。"
    ),
    "gpu-underused.io-wait": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}：节点在等磁盘。"
    ),
    "gpu-underused.io-wait.advice": (
        "把 {namespace}/{pod} 的数据集放到 {node} 的本地 SSD，或把小文件打包。在节点上执行：iostat -x 5"
    ),
    "gpu-underused.data-loading": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}，时忙时闲：在等数据。"
    ),
    "gpu-underused.data-loading.advice": (
        "在 {namespace}/{pod} 里：增加 data loader 的 num_workers 和 prefetch_factor，减少每个样本的 CPU 处理。"
    ),
    "gpu-underused.low-batch": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}，显存也用得很少。"
    ),
    "gpu-underused.low-batch.advice": ("增大 {namespace}/{pod} 的 batch size，或少用几张 GPU，或用 MIG 切片。"),
    "gpu-underused.unknown": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{window:duration}平均利用率只有 {ratio:percent}；看不出原因。"
    ),
    "gpu-underused.unknown.advice": ("分析它：kubectl exec {pod} -n {namespace} -- py-spy top --pid 1"),
    "gpu-underused.cpu": "它可用 {limit} 核，已用 {cores} 核。",
    "gpu-underused.shm": "它的 /dev/shm 共 {size:bytes}，已用 {used:bytes}。",
    "gpu-underused.bursts": "其间它的 GPU 能达到 {ratio:percent}。",
    "gpu-underused.memory": "显存共 {size:bytes}，它用了 {used:bytes}。",
    # gpu-fragmented
    "rule.gpu-fragmented": "GPU 碎片化",
    "doc.gpu-fragmented": "空闲 GPU 总数够，但不在同一节点，作业只能等待。会列出移动哪些 Pod 可以腾出位置。",
    "doc.gpu-fragmented.severity": "警告",
    "doc.gpu-fragmented.incident": "空闲 GPU 散落在各节点，大作业放不下。",
    "gpu-fragmented": (
        "作业 {job}（{user}，{namespace}）已等待 {seconds:duration}，需要同一节点上的 "
        "{asked:gpus}：{nodes} 个节点上共空闲 {free}，单个节点最多 {most}（{node}）。"
    ),
    "gpu-fragmented.moves": "移动 {count} 个 Pod 就能腾出位置：{moves}。",
    "gpu-fragmented.moves.advice": (
        "与所有者商量后：kubectl cordon {node}，让 {pods} 从 checkpoint 重启，再 kubectl uncordon {node}。要避免碎片"
        "：让调度器优先填满节点（NodeResourcesFit MostAllocated；Volcano binpack）。"
    ),
    "gpu-fragmented.advice": (
        "移动 3 个以内的 Pod 解决不了。让 {job} 的每个 worker 少于 {asked:gpus}，"
        "或让调度器优先填满节点（NodeResourcesFit MostAllocated；Volcano binpack）。"
    ),
    # capacity-mismatch
    "rule.capacity-mismatch": "GPU 数量对不上",
    "doc.capacity-mismatch": "驱动、设备插件（或 DRA 驱动）和 kubelet 给出的节点 GPU 数量不一致。",
    "doc.capacity-mismatch.severity": "警告",
    "doc.capacity-mismatch.incident": "各处看到的空闲 GPU 数量不一致。",
    "capacity-mismatch.device-plugin": (
        "{node} 有 {cards} 张 GPU，Kubernetes 只能用 {capacity} 张，已 {seconds:duration}。"
    ),
    "capacity-mismatch.device-plugin.advice": (
        "检查设备插件或 DRA 驱动：kubectl get pods -A -o wide --field-selector spec.nodeName={node} | "
        "grep -E 'device-plugin|dra'；删除它的 Pod 即可重启。"
    ),
    "capacity-mismatch.unhealthy-device": (
        "{node} 的 {capacity:gpus} 只有 {allocatable} 能分配，已 {seconds:duration}。"
    ),
    "capacity-mismatch.unhealthy-device.advice": (
        "在 {node} 上执行 nvidia-smi 和 dmesg -T | grep Xid，看哪张 GPU 有问题。修复后重启该节点的设备插件或 "
        "DRA 驱动的 Pod。"
    ),
    "capacity-mismatch.counts": ("驱动看到 {cards} 张，capacity 为 {capacity:gpus}，allocatable 为 {allocatable}。"),
}
