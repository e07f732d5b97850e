"""Chinese: text of the rules about pods, images and queues."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # pod-pending
    "rule.pod-pending": "Pod 排队等待",
    "doc.pod-pending": "作业的 Pod 等待调度过久，并说明原因。",
    "doc.pod-pending.severity": "警告",
    "doc.pod-pending.incident": "为什么调度不成功？是资源不够吗？",
    "doc.pod-pending.limit.waiting": "Pod 可以等待调度多久。",
    "pod-pending.no-single-node-fits": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有一个节点有 {gpus:free-gpus}。"
    ),
    "pod-pending.not-enough-gpus": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：空闲的不够（需要 {gpus:gpus}）。"
    ),
    "pod-pending.quota": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：队列 {queue} 的配额已用完。",
    "pod-pending.queue-closed": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：队列 {queue} 已关闭或不存在。"
    ),
    "pod-pending.gang-incomplete": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：这一组 Pod 必须一起启动，但还不齐或放不下。"
    ),
    "pod-pending.taint": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：可用的节点都有污点。",
    "pod-pending.selector": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有节点带有它要求的标签。",
    "pod-pending.volume": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：存储卷还没有就绪。",
    "pod-pending.vgpu": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有 GPU 能满足它的共享 GPU 申请。"
    ),
    "pod-pending.device-claim": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：资源声明要的设备没有分配。"
    ),
    "pod-pending.topology": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有放得下的拓扑域。",
    "pod-pending.priority": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：其他作业优先级更高。",
    "pod-pending.overtaken": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：后提交的作业先拿到了资源。",
    "pod-pending.unschedulable-other": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有节点能接收它。",
    "pod-pending.advice": "随时查看详细原因：gpuwarden why -n {namespace} {pod}",
    # pod-stuck-creating
    "rule.pod-stuck-creating": "Pod 卡在创建中",
    "doc.pod-stuck-creating": (
        "Pod 已分到节点，容器却一直创建不出来，且不是镜像问题。"
        "多个 Pod 都挂载不了同一台存储服务器时，归为该服务器的一条告警。"
    ),
    "doc.pod-stuck-creating.severity": "警告",
    "doc.pod-stuck-creating.incident": "挂载错误，作业卡在创建中。",
    "doc.pod-stuck-creating.limit.creating": "创建过程中一步最长多久。",
    "pod-stuck-creating.mount-failed": (
        "{node} 上 {user} 的 Pod {pod} 创建容器已用 {seconds:duration}：存储卷挂载失败。"
    ),
    "pod-stuck-creating.mount-hung": "{node} 上 {user} 的 Pod {pod} 创建容器已用 {seconds:duration}：存储卷没有响应。",
    "pod-stuck-creating.sandbox": (
        "{node} 上 {user} 的 Pod {pod} 创建容器已用 {seconds:duration}：节点没有建好沙箱，或没有说明原因。"
    ),
    "pod-stuck-creating.config-missing": (
        "{node} 上 {user} 的 Pod {pod} 创建容器已用 {seconds:duration}：它引用的 ConfigMap、Secret 或 PVC 不存在。"
    ),
    "pod-stuck-creating.device-missing": (
        "{node} 上 {user} 的 Pod {pod} 创建容器已用 {seconds:duration}：它需要的设备不在。"
    ),
    "pod-stuck-creating.hung-path": "{node} 上的 {path} 没有响应。",
    "pod-stuck-creating.server": "{nodes} 个节点上的 {count} 个 Pod 无法挂载存储服务器 {server} 的存储卷。",
    "pod-stuck-creating.pods": "受影响的 Pod：{pods}",
    "pod-stuck-creating.advice": (
        "查看详情：kubectl describe pod {pod} -n {namespace}；在 {node} 上：journalctl -u kubelet | grep {pod}"
    ),
    # pod-start-failed
    "rule.pod-start-failed": "Pod 启动失败",
    "doc.pod-start-failed": (
        "容器创建或启动失败，或反复退出。"
        "同一节点上的多个 Pod 因同样的 GPU 驱动或 container toolkit 故障失败时，归为该节点的一条告警。"
    ),
    "doc.pod-start-failed.severity": "警告",
    "doc.pod-start-failed.incident": "找不到启动文件，没有执行权限。",
    "doc.pod-start-failed.limit.steady": "崩溃后连续运行多久算正常。",
    "doc.pod-start-failed.limit.failed_for": "失败的 Pod 多久内仍报告。",
    "pod-start-failed.file-not-found": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了：找不到命令、文件或模块（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.not-executable": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了：程序无法执行（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.permission": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：没有文件权限（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.out-of-memory": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 因内存不足被杀或退出（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.bus-error": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 因内存访问错误而崩溃（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.config": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 按现在的配置启动不了或运行不下去（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.gpu-driver": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 用不了 GPU：GPU 驱动或 container toolkit 出错（已重启"
        " {restarts} 次）。"
    ),
    "pod-start-failed.node": "{node} 上有 {count} 个 Pod 用不了 GPU：该节点的 GPU 驱动或 container toolkit 出错。",
    "pod-start-failed.pods": "受影响的 Pod：{pods}",
    "pod-start-failed.node-trouble": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了：节点无法准备好它（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.security-profile": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了：安全配置无法应用（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.volume": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了：某个挂载有问题（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.program": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：程序报错退出（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.unknown": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 启动不了，原因未知（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.refused": "{node} 的 kubelet 拒绝了 {user} 的 Pod {pod}。",
    "pod-start-failed.evicted": "{node} 的 kubelet 驱逐了 {user} 的 Pod {pod}。",
    # pod-stuck-terminating
    "rule.pod-stuck-terminating": "Pod 卡在删除中",
    "doc.pod-stuck-terminating": "Pod 已删除、宽限期已过，却一直不消失。",
    "doc.pod-stuck-terminating.severity": "警告",
    "doc.pod-stuck-terminating.incident": "用户停止或删除作业后 Pod 挂死，需要手工处理。",
    "doc.pod-stuck-terminating.limit.overdue": "超出宽限期多久才告警。",
    "pod-stuck-terminating.finalizer": (
        "{node} 上 {user} 的 Pod {pod} 已删除，{seconds:duration}前就该结束：被 finalizer 卡住。"
    ),
    "pod-stuck-terminating.node-down": (
        "{node} 上 {user} 的 Pod {pod} 已删除，{seconds:duration}前就该结束：节点没有响应。"
    ),
    "pod-stuck-terminating.volume-busy": (
        "{node} 上 {user} 的 Pod {pod} 已删除，{seconds:duration}前就该结束：它的存储卷卸载不掉。"
    ),
    "pod-stuck-terminating.d-state": (
        "{node} 上 {user} 的 Pod {pod} 已删除，{seconds:duration}前就该结束：它有一个进程杀不掉。"
    ),
    "pod-stuck-terminating.runtime-hung": (
        "{node} 上 {user} 的 Pod {pod} 已删除，{seconds:duration}前就该结束：容器运行时没有结束它。"
    ),
    "pod-stuck-terminating.advice": (
        "查看详情：kubectl describe pod {pod} -n {namespace}；在 {node} 上：journalctl -u kubelet | grep {pod}"
    ),
    # pod-silent
    "rule.pod-silent": "作业没有日志输出",
    "doc.pod-silent": "占有 GPU 的容器在运行，日志却一直为空或不再更新。",
    "doc.pod-silent.severity": "警告",
    "doc.pod-silent.incident": "训练作业没有日志打印。",
    "doc.pod-silent.limit.empty": "启动后日志可以空多久。",
    "doc.pod-silent.limit.stopped": "日志可以多久不更新。",
    "pod-silent.never-logged": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus:gpus}，启动 {seconds:duration}以来一行日志也没有。"
    ),
    "pod-silent.never-logged.advice": (
        "问 {user} 作业是否正常。Python 会缓存输出：设置 PYTHONUNBUFFERED=1。输出是否写进了文件？kubectl logs {pod} "
        "-n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.stopped-logging": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus:gpus}，已有 {seconds:duration}没有写日志。"
    ),
    "pod-silent.stopped-logging.advice": (
        "问 {user} 作业是否卡住（NCCL、数据加载、磁盘满）：kubectl logs {pod} -n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.log-unreadable": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus:gpus}，启动 {seconds:duration}后仍读不到它的日志。"
    ),
    "pod-silent.log-unreadable.advice": (
        "在 {node} 上检查日志文件是否存在、磁盘是否正常：ls -l /var/log/pods；kubectl logs {pod} -n {namespace} -c "
        "{container} --tail 20"
    ),
    # quota-exhausted
    "rule.quota-exhausted": "配额用完",
    "doc.quota-exhausted": "命名空间或队列的 GPU 配额已用完，还有作业在等。",
    "doc.quota-exhausted.severity": "警告",
    "doc.quota-exhausted.incident": "组内 quota 超过上限，新作业排队。",
    "doc.quota-exhausted.limit.refused": "被拒绝的作业多久内算作在等。",
    "quota-exhausted.namespace": "命名空间 {name} 已用 {used}，配额 {quota} 上限 {limit:gpus}，还有作业在等待。",
    "quota-exhausted.namespace.advice": (
        "停掉 {name} 里不需要的作业，或提高配额：kubectl edit resourcequota {quota} -n {name}"
    ),
    "quota-exhausted.queue": "队列 {name} 已用 {used}，上限 {limit:gpus}，还有作业在等待。",
    "quota-exhausted.queue.advice": (
        "停掉队列 {name} 里不需要的作业，或提高它的上限（Volcano：spec.capability；Kueue：nominalQuota）。"
    ),
    "quota-exhausted.waiting": "有 {count} 个作业在等待 {needs:gpus}：{jobs}。",
    "quota-exhausted.holders": "占用最多的：{holders}。",
}
