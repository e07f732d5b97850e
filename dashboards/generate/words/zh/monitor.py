"""Chinese: the dashboard of alerts and the monitor itself."""
# ruff: noqa: RUF001

from __future__ import annotations

DASHBOARD = ("gpuwarden / 告警与监控自身", "告警能否送达、gpuwarden 是否看得到该看的一切，以及它自身的开销。")
ROWS = {
    "monitor.now": "当前",
    "monitor.alerts": "告警",
    "monitor.delivery": "消息发送",
    "monitor.daemon": "守护进程",
    "monitor.agents": "agent",
}
PANELS = {
    "monitor.firing": ("告警中", "未静默、不在维护中、也不是由其他问题引起的。"),
    "monitor.parked": ("已搁置的消息", "被接收方明确拒绝，没有人收到。请检查接收方的设置。"),
    "monitor.failing": ("失败的接收方", "现在收不到消息的接收方，会继续重试。开始时间见下方。"),
    "monitor.silent": ("失联 agent 数", "agent 没有应答的节点。这些节点没有新数据。"),
    "monitor.hung": ("无响应的采集项", "读取一直不返回：驱动卡死或 NAS 失联。其他采集不受影响。"),
    "monitor.blind": ("中断的数据来源", "守护进程看不到的部分，例如 API server。"),
    "monitor.look-age": ("上次检查", "距离上次检查问题的时间。达到数分钟说明守护进程卡住了。"),
    "monitor.view-age": ("数据时延", "守护进程掌握的集群情况是多久之前的。"),
    "monitor.alerts": ("各状态告警数", "静默或被抑制的太多会掩盖新问题：请检查静默规则。"),
    "monitor.firing-line": ("各级别告警数", "已经通知或将要通知的告警。"),
    "monitor.held": ("数据中断而保留的问题", "无法确认是否恢复，因此保留。请先恢复 agent 或数据来源。"),
    "monitor.deliveries": ("消息发送", "按结果。失败的会重试，搁置的不会。"),
    "monitor.not-sent": ("未送达", "按接收方。用 `gpuwarden alerts test` 发送样例并查看返回。"),
    "monitor.outbox": ("待发消息", "等待发送或已搁置的消息。不断增加：接收方故障或限流。"),
    "monitor.delay": ("送达延迟", "最近一条消息送达时已生成多久。"),
    "monitor.receivers": ("接收方", "守护进程启动以来。最后一列为空是正常的。"),
    "monitor.sources": ("数据来源", "各部分是否看得到。中断期间，问题会保留。"),
    "monitor.lease": ("Lease", "由哪个副本执行操作和发送消息，应当只有一个；没有副本时为空。"),
    "monitor.versions": ("版本", "不在升级期间却有多行：有遗漏没有升级的。"),
    "monitor.look": ("检查耗时", "一次检查的时间超过检查间隔，告警就会变慢。"),
    "monitor.daemon-cpu": ("守护进程 CPU", "核数。长期超过 1：请减少节点，或改用 Prometheus 作为数据来源。"),
    "monitor.daemon-memory": ("守护进程内存", "掌握所有 Pod 之后应保持平稳。连续几天增长请反馈。"),
    "monitor.daemon-files": ("守护进程打开的文件", "占上限的比例。"),
    "monitor.not-explained": ("未解释的 Pod", "超出数量或时间限制的 Pod。仍可用 `gpuwarden why` 逐个查看。"),
    "monitor.uptime": ("已运行", "最近启动的副本。经常很小：请查是否反复崩溃。"),
    "monitor.not-rendered": ("未能输出的指标", "启动以来缺少某一部分的抓取次数。原因见守护进程的日志。"),
    "monitor.silent-nodes": ("失联的 agent", "请检查这些节点上 agent 的 Pod、9835 端口和令牌。空表示正常。"),
    "monitor.broken": ("异常的采集项", "不工作，或无响应及开始时间。原因见该节点 agent 的日志。"),
    "monitor.collectors-up": ("正常的采集项", "占所选节点的比例。节点上没有可读内容的，计为不正常。"),
    "monitor.agents-up": ("抓取到的 agent", "两条线之间有差距时，请在 Prometheus 中查看哪些目标异常。"),
    "monitor.collector-duration": ("各采集项最长耗时", "所选节点中的最大值。突然变大：那里有东西响应很慢。"),
    "monitor.collector-failures": ("每秒失败次数", "最多的 20 个。原因见 agent 的日志。"),
    "monitor.scrape": ("抓取耗时", "接近抓取超时：请调大超时，或查看节点上什么卡住了。"),
    "monitor.samples": ("每次抓取的样本数", "gpuwarden 给 Prometheus 带来的开销。镜像和容器多，序列就多。"),
    "monitor.agent-cpu": ("agent 的 CPU", "核数，最高的 20 个，仅限以 Pod 运行的 agent。超过 0.1 时请看哪个采集项慢。"),
    "monitor.agent-memory": ("agent 的内存", "最高的 20 个，仅限以 Pod 运行的 agent。应保持平稳。"),
    "monitor.agent-cost": ("agent 采集用时", "每秒用于采集的秒数，包括等待：agent 开销的上限。"),
}
