"""Chinese: queues, groups, quotas, and pods that are not created."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "gated": "调度器暂时不能处理它：它带有调度门控 {gates}。",
    "gated_advice": "需要由设置 {gates} 的控制器移除它，请联系维护该控制器的人。",
    "queue_closed": "所在队列 {queue} 的状态是 {state}：不再启动新作业。",
    "queue_closed_why": "所在队列 {queue} 不接收新作业：{why}。",
    "queue_closed_volcano_advice": "打开队列：vcctl queue operate -n {queue} -a open；或把作业提交到其他队列。",
    "queue_closed_kueue_advice": (
        "查看原因：kubectl describe {object}。如果是人为停用，把 stopPolicy 改回 None；或把作业提交到其他队列。"
    ),
    "queue_missing": "它要求的队列 {queue} 不存在：命名空间 {namespace} 里没有这个 LocalQueue。",
    "queue_missing_advice": "改正作业的标签 kueue.x-k8s.io/queue-name。现有队列：kubectl get localqueue -n {namespace}",
    "queue_full": "所在队列 {queue} 已满：{resource} 上限 {limit}，已用 {used}，它还需要 {needs}。",
    "queue_full_advice": "等待 {queue} 中的作业结束、减少申请、换一个队列，或请管理员提高队列上限。",
    "queue_never": "它申请 {needs} 个 {resource}，而队列 {queue} 最多只能有 {limit} 个。",
    "queue_never_advice": "最多申请 {limit} 个 {resource}，或换一个队列，或请管理员提高上限。",
    "queue_holders": "队列 {queue} 主要被以下用户占用：{holders}。",
    "gang_missing": "作业组 {group} 必须整组一起启动：需要 {needed} 个 Pod，现有 {present} 个，还缺 {missing} 个。",
    "gang_missing_advice": (
        "查清缺少的 Pod 为什么没有创建：kubectl describe podgroup {group} -n {namespace}；或调低作业的 minAvailable。"
    ),
    "gang_too_large": (
        "作业组 {group} 必须整组一起启动：等待中的 {waiting} 个 Pod（共 {gpus:gpus}）目前只能同时放下 {fit} 个，"
        "至少需要 {needed} 个。"
    ),
    "gang_too_large_advice": "等待，或减少 worker 数量后重新提交（目前能放下 {fit} 个）。",
    "gang_kueue": "作业组 {group} 还不完整：已有 {present} 个 Pod，Kueue 在等其余的。",
    "gang_kueue_advice": "创建缺少的 Pod，或改正 {group} 的注解 kueue.x-k8s.io/pod-group-total-count。",
    "workload_inactive": "它的 Workload {workload} 被人停用了（spec.active 为 false）。",
    "workload_inactive_advice": (
        '重新启用：kubectl patch workload {workload} -n {namespace} --type=merge -p \'{{"spec":{{"active":true}}}}\''
    ),
    "workload_preempted": "优先级更高的作业占了它的位置：{message}",
    "workload_checks": "配额已经预留，但 Workload {workload} 的准入检查还没有完成。",
    "workload_checks_advice": "查看缺哪一项检查：kubectl describe workload {workload} -n {namespace}",
    "workload_none": "Kueue 还没有登记它（队列 {queue}）。",
    "workload_none_advice": "如果一直这样，检查 Kueue 控制器是否在运行：kubectl get pods -n kueue-system",
    "kueue_waits": "它在队列 {queue} 中排队：{cluster_queue} 目前没有给它的配额。",
    "kueue_waits_advice": "等待 {queue} 中的作业结束、减少申请，或请管理员提高 ClusterQueue {cluster_queue} 的配额。",
    "kueue_unclear": "它在队列 {queue} 里等待：Kueue 还没有接纳它。",
    "kueue_unclear_advice": (
        "按上面 Kueue 的说法处理：涉及队列 {queue} 或 ClusterQueue {cluster_queue}。更多：kubectl describe workload"
    ),
    "kueue_short": (
        "它在队列 {queue} 中排队：{cluster_queue} 的 {resource} 配额（flavor {flavor}）已用完，还差 {more}。"
    ),
    "kueue_never": "它申请的 {resource} 超过了队列 {queue} 在 {cluster_queue} 中（flavor {flavor}）能有的最大值。",
    "kueue_never_advice": "减少申请，或请管理员提高 ClusterQueue {cluster_queue} 的配额（队列 {queue}）。",
    "kueue_books": "{cluster_queue} 共有 {limit} 个 {resource}，已预留 {used} 个；这个作业需要 {needs} 个。",
    "priority_advice": "等待；或在允许的情况下用更高的 priorityClassName 重新提交：kubectl get priorityclass",
    "kept_for_others": "{node} 上的空位留给了 {user} 的 {pod}，它排在前面（优先级 {priority}，本 Pod 为 {own}）。",
    "waits_for_victims": "等 {node} 上优先级较低的 Pod 结束后，它就会在那里启动。",
    "waits_for_victims_advice": "无需操作。如果等了很久，查看 {node} 上哪个 Pod 没有结束。",
    "quota_exceeded": "命名空间配额 {quota} 已用完：{resource} 上限 {limit}，已用 {used}，作业还需要 {needs}。",
    "quota_exceeded_advice": "结束该命名空间里的其他作业、减少 {resource} 的申请，或请管理员提高配额 {quota}。",
    "quota_unspecified": "命名空间配额 {quota} 要求每个 Pod 都写明：{fields}，这个作业没有写。",
    "quota_unspecified_advice": "在作业的 resources 里写明 {fields}（配额 {quota}）。",
    "quota_scope": "命名空间里没有配额允许这类 Pod：{message}",
    "quota_scope_advice": (
        "在命名空间里添加带这个 scope 的 ResourceQuota，或者从作业中去掉 scope 所指的内容，通常是它的优先级类。"
    ),
    "quota_books": "配额 {quota} 当前：{resource} 已用 {used}，上限 {limit}。",
    "quota_holders": "{namespace} 主要被以下用户占用：{holders}。",
    "limit_range": "命名空间的 LimitRange 不允许：{rule}。",
    "limit_range_advice": "按规则修改作业的 resources。查看规则：kubectl describe limitrange",
    "webhook_denied": "准入 webhook {webhook} 拒绝了它的 Pod：{message}",
    "webhook_denied_advice": "按提示修改作业，或联系维护 {webhook} 的人。",
    "webhook_down": "准入 webhook {webhook} 没有响应（{message}），无法创建 Pod。",
    "webhook_down_advice": (
        "这会影响所有作业，不只是这一个。请恢复 {webhook} 背后的服务：kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    ),
    "pod_security": "命名空间的 Pod 安全规则不允许：{message}",
    "pod_security_advice": "去掉被禁止的设置（privileged、hostPath、root 等），或换一个允许的命名空间。",
    "object_missing": "它要用的 {kind} {name} 不存在。",
    "object_missing_advice": "创建 {kind} {name}，或改正作业里的名字。",
    "namespace_ending": "它所在的命名空间正在被删除，不能再创建任何东西。",
    "namespace_ending_advice": "换一个命名空间。",
    "denied_other": "API server 拒绝创建它的 Pod：{message}",
    "denied_other_advice": "按提示修改作业。",
    "refused_times": "它的控制器（{kind}）已尝试 {count} 次。",
    "unknown_name": "没有找到名为 {name} 的 Pod、作业或用户（命名空间 {namespace}）。",
    "unknown_name_anywhere": "没有找到名为 {name} 的 Pod、作业或用户。",
    "unknown_name_advice": "检查名字和命名空间：kubectl get pods -A | grep {name}。事件只保留 1 小时。",
    "pods_unseen": "无法读取集群里的 Pod：{error}。",
    "pods_unseen_advice": "检查 API server 和访问权限：gpuwarden doctor",
    "found_pods": "与 {name} 对应的有 {count} 个 Pod：",
    "found_more": "……还有 {count} 个 Pod",
    "job_pods": "这个作业有 {count} 个 Pod：{states}。以上说的是 {pod}。",
}
