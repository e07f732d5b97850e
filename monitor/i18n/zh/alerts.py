"""Chinese: messages about alerts, the names of rules and labels, and what the monitor says about itself."""

from __future__ import annotations

_MESSAGES: dict[str, str] = {
    "alert.severity.critical": "严重",
    "alert.severity.warning": "警告",
    "alert.severity.info": "提示",
    "alert.reason.new": "{severity}·新告警",
    "alert.reason.notice": "{severity}·通知",
    "alert.reason.worse": "{severity}·加重",
    "alert.reason.more-subjects": "{severity}·新增 {count} 个",
    "alert.reason.repeat": "{severity}·仍未恢复",
    "alert.reason.resolved": "已恢复",
    "alert.reason.partly": "{severity}·{over} 个已恢复，还剩 {count} 个",
    "alert.short.new": "新",
    "alert.short.notice": "通知",
    "alert.short.worse": "加重",
    "alert.short.more-subjects": "新增 {count} 个",
    "alert.short.repeat": "未恢复",
    "alert.short.resolved": "已恢复",
    "alert.short.partly": "{over} 个已恢复，还剩 {count} 个",
    "alert.title": "【{status}】{what}",
    "alert.title-sample": "【测试】{what}",
    "alert.title-many": "{what}（{count} 个）",
    "alert.mixed": "多种问题",
    "alert.place": "：{place}",
    "alert.list": "、",
    "alert.names": "{names} 等 {count} 个",
    "alert.others": " 等 {count} 人",
    "alert.where": "位置：",
    "alert.since": "开始：",
    "alert.since-for": "{moment}，已 {seconds:duration}",
    "alert.first-for": "最早 {moment}，已 {seconds:duration}",
    "alert.lasted": "{start} 至 {end}，持续 {seconds:duration}",
    "alert.when": "时间：",
    "alert.flapping": "；反复出现又恢复",
    "alert.affected": "影响：",
    "alert.evidence": "证据：",
    "alert.advice": "处理：",
    "alert.was": "当时：",
    "alert.symptoms": "连带影响：",
    "alert.symptom": "{what} {count} 个",
    "alert.symptom-examples": "（{names}）",
    "alert.of-these": "共 {count} 个，先列 {shown} 个：",
    "alert.for": "（已 {seconds:duration}）",
    "alert.over": "（已恢复，持续 {seconds:duration}）",
    "alert.held": "目前没有新数据，以上是最后一次看到的情况。",
    "alert.late": "这条消息迟到 {seconds:duration}：之前没能送达。",
    "alert.sample": "这是一条测试消息：没有故障，无需处理。",
    "alert.link": "查看详情 / 静默",
    "alert.more-lines": "……还有 {count} 行未显示",
    "alert.digest": "【合并 {count} 条】{parts}",
    "alert.digest-critical": "严重 {count}",
    "alert.digest-warning": "警告 {count}",
    "alert.digest-info": "提示 {count}",
    "alert.digest-resolved": "已恢复 {count}",
    "alert.digest-late": "其中最早的一条迟到 {seconds:duration}。",
    "alert.summary": "【汇总】{firing} 个告警未恢复",
    "alert.summary-calm": "【汇总】目前没有告警",
    "alert.summary-period": "{start} 至 {end}：触发 {fired} 次，恢复 {resolved} 次。",
    "alert.summary-rule": "{what}：触发 {fired} 次，恢复 {resolved} 次",
    "alert.summary-others": "其他 {count} 类问题：触发 {fired} 次，恢复 {resolved} 次",
    "alert.summary-firing": "未恢复 {count} 个，最严重的：",
}

_LABELS: dict[str, str] = {
    "label.cluster": "集群 {value}",
    "label.node": "节点 {value}",
    "label.gpu": "GPU {value}",
    "label.pod": "Pod {value}",
    "label.namespace": "命名空间 {value}",
    "label.container": "容器 {value}",
    "label.user": "用户 {value}",
    "label.job": "作业 {value}",
    "label.queue": "队列 {value}",
    "label.mount": "挂载点 {value}",
    "label.image": "镜像 {value}",
    "label.service": "服务 {value}",
}

