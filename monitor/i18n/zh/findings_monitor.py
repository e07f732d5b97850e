"""Chinese: text of self-monitoring rules, and text shared by all rules."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "rule-too-many": "规则 {rule} 在 {node} 上发现的问题数量超出正常范围，已省略 {count} 个。",
    "rule-broken": "规则 {rule} 无法检查：{error}。上一次的结果保持不变。",
    "doc.limit.after": "持续多久才告警。",
    "doc.limit.io_wait_cores": "等待 I/O 的核数达到多少归因于存储。",
    "doc.limit.critical": "达到多少为严重。",
    # monitor-blind
    "rule.monitor-blind": "监控数据中断",
    "doc.monitor-blind": (
        "监控自身没有 Kubernetes API、agent 或其中一部分的数据，或无法检测、无法保存状态，或状态文件已损坏、"
        "由更新的版本写入，或状态目录过大。原因为 `agents` 时，`agent-silent` 不再单独通知。"
    ),
    "doc.monitor-blind.severity": "严重；单个来源或状态目录过大为警告",
    "doc.monitor-blind.incident": "监控早已失效，却未被发现。",
    "monitor-blind.api-server": (
        "监控已 {seconds:duration}读不到 Kubernetes API（{source}）："
        "Pod 和节点的告警停在最后一次的状态，新问题可能漏报：{why}"
    ),
    "monitor-blind.agents": "监控已 {seconds:duration}没有收到任何 agent 的数据（{source}）：看不到节点上的情况：{why}",
    "monitor-blind.detection": "监控已 {seconds:duration}没有进行检测（{source}）：不会产生新的告警：{why}",
    "monitor-blind.state": "监控无法保存自身状态（{source}）：如果现在退出，待发送的消息和告警会丢失：{why}",
    "monitor-blind.state-damaged": (
        "监控的部分状态文件已损坏（{source}）：可读的记录已保留，损坏的文件已移到一旁：{why}"
    ),
    "monitor-blind.state-newer": (
        "监控的状态由更新的版本写入（{source}）：当前版本不会改动这些文件，自身状态只保存在内存中，重启后丢失：{why}"
    ),
    "monitor-blind.state-size": "状态目录过大（{source}），清除全部旧记录后仍超过上限：{why}",
    "monitor-blind.source": "监控已 {seconds:duration}看不到 {source}：那里出了问题也不会告警：{why}",
    "monitor-blind.api-server.advice": (
        "检查 API server 是否响应、监控账号是否有读取权限（{source}）：kubectl get --raw /readyz"
    ),
    "monitor-blind.agents.advice": (
        "检查 agent 是否在运行（{source}）：kubectl get pod -A -o wide | grep gpuwarden-agent"
    ),
    "monitor-blind.detection.advice": "查看监控自己的日志（{source}），然后重启它。",
    "monitor-blind.state.advice": "请检查 daemon.state 所在磁盘是否已满或只读（{source}）：df -h",
    "monitor-blind.state-damaged.advice": (
        "检查 daemon.state 所在磁盘是否有错误：dmesg -T。然后核对静默和近期告警，归档或删除 {source} 后本告警恢复。"
    ),
    "monitor-blind.state-newer.advice": (
        "请重新安装更新的版本。如要继续使用当前版本并放弃这些状态，把 {source} 移出 daemon.state 目录即可，无需重启。"
    ),
    "monitor-blind.state-size.advice": (
        "请在 daemon.state 目录中查找大文件（{source}），例如已隔离的损坏数据库：du -a | sort -n | tail"
    ),
    "monitor-blind.source.advice": "查看 {source} 的状态：gpuwarden status",
    # receiver-failing
    "rule.receiver-failing": "告警发送失败",
    "doc.receiver-failing": "消息发不到某个接收者。会通过其他接收者通知，积压的消息会重发。",
    "doc.receiver-failing.severity": "警告",
    "doc.receiver-failing.incident": "告警通道坏了很久才被发现。",
    "receiver-failing.parked": (
        "告警发不到 {receiver}（{kind}）：对方明确拒收，已搁置 {count} 条消息，不会自动重发：{error}"
    ),
    "receiver-failing.retrying": (
        "告警已 {seconds:duration}没有送达 {receiver}（{kind}），有 {count} 条消息在等待重发：{error}"
    ),
    "receiver-failing.advice": "检查它的地址、密钥和网络，然后测试：gpuwarden alerts test --receiver {receiver}",
}
