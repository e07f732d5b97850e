"""Chinese: the dashboard of the cluster."""
# ruff: noqa: RUF001

from __future__ import annotations

DASHBOARD = ("gpuwarden / 集群总览", "GPU 在做什么、哪里还有空闲、节点和服务是否正常、现在有什么问题。")
ROWS = {
    "cluster.now": "当前",
    "cluster.findings": "当前问题",
    "cluster.gpus": "GPU 与队列",
    "cluster.nodes": "节点",
    "cluster.trend": "问题趋势",
    "cluster.services": "服务",
}
PANELS = {
    "cluster.gpus": ("GPU 总数", "gpuwarden 已知的卡。如果比昨天少，请检查掉卡和失联的 agent。"),
    "cluster.free": ("空闲", "没有人占用的卡。一张不剩时，先看谁占而不用，再考虑采购。"),
    "cluster.wasted": (
        "浪费",
        (
            "占而不用，或被不干活的东西占着的卡（僵尸占用、集群外进程、显存残留、进程卡死、虚占）。"
            "请到“GPU 与任务”查看占用者，请他们释放，或清理遗留的进程。"
        ),
    ),
    "cluster.faulty": ("故障或未知", "报错、掉卡，或没有最新数据的卡。重置之前请先排空节点。"),
    "cluster.waiting": ("排队需要的 GPU", "队列中的任务在等的卡数。用 `gpuwarden why POD` 查看缺什么。"),
    "cluster.nodes-down": ("未就绪节点", "Kubernetes 认为未就绪的节点。请检查 kubelet 和网络。"),
    "cluster.critical": ("严重问题", "所有严重问题，包括由其他问题引起的。原因见下表。"),
    "cluster.services-down": ("异常服务", "探测失败的服务，详见“服务”一栏。"),
    "cluster.findings": ("当前问题", "不含由其他问题引起的。处理办法见 gpuwarden 页面和告警消息。"),
    "cluster.states": ("GPU 状态", "蓝色是在工作，绿色是空闲；其他颜色都是花了钱却没有用上的卡。"),
    "cluster.states-now": ("当前状态", "此刻各状态的卡数。"),
    "cluster.by-user": ("各用户占用的 GPU", "谁占的卡最多。点击用户查看这些卡的使用情况。"),
    "cluster.by-model": ("各型号空闲", "最后一列是放得下的最大 Pod：空闲卡分散在很多节点上，帮不了需要 8 张卡的作业。"),
    "cluster.queues": ("队列", "有空闲却在排队的队列，是被别的原因挡住了：原因见“GPU 与任务”。"),
    "cluster.queue-used": ("各队列在用的 GPU", "各队列的任务占用的卡数。"),
    "cluster.queue-waiting": ("各队列排队需要的 GPU", "只增不减的队列需要更多配额，或请用户少申请。"),
    "cluster.nodes": ("节点", "点击节点查看它的卡。agent 失联时，这一行的其他数据可能过时或缺失。"),
    "cluster.node-utilization": (
        "各节点 GPU 利用率",
        "节点上所有卡的平均值，最低的 60 个。卡都占满而利用率低，说明任务在等数据或互相等待。",
    ),
    "cluster.node-load": (
        "每 CPU 负载",
        "最高的 60 个。超过 100% 时，想运行或在等 I/O 的线程多于 CPU：数据加载会拖慢 GPU。",
    ),
    "cluster.node-network": ("节点网络流量", "最高的 20 个。只含网卡的普通流量，RDMA 流量不计入这些计数器。"),
    "cluster.by-severity": ("各级别问题数", "突然上升的时刻，就是该查改动的时刻。"),
    "cluster.by-rule": ("各规则问题数", "当前发现问题的规则，多的在前。"),
    "cluster.services": ("服务", "各服务是否正常。空白表示当时没有探测。"),
    "cluster.probe-duration": ("探测耗时", "越来越慢的服务，往往快要出故障了。"),
}
