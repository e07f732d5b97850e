"""Chinese: how containers and pods end."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "crash_out_of_memory": "容器 {container} 使用的内存超过上限，被系统杀死（OOMKilled）。",
    "crash_out_of_memory_advice": "提高 {container} 的 limits.memory，或减少使用：减小 batch、减少数据加载进程。",
    "crash_lost": "不知道容器 {container} 是怎么结束的：{node} 重启过，或丢失了它。",
    "crash_lost_advice": "{node} 重启过吗？kubectl describe node {node}。如果没有恢复，重新提交作业。",
    "crash_liveness": "容器 {container} 的存活探针失败，被 Kubernetes 杀死。",
    "crash_liveness_advice": "给程序更多时间（initialDelaySeconds、timeoutSeconds），或修好探针检查的内容。",
    "crash_shm": "容器 {container} 因共享内存不足退出：/dev/shm 太小。",
    "crash_shm_advice": (
        "在 /dev/shm 挂载 medium: Memory 的 emptyDir 并设置 sizeLimit（例如 16Gi），或减少数据加载进程（num_workers）。"
    ),
    "crash_gpu_memory": "容器 {container} 的显存不够。",
    "crash_gpu_memory_advice": "减小 batch 或模型，或使用显存更大的 GPU。GPU 上还有其他进程吗？gpuwarden status",
    "crash_no_module": "容器 {container} 退出：镜像里缺少 Python 模块。",
    "crash_no_module_advice": "把它装进镜像，或使用正确的 Python 环境启动。",
    "crash_no_file": "容器 {container} 退出：找不到文件或数据集。",
    "crash_no_file_advice": "检查作业里的路径，以及存储卷是否挂载在那里：kubectl describe pod {pod} -n {namespace}",
    "crash_permission": "容器 {container} 退出：没有权限读写文件。",
    "crash_permission_advice": "检查文件的属主和权限，以及容器以什么用户运行（runAsUser）。",
    "crash_ended": "容器 {container} 每次都正常结束（退出码 0），又被 Kubernetes 重新启动。",
    "crash_ended_advice": "如果本该结束，用 Job 运行（restartPolicy: Never）；否则让主进程保持在前台。",
    "crash_error": "容器 {container} 里的程序出错退出（退出码 {code}）。",
    "crash_error_advice": "原因在它自己的日志里：kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_usage": "容器 {container} 里的程序退出码为 2：参数不对，或找不到启动文件。",
    "crash_usage_advice": "检查命令、参数和路径：kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_not_executable": "容器 {container} 的启动文件没有执行权限（退出码 126）。",
    "crash_not_executable_advice": "加上执行权限（chmod +x），或用解释器启动：bash FILE、python FILE",
    "crash_no_command": "找不到容器 {container} 的启动命令（退出码 127）。",
    "crash_no_command_advice": "检查命令的拼写，以及它是否装在镜像里并在 PATH 中。",
    "crash_interrupted": "容器 {container} 被中断（SIGINT，退出码 130）。",
    "crash_interrupted_advice": "被人或程序停掉：kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_illegal": "容器 {container} 使用了 {node} 的处理器不支持的指令（SIGILL，退出码 132）。",
    "crash_illegal_advice": "镜像是为较新的处理器构建的（AVX）：换一个版本，或不要用 {node}。",
    "crash_aborted": "容器 {container} 主动中止（SIGABRT，退出码 134）：某个库的检查失败，常见于 NCCL 或 CUDA。",
    "crash_aborted_advice": "日志最后几行会说明：kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_killed": "容器 {container} 被外部杀死（SIGKILL，退出码 137）；据 Kubernetes 所知不是因为内存上限。",
    "crash_killed_advice": "常见：{node} 内存耗尽（dmesg -T | grep -i oom）、容器被手动停掉，或它没有在宽限期内结束。",
    "crash_segfault": "容器 {container} 里的程序崩溃（SIGSEGV，退出码 139）。",
    "crash_segfault_advice": (
        "程序或库有错误，常见于 CUDA 与驱动版本不匹配：kubectl logs {pod} -n {namespace} -c {container} --previous"
    ),
    "crash_terminated": "容器 {container} 被要求停止（SIGTERM，退出码 143）。",
    "crash_terminated_advice": "被删除或驱逐，或节点 {node} 关机：kubectl get events -n {namespace}",
    "crash_signal": "容器 {container} 被信号 {signal} 结束（退出码 {code}）。",
    "crash_signal_advice": "它自己的日志可能会说明：kubectl logs {pod} -n {namespace} -c {container} --previous",
    "crash_inotify": "容器 {container} 失败：{node} 的 inotify 上限已用完。",
    "crash_inotify_advice": (
        "在 {node} 上执行：sysctl -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576，"
        "并写入 /etc/sysctl.d。"
    ),
    "ran_for": "它运行了 {ran:duration}；已重启 {restarts} 次。",
    "restarted": "已重启 {restarts} 次。",
    "memory_limit": "它的内存上限是 {limit:bytes}。",
    "last_words": "它最后的输出：{message}",
    "shm_default": "Pod 没有在 /dev/shm 挂载任何东西：用的是默认的 {size:bytes}。",
    "shm_size": "它的内存卷上限是 {size:bytes}。",
    "shm_unlimited": "它有一个没有设上限的内存卷：里面的内容计入容器内存。",
    "done": "已正常结束。",
    "failed": "已失败：{message}",
    "node_refused": "{node} 在它到达时拒绝了它（{reason}）：调度器以为有的资源已经没有了。",
    "node_refused_advice": "重新提交。如果经常发生，说明有两个调度器同时往 {node} 放 Pod。",
    "evicted": "{node} 内存或进程数不足，为自保驱逐了它。",
    "evicted_advice": "把 requests.memory 设为实际需要的值后重新提交。参见 kubectl describe node {node}",
    "evicted_disk": "{node} 的磁盘快满了，所以驱逐了它。",
    "evicted_disk_advice": "先清理 {node} 的磁盘。数据写到存储卷，不要写进容器；然后重新提交。",
    "preempted": "优先级更高的 Pod 占了它在 {node} 上的位置。",
    "evicted_emptydir": "它的一个 emptyDir 卷超过了自己的 sizeLimit，所以被移除；{node} 没有问题。",
    "evicted_emptydir_advice": (
        "调大信息里提到的 emptyDir 的 sizeLimit（medium 为 Memory 时还要调大 limits.memory），或少写一些数据。"
    ),
    "evicted_own_limit": "它超过了自己的 ephemeral-storage 上限，所以被移除；{node} 没有问题。",
    "evicted_own_limit_advice": "调大 limits.ephemeral-storage，或把数据和 checkpoint 写到存储卷，而不是写进容器。",
    "evicted_pids": "{node} 的进程号快用完了，所以驱逐了它。",
    "evicted_pids_advice": "在 {node} 上找出大量创建进程的 Pod（ps -eLf），并在 kubelet 配置里设置 podPidsLimit。",
    "evicted_other": "{node} 的 kubelet 驱逐了它。",
    "evicted_other_advice": "看上面的信息；再执行 kubectl describe node {node}",
    "preempted_critical": "{node} 为了给关键系统 Pod 腾位置而移除了它。",
    "preempted_critical_advice": (
        "它的控制器会重新创建。若再次发生，调大 {node} 为系统预留的资源（kubeReserved、systemReserved）。"
    ),
    "admission_topology": "{node} 拒绝了它：CPU、内存和设备无法对齐到同一个 NUMA 节点（{reason}）。",
    "admission_topology_advice": (
        "减少每个 Pod 的 GPU 或 CPU，或放宽 {node} 上 kubelet 的 topologyManagerPolicy（best-effort）。"
    ),
    "admission_affinity": "{node} 拒绝了它：节点的标签已不符合 Pod 的要求（{reason}）。",
    "admission_affinity_advice": "恢复 {node} 的标签，或删除该 Pod 让它重新调度：kubectl get node {node} --show-labels",
    "admission_other": "{node} 的 kubelet 拒绝了它（{reason}）。",
    "admission_other_advice": "看上面的信息，删除该 Pod 让它重新调度；再执行 kubectl describe node {node}",
    "deadline": "它的运行时间超过了上限（activeDeadlineSeconds）。",
    "deadline_advice": "提高作业的 activeDeadlineSeconds，或保存 checkpoint 后接着跑。",
    "disrupted_eviction": ("它被通过 Kubernetes API 从 {node} 驱逐：节点被排空，或自动伸缩器、descheduler 把它移走。"),
    "disrupted_eviction_advice": ("有控制器的 Pod 会自动重建；否则重新提交。节点是否停止调度：kubectl get node {node}"),
    "disrupted_taint": "{node} 带有它不容忍（或容忍时间已过）的 NoExecute 污点。",
    "disrupted_taint_advice": (
        "查清节点为什么有污点（未就绪的节点会自动带上）：kubectl describe node {node}；然后重新提交。"
    ),
    "node_went_down": "它所在的节点 {node} 已关机或失联。",
    "submit_again_advice": "等 {node} 恢复后重新提交，或提交到其他节点。",
    "devices_unavailable": "{node} 给不了它 {needs:gpus}：只有 {available} 可用（{reason}）。",
    "devices_advice": "重新提交。如果一再发生，重启 {node} 上的 GPU 设备插件 Pod，并对比：gpuwarden status",
    "devices_ill": "{node} 给不了它 GPU：设备插件认为这些 GPU 有故障（{reason}）。",
    "devices_ill_advice": "在 {node} 上执行：nvidia-smi；dmesg | grep NVRM。修好之前先 kubectl cordon {node}",
    "devices_failed": "{node} 没能给它分配设备（{reason}）。",
}
