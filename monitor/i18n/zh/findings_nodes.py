"""Chinese: text of the rules about nodes, agents and services."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # node-down
    "rule.node-down": "节点宕机",
    "doc.node-down": "节点未就绪、磁盘或内存紧张，或反复上下线。",
    "doc.node-down.severity": "警告；宕机且上面有 Pod 为严重",
    "doc.node-down.incident": "宕机，2 个节点的 kubelet 异常。",
    "doc.node-down.limit.joining": "新节点加入后多久内不报。",
    "doc.node-down.limit.flaps": "`window` 内变化几次算反复上下线。",
    "doc.node-down.limit.window": "时间窗口。",
    "node-down.kubelet-silent": "节点 {node} 宕机：它的 kubelet 停止上报，已有 {seconds:duration}未就绪。",
    "node-down.disk-pressure": "节点 {node} 磁盘空间不足已 {seconds:duration}，正在驱逐 Pod。",
    "node-down.memory-pressure": "节点 {node} 内存不足已 {seconds:duration}，正在驱逐 Pod。",
    "node-down.network": "节点 {node} 的容器网络不可用：{message}",
    "node-down.flapping": "节点 {node} 反复不可用：{seconds:duration}内变化了 {changes} 次。",
    "node-down.unknown": "节点 {node} 状态异常：{message}",
    "node-down.agent-answers": "它的 agent 仍有响应，说明机器和网络都正常。",
    "node-down.agent-silent": "它的 agent 也没有响应（{error}）：机器关机、卡死或断网。",
    "node-down.pods": "它上面有 {count} 个 Pod，占用 {gpus:gpus}。",
    "node-down.says": "Kubernetes 的说明：{message}",
    "node-down.kubelet-silent.advice": (
        "机器能登录时：ssh {node} systemctl restart kubelet; journalctl -u kubelet -n 100；"
        "不能登录时查看它的控制台（BMC）。"
    ),
    "node-down.disk-pressure.advice": "找出占用磁盘的内容并清理：ssh {node} df -h; gpuwarden status",
    "node-down.memory-pressure.advice": (
        "找出占用内存的 Pod：kubectl top pod -A --field-selector spec.nodeName={node}；并设置内存上限。"
    ),
    "node-down.network.advice": (
        "查看该节点上的网络插件：kubectl get pod -n kube-system -o wide --field-selector spec.nodeName={node}"
    ),
    "node-down.flapping.advice": (
        "查明原因前不要再调度新的 Pod：kubectl cordon {node}；再看 journalctl -u kubelet 和 dmesg -T。"
    ),
    "node-down.unknown.advice": "查看它的状态：kubectl describe node {node}",
    # agent-silent
    "rule.agent-silent": "节点失去监控",
    "doc.agent-silent": "节点没有监控数据，或缺一部分。",
    "doc.agent-silent.severity": "警告",
    "doc.agent-silent.incident": "节点没有被监控，却未被发现。",
    "doc.agent-silent.limit.silent_after": "agent 多久不响应才告警。",
    "doc.agent-silent.limit.collector_after": "某个采集器失败或卡住多久才告警。",
    "agent-silent.node-down": "节点 {node} 已 {seconds:duration}没有消息：节点本身宕机。",
    "agent-silent.agent-down": "{node} 上的 agent 已 {seconds:duration}没有响应，但节点是正常的。",
    "agent-silent.none": "节点 {node} 有 GPU，但已 {seconds:duration}没有 agent：未被监控。",
    "agent-silent.nowhere": "已 {seconds:duration}没有找到任何 agent；有 {count} 个节点带 GPU。",
    "agent-silent.error": "访问 {target} 的结果：{error}",
    "agent-silent.collector-hung": "{node} 上的采集器 {collector} 卡住已 {seconds:duration}。",
    "agent-silent.collector-failing": "{node} 上的采集器 {collector} 持续失败已 {seconds:duration}。",
    "agent-silent.collector-says": "它的报错：{error}",
    "agent-silent.node-down.advice": "先恢复节点：kubectl describe node {node}",
    "agent-silent.agent-down.advice": (
        "查看它的 Pod：kubectl get pod -A -o wide --field-selector spec.nodeName={node} | grep gpuwarden-agent；"
        "没有 Kubernetes 时：ssh {node} systemctl status gpuwarden-agent"
    ),
    "agent-silent.nowhere.advice": (
        "在每个节点上启动 agent（gpuwarden agent，用 DaemonSet），或写入 daemon.agents.static。"
    ),
    "agent-silent.collector-hung.advice": (
        "{node} 上有东西没有响应：挂载、驱动或容器运行时。查看 D 状态的进程："
        "ssh {node} ps -eo pid,stat,wchan:32,cmd | grep ' D'"
    ),
    "agent-silent.collector-failing.advice": (
        "在 {node} 上查看报错：gpuwarden snapshot；不需要时关闭：agent.collectors.{collector}.enabled: false"
    ),
    # actions-refused
    "rule.actions-refused": "操作请求被拒",
    "doc.actions-refused": "agent 拒绝了操作请求：签名无效、发给其他节点、请求重放或过期、次数过多。",
    "doc.actions-refused.severity": "警告",
    "doc.actions-refused.incident": "有人试图越权删除。",
    "doc.actions-refused.limit.quiet": "多久没有再被拒绝才算恢复。",
    "actions-refused.signature": (
        "{node} 上的 agent 收到签名无效的操作请求：共 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.token": (
        "{node} 上的 agent 收到使用令牌的操作请求（已不再接受令牌）：共 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.node": (
        "{node} 上的 agent 收到发给其他节点的操作请求：共 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.replayed": (
        "{node} 上的 agent 收到已执行过的请求（重放）：共 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.too-many": (
        "对 {node} 上的 agent 的操作请求过于频繁：已拒绝 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.expired": (
        "{node} 上的 agent 收到已过期或尚未生效的请求：共 {count} 次，最近一次在 {ago:duration}前。"
    ),
    "actions-refused.token.too": "使用令牌而未签名的请求：{count} 次",
    "actions-refused.node.too": "发给其他节点的请求：{count} 次",
    "actions-refused.replayed.too": "重放的请求：{count} 次",
    "actions-refused.too-many.too": "超出每分钟上限的请求：{count} 次",
    "actions-refused.expired.too": "已过期或尚未生效的请求：{count} 次",
    "actions-refused.signature.advice": (
        "没有执行任何操作。请确认 {node} 上的 agent.actions.public_key_file 包含与 daemon 的 "
        "daemon.cleanup.agents.private_key_file 配对的公钥；如果包含，说明有其他来源在尝试：在 agent 日志里"
        "查看来源地址。"
    ),
    "actions-refused.token.advice": (
        "没有执行任何操作。请升级 daemon，用 gpuwarden keys 生成密钥对，并设置 daemon.cleanup.agents.private_key_file "
        "和 agent.actions.public_key_file；如果 daemon 已是新版本，说明有其他来源在尝试：在 agent 日志里查看来源地址。"
    ),
    "actions-refused.node.advice": (
        "没有执行任何操作。请核对 {node} 上的 agent.node_name 与 Kubernetes 或 daemon 显示的节点名；如果一致，说明请求"
        "被转发到了错误的节点：在 agent 日志里查看来源地址，并配置 agent.actions.tls。"
    ),
    "actions-refused.replayed.advice": (
        "没有执行任何操作。daemon 不会用同一个 id 发送两次请求，请求可能被截获：请在 {node} 上配置 agent.actions.tls "
        "防止窃听。"
    ),
    "actions-refused.too-many.advice": (
        "检查是否有多个 daemon 同时在工作；如果计划确实很大，调高 {node} 上的 agent.actions.per_minute。"
    ),
    "actions-refused.expired.advice": (
        "多半是时钟不一致：比较 {node} 与 daemon 所在机器的 date，并检查 NTP（chronyc tracking）。"
    ),
    # service-down
    "rule.service-down": "服务不可用",
    "doc.service-down": "平台依赖的服务不响应或响应不正常，包括 Kubernetes API。",
    "doc.service-down.severity": "严重；Harbor 中不影响拉取的部件为警告",
    "doc.service-down.incident": "平台访问出现 502；postgres down；harbor down。",
    "doc.service-down.limit.stale_after": "探测结果超过多久就不再作数。",
    "service-down.status": "{service} 返回状态码 {status}，已 {seconds:duration}（{target}）。",
    "service-down.refused": "{service} 拒绝连接已 {seconds:duration}（{target}）。",
    "service-down.timeout": "{service} 超时无响应已 {seconds:duration}（{target}）。",
    "service-down.dns": "{service} 的域名无法解析已 {seconds:duration}（{target}）。",
    "service-down.tls": "{service} 的证书不被信任已 {seconds:duration}（{target}）。",
    "service-down.read-only": "{service} 只能读不能写已 {seconds:duration}（{target}）。",
    "service-down.component": "{service} 的组件 {component} 异常已 {seconds:duration}（{target}）。",
    "service-down.unknown": "{service} 异常已 {seconds:duration}（{target}）：{message}",
    "service-down.says": "返回的信息：{message}",
    "service-down.status.advice": "502 或 503 来自前面的代理：请检查 {target} 后面的服务。",
    "service-down.refused.advice": "先看日志再启动服务，它应当监听 {target}。",
    "service-down.timeout.advice": "在本机测试：curl -m 5 -v {target}。可能是防火墙，或进程过载、卡死。",
    "service-down.dns.advice": "检查 daemon.services 里的域名和本机的解析：getent hosts NAME",
    "service-down.tls.advice": "更新证书，或在 daemon.services 里用 ca_file 指定签发机构。",
    "service-down.read-only.advice": (
        "检查它是否是备库（SELECT pg_is_in_recovery()）、default_transaction_read_only 是否打开、磁盘是否已满。"
    ),
    "service-down.component.advice": "查看 {component} 的日志，然后重启它。",
    "service-down.unknown.advice": "手动测试：{target}",
    "service-down.kubernetes.advice": (
        "恢复之前，Pod 和节点显示的是最后一次看到的状态。在控制节点上：crictl ps -a | grep apiserver; "
        "curl -k https://127.0.0.1:6443/livez"
    ),
}