_RULES: dict[str, str] = {
    "rule.actions-refused": "操作请求被拒",
    "rule.gpu-zombie": "GPU 被已结束的 Pod 占用",
    "rule.gpu-idle": "GPU 占而不用",
    "rule.gpu-orphan": "GPU 被集群外的进程占用",
    "rule.gpu-ghost": "GPU 无进程却被占用",
    "rule.gpu-wedged": "GPU 进程卡死",
    "rule.gpu-phantom": "GPU 记在不存在的 Pod 名下",
    "rule.gpu-fault": "GPU 故障",
    "rule.gpu-hot": "GPU 过热或限电降频",
    "rule.gpu-underused": "GPU 利用率低",
    "rule.gpu-fragmented": "GPU 碎片化",
    "rule.capacity-mismatch": "GPU 数量对不上",
    "rule.image-pull": "镜像拉取失败",
    "rule.image-pull-slow": "镜像拉取缓慢",
    "rule.registry-unreachable": "镜像仓库无法访问",
    "rule.pod-pending": "Pod 排队等待",
    "rule.pod-stuck-creating": "Pod 卡在创建中",
    "rule.pod-start-failed": "Pod 启动失败",
    "rule.pod-stuck-terminating": "Pod 卡在删除中",
    "rule.pod-silent": "作业没有日志输出",
    "rule.quota-exhausted": "配额用完",
    "rule.shm-pressure": "共享内存不足",
    "rule.disk-full": "磁盘空间不足",
    "rule.disk-filling": "磁盘即将写满",
    "rule.disk-io-saturated": "磁盘 I/O 过载",
    "rule.image-cache-large": "镜像占用磁盘过多",
    "rule.image-oversize": "镜像过大",
    "rule.mass-deletion": "大量数据被删除",
    "rule.mount-lost": "挂载丢失",
    "rule.node-down": "节点宕机",
    "rule.agent-silent": "节点失去监控",
    "rule.service-down": "服务不可用",
    "rule.receiver-failing": "告警发送失败",
    "rule.monitor-blind": "监控数据中断",
}

_OWN: dict[str, str] = {
    "receiver-failing.parked": (
        "告警发不到 {receiver}（{kind}）：对方明确拒收，已搁置 {count} 条消息，不会自动重发：{error}"
    ),
    "receiver-failing.retrying": (
        "告警已 {seconds:duration}没有送达 {receiver}（{kind}），有 {count} 条消息在等待重发：{error}"
    ),
    "receiver-failing.advice": "检查它的地址、密钥和网络，然后测试：gpuwarden alerts test --receiver {receiver}",
    "monitor-blind.api-server": (
        "监控已 {seconds:duration}读不到 Kubernetes API（{source}）："
        "Pod 和节点的告警停在最后一次的状态，新问题可能漏报：{why}"
    ),
    "monitor-blind.agents": "监控已 {seconds:duration}没有收到任何 agent 的数据（{source}）：看不到节点上的情况：{why}",
    "monitor-blind.prometheus": (
        "监控已 {seconds:duration}无法查询 Prometheus（{source}）：看不到节点上的情况，节点相关的告警保持原状：{why}"
    ),
    "monitor-blind.detection": "监控已 {seconds:duration}没有进行检测（{source}）：不会产生新的告警：{why}",
    "monitor-blind.state": "监控无法保存自身状态（{source}）：如果现在退出，待发送的消息和告警会丢失：{why}",
    "monitor-blind.source": "监控已 {seconds:duration}看不到 {source}：那里出了问题也不会告警：{why}",
    "monitor-blind.api-server.advice": (
        "检查 API server 是否应答、监控账号是否有读取权限（{source}）：kubectl get --raw /readyz"
    ),
    "monitor-blind.agents.advice": (
        "检查 agent 是否在运行（{source}）：kubectl get pod -A -o wide | grep gpuwarden-agent"
    ),
    "monitor-blind.prometheus.advice": (
        "检查指标存储是否有响应（{source}），以及 daemon.prometheus 的配置是否正确：gpuwarden status"
    ),
    "monitor-blind.detection.advice": "查看监控自己的日志（{source}），然后重启它。",
    "monitor-blind.state.advice": "请检查 daemon.state 所在磁盘是否已满或只读（{source}）：df -h",
    "monitor-blind.source.advice": "查看 {source} 的状态：gpuwarden status",
    "external": "{text}",
}

WORDS: dict[str, str] = _MESSAGES | _LABELS | _RULES | _OWN
