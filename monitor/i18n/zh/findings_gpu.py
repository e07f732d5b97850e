"""Chinese: text of the rules about GPUs that are held."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "card-memory": "该 GPU 的显存已用 {bytes:bytes}。",
    "card-owner": "它属于 {user}（作业 {job}）。",
    "gpu-cost": "到目前为止的费用：{cost}（每小时 {hourly}）。",
    "gpu-cost.window": "这些 GPU 最近 {window:duration}的费用：{cost}。",
    # gpu-zombie
    "rule.gpu-zombie": "GPU 被已结束的 Pod 占用",
    "doc.gpu-zombie": "GPU 仍被已结束、已删除或早该终止的 Pod 占用，其他作业用不了。",
    "doc.gpu-zombie.severity": "警告",
    "doc.gpu-zombie.incident": "每隔几天就有僵死作业占用 GPU，只能人工查找。",
    "doc.gpu-zombie.limit.finished_after": "已结束或已删除的 Pod 可以占用 GPU 多久。",
    "doc.gpu-zombie.limit.terminating_after": "正在删除的 Pod 在宽限期后可以占用 GPU 多久。",
    "gpu-zombie.pod-finished": "Pod {pod} 已于 {seconds:duration}前结束，但仍占用 {node} 的 GPU {gpu}。",
    "gpu-zombie.pod-deleted": "Pod {pod} 已于 {seconds:duration}前删除，但仍占用 {node} 的 GPU {gpu}。",
    "gpu-zombie.pod-terminating": "Pod {pod} 在 {seconds:duration}前就该终止，但仍占用 {node} 的 GPU {gpu}。",
    "gpu-zombie.process": "它的进程 {pid} 还在该 GPU 上。",
    "gpu-zombie.allocation": "GPU {gpu} 上已没有 {pod} 的进程，但 {node} 仍把它分配给该 Pod。",
    "gpu-zombie.advice": (
        "在该 GPU 的页面上释放它，或执行：gpuwarden cleanup release {node} {gpu}。如果被拒绝，在 {node} 上查"
        "看进程 {pid} 为什么不退出：ps -o pid,stat,wchan:32,cmd -p {pid}"
    ),
    "gpu-zombie.allocation.advice": "查看是什么留住了这个 Pod：kubectl describe pod {pod} -n {namespace}",
    # gpu-idle
    "rule.gpu-idle": "GPU 占而不用",
    "doc.gpu-idle": "运行中的 Pod 占用 GPU 却不用，或只用了一部分。启动后 `warm_up` 之内、或 GPU 仍在耗电时不告警。",
    "doc.gpu-idle.severity": "警告；超过 `critical_after` 为严重；推理服务按时段空闲为提示",
    "doc.gpu-idle.incident": "开发环境长时间不用却占着 GPU。",
    "doc.gpu-idle.limit.warning_after": "作业的 GPU 闲置多久触发警告。",
    "doc.gpu-idle.limit.critical_after": "闲置多久升为严重。",
    "doc.gpu-idle.limit.notebook_warning_after": "同上，针对 notebook。",
    "doc.gpu-idle.limit.notebook_critical_after": "同上，针对 notebook。",
    "doc.gpu-idle.limit.warm_up": "启动后多久内不告警。",
    "doc.gpu-idle.limit.power_times": "功耗达到最低值的多少倍视为在工作。",
    "doc.gpu-idle.limit.power_share": "并且至少达到最低功耗与上限之间的这个比例。",
    "doc.gpu-idle.limit.inference_days": "推理服务连续多少天在同一时段空闲才报告；最多 7 天。",
    "doc.gpu-idle.limit.inference_hours": "连续空闲多少小时起才报告。",
    "doc.gpu-idle.limit.timezone": "这些时段的时区；默认为 daemon 的时区。",
    "gpu-idle.idle-notebook": ("Notebook {namespace}/{pod} 已 {seconds:duration}没有使用 {node} 的 GPU {gpu}。"),
    "gpu-idle.idle-notebook.advice": (
        "请所有者停止 notebook {namespace}/{pod}，或释放 GPU：gpuwarden cleanup release {node} {gpu}。存储卷"
        "里的文件会保留。"
    ),
    "gpu-idle.idle-job": ("Pod {namespace}/{pod} 已 {seconds:duration}没有使用 {node} 的 GPU {gpu}。"),
    "gpu-idle.idle-job.advice": (
        "看它在做什么：kubectl logs {pod} -n {namespace} --tail=50。如果已经跑完，释放 GPU：gpuwarden "
        "cleanup release {node} {gpu}"
    ),
    "gpu-idle.hung-job": (
        "Pod {namespace}/{pod} 疑似卡死：{node} 的 GPU {gpu} 已 {seconds:duration}没有工作，日志也停了。"
    ),
    "gpu-idle.hung-job.advice": (
        "看它卡在哪里：kubectl exec {pod} -n {namespace} -- py-spy dump "
        "--pid 1（常见于集合通信在等一个已丢失的 worker）。然后从最近的 checkpoint 重启作业。"
    ),
    "gpu-idle.waiting-for-data": (
        "Pod {namespace}/{pod} 在等数据：{node} 的 GPU {gpu} 已 {seconds:duration}没有工作。"
    ),
    "gpu-idle.waiting-for-data.advice": (
        "检查它读取的存储：在 {node} 上执行 iostat -x 5 和 nfsiostat 5；看 {namespace}/{pod} 能否读到数据集。"
    ),
    "gpu-idle.partially-idle": (
        "作业 {job}（{namespace}）只用了一部分 GPU：{gpus} 张中有 {idle} 张已 {idle_for:duration}没有工作。"
    ),
    "gpu-idle.partially-idle.advice": (
        "请所有者少申请（现在是 {gpus} 张），或者全部用上（torchrun --nproc_per_node；检查 {namespace}/{pod} 里的 "
        "CUDA_VISIBLE_DEVICES）。"
    ),
    "gpu-idle.idle-inference": ("推理服务 {namespace}/{job} 最近 {days} 天每天 {hours} 都没有使用它的 {gpus} 张 GPU。"),
    "gpu-idle.idle-inference.advice": (
        "不会释放任何 GPU。如果这些时段不需要这么多副本，可用自动扩缩或定时任务（例如 KEDA 的 cron "
        "触发器）减少副本，把 GPU 让给作业。"
    ),
    "gpu-idle.unused-inference": "推理服务 {namespace}/{job} 最近 {days} 天没有使用它的 {gpus} 张 GPU。",
    "gpu-idle.unused-inference.advice": "请向它的所有者确认是否还有人使用；不用就缩到 0 个副本。不会自动释放。",
    "gpu-idle.cards": "空闲的 GPU（节点:GPU）：{cards}。",
    "gpu-idle.log-stopped": "最后一次写日志是 {log_age:duration}前，进程仍在 GPU 上。",
    "gpu-idle.process-waits": "它的进程 {pid}（{process}）正在等 I/O（D 状态）。",
    "gpu-idle.node-waits": "该节点平均有 {cores} 个核在等 I/O。",
    # gpu-orphan
    "rule.gpu-orphan": "GPU 被集群外的进程占用",
    "doc.gpu-orphan": "GPU 上有不属于任何 Pod 的进程，无法计入用量，可能是入侵者。",
    "doc.gpu-orphan.severity": "警告",
    "doc.gpu-orphan.incident": "环境被入侵；有人绕过平台直接使用 GPU。",
    "doc.gpu-orphan.limit.allowed": "允许的进程，shell 通配符（最长 15 个字符）。",
    "gpu-orphan.host-process": (
        "进程 {pid}（{process}）不属于任何 Pod，已占用 {node} 的 GPU {gpu} 达 {seconds:duration}。"
    ),
    "gpu-orphan.other-container": (
        "容器 {container} 绕过 Kubernetes 使用 {node} 的 GPU {gpu} 已 {seconds:duration}：进程 {pid}（{process}）。"
    ),
    "gpu-orphan.unknown-owner": "进程 {pid} 归属不明，已占用 {node} 的 GPU {gpu} 达 {seconds:duration}。",
    "gpu-orphan.uid": "它以用户 id {uid} 运行。",
    "gpu-orphan.others": "同一 GPU 上还有 {count} 个不属于任何 Pod 的进程：{pids}。",
    "gpu-orphan.host-process.advice": (
        "在 {node} 上执行：ps -o pid,user,lstart,cmd -p {pid}。来历不明时按入侵处理，先保留 /proc/{pid}/exe。"
        "然后释放 GPU：gpuwarden cleanup release {node} {gpu}"
    ),
    "gpu-orphan.other-container.advice": (
        "在 {node} 上执行 docker inspect {container}（或 crictl inspect "
        "{container}）看是谁启动的。作业应当通过 Kubernetes 提交：docker stop "
        "{container}"
    ),
    "gpu-orphan.unknown-owner.advice": (
        "在 {node} 上执行：cat /proc/{pid}/cgroup；ls -l /proc/{pid}/exe。agent 需要 hostPID 才能看到它。"
    ),
    # gpu-ghost
    "rule.gpu-ghost": "GPU 无进程却被占用",
    "doc.gpu-ghost": "显存被占或显示繁忙，却没有任何进程。",
    "doc.gpu-ghost.severity": "警告",
    "doc.gpu-ghost.incident": "没有使用的 GPU 一直显示占用中。",
    "gpu-ghost.memory-leak": (
        "{node} 的 GPU {gpu} 有 {bytes:bytes} 显存被占用，但 GPU 上没有任何进程，已 {seconds:duration}。"
    ),
    "gpu-ghost.latched-utilisation": (
        "{node} 的 GPU {gpu} 显示利用率 {ratio:percent}，但 GPU 上没有任何进程，已 {seconds:duration}。"
    ),
    "gpu-ghost.memory-leak.advice": (
        "在 {node} 上执行 fuser -v /dev/nvidia{gpu} 看谁打开着它。没有进程时：腾空该 GPU 并执行 nvidia-smi "
        "--gpu-reset -i {gpu}"
    ),
    "gpu-ghost.latched-utilisation.advice": (
        "计数器卡住了。在 {node} 上执行：nvidia-smi -pm 1；不行再执行：nvidia-smi --gpu-reset -i {gpu}"
    ),
    # gpu-wedged
    "rule.gpu-wedged": "GPU 进程卡死",
    "doc.gpu-wedged": "占用 GPU 的进程既不能工作也不能退出：卡在内核、已死未回收，或已从进程表消失。",
    "doc.gpu-wedged.severity": "警告",
    "doc.gpu-wedged.incident": "作业卡死并占用 GPU，只能重启节点。",
    "gpu-wedged.d-state": (
        "{node} 的 GPU {gpu} 上的进程 {pid}（{process}）卡在内核里（D 状态）已 {seconds:duration}。"
    ),
    "gpu-wedged.zombie-process": (
        "{node} 的 GPU {gpu} 上的进程 {pid}（{process}）已死但未被回收（Z 状态），已 {seconds:duration}。"
    ),
    "gpu-wedged.vanished": "{node} 的 GPU {gpu} 被已不存在的进程 {pid}（{process}）占用，已 {seconds:duration}。",
    "gpu-wedged.d-state.advice": (
        "在 {node} 上执行：cat /proc/{pid}/stack。在等挂载就修复挂载；在等驱动就先停止调度"
        "（kubectl cordon {node}），等其他作业结束后重启 {node}。"
    ),
    "gpu-wedged.zombie-process.advice": (
        "在 {node} 上：它的父进程（ps -o ppid= -p {pid}）需要回收它：重启容器。还有 D 状态的线程时：重启 {node}。"
    ),
    "gpu-wedged.vanished.advice": (
        "在 {node} 上执行：fuser -v /dev/nvidia{gpu}；没有进程时腾空该 GPU 并执行 nvidia-smi --gpu-reset -i {gpu}"
    ),
    # gpu-phantom
    "rule.gpu-phantom": "GPU 分配给了不存在的 Pod",
    "doc.gpu-phantom": "kubelet 或 ResourceClaim 显示 GPU 已分配，但对应的 Pod 已不在。",
    "doc.gpu-phantom.severity": "警告",
    "doc.gpu-phantom.incident": "没有使用的 GPU 一直显示已分配。",
    "doc.gpu-phantom.limit.refused_within": "多久之内有 Pod 被拒绝才算证据。",
    "gpu-phantom.stale-allocation": "{node} 的 GPU {gpu} 仍分配给已不存在的 Pod {pod}，已 {seconds:duration}。",
    "gpu-phantom.terminal-pod": (
        "{node} 仍把 GPU {gpu} 分配给已结束的 Pod {pod}，并拒绝新的 Pod，已 {seconds:duration}。"
    ),
    "gpu-phantom.refused": "它以 GPU 不足为由拒绝了 Pod {pod}。",
    "gpu-phantom.claim.advice": (
        "GPU 由 ResourceClaim 占用，已删除 Pod 的 ResourceClaim 由 controller-manager 释放，请检查它是否在运行："
        "kubectl -n kube-system get pods -l component=kube-controller-manager"
    ),
    "gpu-phantom.advice": (
        "重启 {node} 的 kubelet：systemctl restart kubelet。Pod 不受影响。如果该 GPU 仍显示已分配："
        "kubectl cordon {node}，等节点上的作业结束后重启节点。"
    ),
}
