"""Chinese: findings about cards."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "card-memory": "这张卡的显存已用 {bytes:bytes}。",
    "card-owner": "它属于 {user}（作业 {job}）。",
    "gpu-zombie.pod-finished": "{node} 的 GPU {gpu} 仍被 Pod {pod} 占用，它已经结束；已持续 {seconds:duration}。",
    "gpu-zombie.pod-deleted": "{node} 的 GPU {gpu} 仍被 Pod {pod} 占用，它已被删除；已持续 {seconds:duration}。",
    "gpu-zombie.pod-terminating": ("{node} 的 GPU {gpu} 仍被 Pod {pod} 占用，它在 {seconds:duration} 前就该终止了。"),
    "gpu-zombie.process": "它的进程 {pid} 还在这张卡上。",
    "gpu-zombie.allocation": "GPU {gpu} 上已没有 {pod} 的进程，但 {node} 仍为它保留这张卡。",
    "gpu-zombie.advice": (
        "在 {node} 上查看进程 {pid} 为什么不退出（ps -o pid,stat,wchan:32,cmd -p {pid}）；"
        "确认没人需要后执行：kill -9 {pid}"
    ),
    "gpu-zombie.allocation.advice": "查看是什么留住了这个 Pod：kubectl describe pod {pod} -n {namespace}",
    "gpu-idle.idle-notebook": ("Notebook {namespace}/{pod} 已 {seconds:duration} 没有使用 {node} 的 GPU {gpu}。"),
    "gpu-idle.idle-notebook.advice": (
        "请使用者停止它，或直接停止：kubectl delete pod {pod} -n {namespace}。存储卷里的文件会保留。"
    ),
    "gpu-idle.idle-job": ("Pod {namespace}/{pod} 已 {seconds:duration} 没有使用 {node} 的 GPU {gpu}。"),
    "gpu-idle.idle-job.advice": (
        "看它在做什么：kubectl logs {pod} -n {namespace} --tail=50。如果已经跑完："
        "kubectl delete pod {pod} -n {namespace}"
    ),
    "gpu-idle.hung-job": (
        "Pod {namespace}/{pod} 疑似卡死：{node} 的 GPU {gpu} 已 {seconds:duration} 没有工作，日志也停了。"
    ),
    "gpu-idle.hung-job.advice": (
        "看它卡在哪里：kubectl exec {pod} -n {namespace} -- py-spy dump "
        "--pid 1（常见于集合通信在等一个已丢失的 worker）。然后从最近的 checkpoint 重启作业。"
    ),
    "gpu-idle.waiting-for-data": (
        "Pod {namespace}/{pod} 在等数据：{node} 的 GPU {gpu} 已 {seconds:duration} 没有工作。"
    ),
    "gpu-idle.waiting-for-data.advice": (
        "检查它读取的存储：在 {node} 上执行 iostat -x 5 和 nfsiostat 5；看 {namespace}/{pod} 能否读到数据集。"
    ),
    "gpu-idle.partially-idle": (
        "作业 {job}（{namespace}）只用了一部分 GPU：{gpus} 张中有 {idle} 张已 {seconds:duration} 没有工作。"
    ),
    "gpu-idle.partially-idle.advice": (
        "请使用者少申请（现在是 {gpus} 张），或者全部用上（torchrun --nproc_per_node；检查 "
        "{namespace}/{pod} 里的 CUDA_VISIBLE_DEVICES）。"
    ),
    "gpu-idle.cards": "空闲的卡（节点:GPU）：{cards}。",
    "gpu-idle.log-stopped": "最后一次写日志是 {seconds:duration} 前，进程仍在卡上。",
    "gpu-idle.process-waits": "它的进程 {pid}（{process}）正在等 I/O（D 状态）。",
    "gpu-idle.node-waits": "该节点平均有 {cores} 个核在等 I/O。",
    "gpu-orphan.host-process": (
        "进程 {pid}（{process}）在使用 {node} 的 GPU {gpu}，但不属于任何 Pod（{seconds:duration}）。"
    ),
    "gpu-orphan.other-container": (
        "容器 {container} 绕过 Kubernetes 使用 {node} 的 GPU {gpu}：进程 {pid}（{process}），已 {seconds:duration}。"
    ),
    "gpu-orphan.unknown-owner": ("进程 {pid} 在使用 {node} 的 GPU {gpu}，看不出是谁的（{seconds:duration}）。"),
    "gpu-orphan.uid": "它以用户 id {uid} 运行。",
    "gpu-orphan.others": "同一张卡上还有 {count} 个不属于任何 Pod 的进程：{pids}。",
    "gpu-orphan.host-process.advice": (
        "在 {node} 上执行：ps -o pid,user,lstart,cmd -p {pid}。如果没人认识它，"
        "按入侵处理：先保留 /proc/{pid}/exe，再 kill -9 {pid}"
    ),
    "gpu-orphan.other-container.advice": (
        "在 {node} 上执行 docker inspect {container}（或 crictl inspect "
        "{container}）看是谁启动的。任务应当通过 Kubernetes 提交：docker stop "
        "{container}"
    ),
    "gpu-orphan.unknown-owner.advice": (
        "在 {node} 上执行：cat /proc/{pid}/cgroup；ls -l /proc/{pid}/exe。agent 需要 hostPID 才能看到它。"
    ),
    "gpu-ghost.memory-leak": (
        "{node} 的 GPU {gpu} 有 {bytes:bytes} 显存被占，但卡上没有任何进程，已 {seconds:duration}。"
    ),
    "gpu-ghost.latched-utilisation": (
        "{node} 的 GPU {gpu} 显示利用率 {ratio:percent}，但卡上没有任何进程，已 {seconds:duration}。"
    ),
    "gpu-ghost.memory-leak.advice": (
        "在 {node} 上执行 fuser -v /dev/nvidia{gpu} 看谁打开着它。没有人时：腾空这张卡并执行 "
        "nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-ghost.latched-utilisation.advice": (
        "计数卡住了。在 {node} 上执行：nvidia-smi -pm 1；不行再执行：nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-wedged.d-state": (
        "{node} 的 GPU {gpu} 上的进程 {pid}（{process}）卡在内核里（D 状态）已 {seconds:duration}。"
    ),
    "gpu-wedged.zombie-process": (
        "{node} 的 GPU {gpu} 上的进程 {pid}（{process}）已死但没有消失（Z 状态），已 {seconds:duration}。"
    ),
    "gpu-wedged.vanished": (
        "{node} 的 GPU {gpu} 被进程 {pid}（{process}）占着，而这个进程已不存在，已 {seconds:duration}。"
    ),
    "gpu-wedged.d-state.advice": (
        "在 {node} 上执行：cat /proc/{pid}/stack。在等挂载就修复挂载；在等驱动就腾空并重启 {node}。"
    ),
    "gpu-wedged.zombie-process.advice": (
        "在 {node} 上：需要父进程回收它（ps -o ppid= -p {pid}）：重启容器。还有 D 状态的线程时：重启 {node}。"
    ),
    "gpu-wedged.vanished.advice": (
        "在 {node} 上执行：fuser -v /dev/nvidia{gpu}；没有人时腾空这张卡并执行 nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-phantom.stale-allocation": (
        "{node} 把 GPU {gpu} 记在 Pod {pod} 名下，而这个 Pod 已不存在，已 {seconds:duration}。"
    ),
    "gpu-phantom.terminal-pod": (
        "{node} 把 GPU {gpu} 记在已结束的 Pod {pod} 名下，并且拒绝新的 Pod（{seconds:duration}）。"
    ),
    "gpu-phantom.refused": "它以 GPU 不足为由拒绝了 Pod {pod}。",
    "gpu-phantom.advice": (
        "重启 {node} 的 kubelet：systemctl restart kubelet。如果这张卡仍在账上：在没有 "
        "GPU Pod 运行时，先删除 "
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint。"
    ),
    "gpu-fault.driver-hung": "{node} 的 GPU 驱动已 {seconds:duration} 没有响应：看不到它的任何一张卡。",
    "gpu-fault.driver-hung.advice": (
        "在 {node} 上执行：dmesg -T | grep -i nvrm | tail。卡死的驱动不会自己恢复："
        "kubectl drain {node} --ignore-daemonsets，然后重启。"
    ),
    "gpu-fault.card-lost": "{node} 的 GPU {gpu} 丢失：{error}。",
    "gpu-fault.card-lost.advice": "腾空 {node} 并断电重启（热重启常常不够）。如果 GPU {gpu} 再次丢失，请更换。",
    "gpu-fault.xid-off-bus": "{node} 的 GPU {gpu} 掉卡（XID {code}）。",
    "gpu-fault.xid-off-bus.advice": "腾空并重启 {node}。如果 GPU {gpu} 再次掉卡，检查供电和插槽，然后更换。",
    "gpu-fault.cards-missing": (
        "{node} 只有 {cards} 张 GPU，而 Kubernetes 记为 {capacity} 张，已 {seconds:duration}。"
    ),
    "gpu-fault.cards-missing.advice": (
        "在 {node} 上执行：lspci | grep -i nvidia 和 nvidia-smi -L，看少了哪一张。腾空并重启 {node}。"
    ),
    "gpu-fault.remap-failed": "{node} 的 GPU {gpu} 显存损坏，已无法再替换。",
    "gpu-fault.remap-failed.advice": (
        "停用并更换：kubectl cordon {node}；nvidia-smi -q -i {gpu} -d ROW_REMAPPER 的输出就是凭据。"
    ),
    "gpu-fault.xid-memory": "{node} 的 GPU {gpu} 显存不可信（XID {code}）：结果可能是错的。",
    "gpu-fault.xid-memory.advice": (
        "停掉作业，然后在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}。如果再次出现，请更换。"
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
    "gpu-fault.xid-nvlink": "{node} 的 GPU {gpu} NVLink 出错（XID {code}）：多卡作业可能卡住或变慢。",
    "gpu-fault.xid-nvlink.advice": (
        "在 {node} 上执行：nvidia-smi nvlink -e -i {gpu}；然后一起重置该节点所有 GPU，或重启 {node}。"
    ),
    "gpu-fault.remap-pending": "{node} 的 GPU {gpu} 需要重置才能替换损坏的显存。",
    "gpu-fault.remap-pending.advice": ("等它的作业结束后，在 {node} 上执行：nvidia-smi --gpu-reset -i {gpu}"),
    "gpu-fault.xid-memory-contained": ("{node} 的 GPU {gpu} 出现显存错误，已被隔离（XID {code}），只影响当时的程序。"),
    "gpu-fault.xid-memory-contained.advice": (
        "重启失败的作业。{node} 的 GPU {gpu} 空闲后执行：nvidia-smi --gpu-reset -i {gpu}"
    ),
    "gpu-fault.xid-unknown": "{node} 的 GPU {gpu} 报告 XID {code}，这里没有它的说明。",
    "gpu-fault.xid-unknown.advice": (
        "在 NVIDIA 的列表里查 XID {code}，并在 {node} 上执行：dmesg -T | grep Xid。然后在 gpu-fault 的设置里给它归类。"
    ),
    "gpu-fault.xid-application": "{node} 的 GPU {gpu} 上有程序出错或被杀（XID {code}）。",
    "gpu-fault.xid-application.advice": (
        "卡是好的。查看 {node} 上该作业的日志并重启作业；如果很多不同作业在 GPU {gpu} 上都这样，请检测这张卡。"
    ),
    "gpu-fault.xid": "XID {code}，位置 {place}：{message}",
    "gpu-fault.ecc": "驱动加载以来有 {errors} 个无法纠正的 ECC 错误。",
    "gpu-fault.remap-failed-seen": "显存行替换失败。",
    "gpu-fault.remap-pending-seen": "有显存在等重置后替换。",
    "gpu-fault.recovery": "驱动要求：{action}。",
    "gpu-fault.hit": "Pod {pod} 正在这张卡上。",
    "capacity-mismatch.device-plugin": (
        "{node} 有 {cards} 张 GPU，Kubernetes 只能用 {capacity} 张，已 {seconds:duration}。"
    ),
    "capacity-mismatch.device-plugin.advice": (
        "检查 device plugin：kubectl get pods -A -o wide "
        "--field-selector spec.nodeName={node} | grep device-plugin；"
        "删除它的 Pod 即可重启。"
    ),
    "capacity-mismatch.unhealthy-device": (
        "{node} 的 {capacity} 张 GPU 只有 {allocatable} 张能分配，已 {seconds:duration}。"
    ),
    "capacity-mismatch.unhealthy-device.advice": (
        "在 {node} 上执行 nvidia-smi 和 dmesg -T | grep Xid，看哪张卡有问题。修复后重启那里的 device plugin Pod。"
    ),
    "capacity-mismatch.counts": ("驱动看到 {cards} 张，capacity 为 {capacity}，allocatable 为 {allocatable}。"),
    "gpu-hot.thermal": "{node} 的 GPU {gpu} 过热，已降频 {seconds:duration}。",
    "gpu-hot.thermal.advice": (
        "检查 {node} 的风扇、风道和机房温度：ipmitool sdr type fan；nvidia-smi -q -i {gpu} -d TEMPERATURE,PERFORMANCE"
    ),
    "gpu-hot.power-brake": "{node} 的电源让 GPU {gpu} 降频，已 {seconds:duration}。",
    "gpu-hot.power-brake.advice": (
        "检查 {node} 的电源和功率上限：ipmitool sdr type 'Power Supply'；"
        "在此之前可以调低 GPU {gpu} 的上限：nvidia-smi -pl"
    ),
    "gpu-hot.temperature": "温度 {celsius} 摄氏度。",
    "gpu-hot.power": "功率 {watts} W，上限 {limit} W。",
    "gpu-hot.clock": "当前频率 {megahertz} MHz。",
    "gpu-fragmented": (
        "作业 {job}（{user}，{namespace}）已等待 {seconds:duration}，需要同一节点上的 "
        "{asked} 张 GPU：{nodes} 个节点上共空闲 {free} 张，单个节点最多 {most} "
        "张（{node}）。"
    ),
    "gpu-fragmented.moves": "移动 {count} 个 Pod 就能腾出位置：{moves}。",
    "gpu-fragmented.moves.advice": (
        "与使用者商量后：kubectl cordon {node}，让 {pods} 从 checkpoint 重启，再 "
        "kubectl uncordon {node}。要避免碎片：让调度器优先填满节点（NodeResourcesFit "
        "MostAllocated；Volcano binpack）。"
    ),
    "gpu-fragmented.advice": (
        "移动 3 个以内的 Pod 解决不了。让 {job} 的每个 worker 少于 {asked} 张 GPU，"
        "或让调度器优先填满节点（NodeResourcesFit MostAllocated；Volcano binpack）。"
    ),
    "gpu-underused.cpu-limit": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}：被 CPU 限额卡住。"
    ),
    "gpu-underused.cpu-limit.advice": ("调高 {namespace}/{pod} 的 resources.limits.cpu：一般每张 GPU 配 8 到 16 核。"),
    "gpu-underused.shm-small": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}：/dev/shm 太小。"
    ),
    "gpu-underused.shm-small.advice": (
        "给 {namespace}/{pod} 在 /dev/shm 挂一个 medium: Memory 的 emptyDir，并增加 data loader 的 num_workers。"
    ),
    "gpu-underused.io-wait": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}：节点在等磁盘。"
    ),
    "gpu-underused.io-wait.advice": (
        "把 {namespace}/{pod} 的数据集放到 {node} 的本地 SSD，或把小文件打包。在节点上执行：iostat -x 5"
    ),
    "gpu-underused.data-loading": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}，时忙时闲：在等数据。"
    ),
    "gpu-underused.data-loading.advice": (
        "在 {namespace}/{pod} 里：增加 data loader 的 num_workers 和 prefetch_factor，减少每个样本的 CPU 处理。"
    ),
    "gpu-underused.low-batch": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}，显存也用得很少。"
    ),
    "gpu-underused.low-batch.advice": ("增大 {namespace}/{pod} 的 batch size，或少用几张 GPU，或用 MIG 切片。"),
    "gpu-underused.unknown": (
        "{node} 上的 Pod {namespace}/{pod} 用着 {gpus} 张 GPU，"
        "{seconds:duration}平均利用率只有 {ratio:percent}；看不出原因。"
    ),
    "gpu-underused.unknown.advice": ("分析它：kubectl exec {pod} -n {namespace} -- py-spy top --pid 1"),
    "gpu-underused.cpu": "它可用 {limit} 核，已用 {cores} 核。",
    "gpu-underused.shm": "它的 /dev/shm 共 {size:bytes}，已用 {used:bytes}。",
    "gpu-underused.bursts": "其间它的卡能达到 {ratio:percent}。",
    "gpu-underused.memory": "显存共 {size:bytes}，它用了 {used:bytes}。",
}
