"""Chinese: pods that run, pods that do not go, and the frame around every explanation."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "term_grace": "正在删除，还有 {seconds:duration}自行停止的时间（宽限期 {grace:duration}）。",
    "term_ending": "正在删除，节点正在清理它。",
    "term_node_gone": "正在删除，但它所在的节点 {node} 已不在集群里，无法确认它已经结束。",
    "term_force_advice": "如果机器 {node} 确实已关机：kubectl delete pod {pod} -n {namespace} --force --grace-period=0",
    "term_node_not_ready": "正在删除，但它所在的节点 {node} 不可用（NotReady），无法结束它。",
    "term_node_not_ready_advice": (
        "恢复 {node}（systemctl status kubelet）。只有确定机器已关机时才执行：kubectl delete pod {pod} -n "
        "{namespace} --force --grace-period=0；机器还开着时这样做会把进程留在 GPU 上。"
    ),
    "term_finalizer": "它已经结束，但被 finalizer 留住：{finalizers}。设置它的 {owner} 还没有放行。",
    "term_finalizer_advice": (
        "检查 {owner} 的控制器是否在运行，让它处理完。如果它已经不存在了，移除 finalizer：kubectl patch pod {pod} -n "
        '{namespace} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\''
    ),
    "term_process_d": (
        "它在 {node} 上的进程 {pid}（{process}）卡在内核里（D 状态）已 {stuck:duration}，kill -9 也结束不了。"
    ),
    "term_process": "它在 {node} 上的进程 {pid}（{process}）已 {stuck:duration}没有消失（状态 {state}）。",
    "term_process_advice": (
        "在 {node} 上看它在等什么：cat /proc/{pid}/stack。如果是 GPU 驱动或恢复不了的挂载：腾空并重启 {node}。"
    ),
    "term_volume": "容器已经结束，但 {node} 卸载不了它的存储卷。",
    "term_volume_advice": "在 {node} 上查看谁还在用：fuser -vm PATH。存储服务器已失联时：umount -f -l PATH",
    "term_kill_failed": "{node} 报告无法停止它的容器。",
    "term_unknown": "它 {seconds:duration}前就该消失了，没有信息说明原因。",
    "term_unknown_advice": (
        "在 {node} 上执行：journalctl -u kubelet | grep {pod}；crictl ps -a | grep {pod}。"
        "确认进程都已结束之前不要强制删除（命名空间 {namespace}）。"
    ),
    "term_holds_gpus": "在它消失之前，一直占着 {node} 上的 {gpus:gpus}（{resource}）。",
    "running": "正在 {node} 上运行，没有申请 GPU。",
    "running_not_seen": "正在 {node} 上运行，使用 {gpus:gpus}；看不到它们的使用情况。",
    "agent_silent": "{node} 上的 agent 没有响应。",
    "cards_unknown": "{node} 上没有 agent 上报 GPU 信息。",
    "agent_advice": "启动 {node} 上的 gpuwarden agent：kubectl get pods -A -o wide | grep gpuwarden",
    "restarted_before": "容器 {container} 已重启 {restarts} 次，上一次的退出码是 {code}。",
    "card_faulty": "正在 {node} 上运行，但有 {count} 张 GPU 有故障（GPU {cards}）：{what}。",
    "card_faulty_advice": "保存 checkpoint 并换节点。管理员应 cordon {node} 并检查 GPU {cards}。",
    "card_wedged": "它的进程卡死在 {node} 的 {count} 张 GPU 上（GPU {cards}）：{what}。",
    "card_wedged_advice": "能停就先停掉作业；如果进程仍在，腾空并重启 {node}（GPU {cards}）。",
    "idle": "它占着 {node} 上的 {gpus:gpus}，已 {seconds:duration}没有使用。",
    "idle_advice": (
        "{user}：不用就请停掉，把 GPU 让给其他作业：在平台上停止，或 kubectl delete pod {pod} -n {namespace}"
    ),
    "service_waits": "它是推理服务，占着 {node} 上的 {gpus} 张 GPU，已 {seconds:duration}没有请求要处理。",
    "service_waits_advice": (
        "服务等待请求是正常的，不会释放它的 GPU。如果每天同一时段都空闲，gpu-idle "
        "会列出这些时段：可在这些时段减少副本。"
    ),
    "is_service": "它是推理服务：负载取决于用户的请求。",
    "idle_just_now": (
        "正在 {node} 上运行；它的 {gpus:gpus} 已 {seconds:duration}没有动作。加载数据、编译和保存时就是这样。"
    ),
    "idle_memory": "期间还占着 {size:bytes} 显存。",
    "log_empty": "它在使用 GPU，但 {seconds:duration}以来没有任何日志。",
    "log_stopped": "它在使用 GPU，但日志已 {seconds:duration}没有更新。",
    "silent_advice": (
        "可能是 Python 缓冲了输出：设置 PYTHONUNBUFFERED=1 或用 python -u。看它是否卡住：kubectl exec {pod} -n "
        "{namespace} -- py-spy dump --pid 1"
    ),
    "partly_idle": "正在 {node} 上运行，但 {gpus} 张 GPU 中有 {unused} 张完全没有使用。",
    "partly_idle_advice": "下次少申请一些，或让程序用上全部 GPU（torchrun --nproc_per_node={gpus}）。",
    "low_use": "正在 {node} 上运行，但它的 {gpus:gpus} 利用率只有 {ratio:percent}。",
    "low_use_advice": "常见原因是数据加载：增加 num_workers、CPU，使用更快的存储或更大的 batch。",
    "busy": "运行正常：{node} 上 {gpus:gpus} 在工作。",
    "gpu_use": "GPU 利用率 {ratio:percent}，显存已用 {size:bytes}。",
    "host_use": "主机：CPU {cores} 核，内存 {memory:bytes}。",
    "cpu_at_limit": "CPU 已到上限（{cores} / {limit} 核）：GPU 在等 CPU。请提高 limits.cpu。",
    "shm_nearly_full": "它的 /dev/shm 快满了：已用 {used:bytes}，共 {size:bytes}，随时会 bus error。",
    "resize_infeasible": "它要求的资源调整在 {node} 上无法实现：{message}",
    "resize_deferred": "它要求的资源调整在等 {node} 腾出资源：{message}",
    "resize_failed": "{node} 的 kubelet 没能应用它要求的资源调整：{message}",
    "status_pending": "{pod} 在等待调度",
    "status_pulling": "{pod} 在等待镜像",
    "status_creating": "{pod} 正在创建",
    "status_crashing": "{pod} 启动后不断退出",
    "status_terminating": "{pod} 正在删除",
    "status_idle": "{pod} 闲置",
    "status_silent": "{pod} 在运行但没有日志",
    "status_running": "{pod} 正在运行",
    "status_finished": "{pod} 已结束",
    "status_not_created": "{pod} 没有 Pod",
    "status_unseen": "{pod} 目前无法解释",
    "for_seconds": "已 {seconds:duration}",
    "of_user": "用户 {name}",
    "of_job": "作业 {name}",
    "in_queue": "队列 {name}",
    "list_comma": "，",
    "what_to_do": "怎么办：",
    "running_node_down": "它所在的节点 {node} 不可用（NotReady）：看不到它是否还在运行。",
}
