"""Chinese: whether a job that does not exist yet would fit."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "fits_now": "现在放得下：{pods} x {each:gpus}。",
    "fits_where": "有空位的节点：{nodes}。",
    "fits_split": "按 {pods} x {each:gpus} 放不下，但换一种拆法现在放得下。",
    "fits_split_way": "拆成 {workers}：{nodes}。",
    "fits_cpu_per_gpu": "每个 Pod 的 CPU：每张 GPU 配 {cpu} 核。",
    "fits_memory_per_gpu": "每个 Pod 的内存：每张 GPU 配 {memory:bytes}。",
    "fits_most": "单个节点最多还能放 {most:gpus}（{node}）。",
    "fits_after": "现在放不下。等 {count} 个作业结束后，可以按 {workers} 放下。",
    "fits_after_split": "每个 Pod {each:gpus} 永远放不下。等 {count} 个作业结束后，可以按 {workers} 放下。",
    "fits_held": "{job}（{user}）占着 {nodes} 上的 {gpus:gpus}。",
    "fits_held_since": "{job}（{user}）占着 {nodes} 上的 {gpus:gpus}，已运行 {seconds:duration}。",
    "fits_terminating": "{job} 正在退出。",
    "fits_lasting": "{job} 是服务或一组副本，不会自己结束。",
    "fits_more_jobs": "另外还有 {count} 个作业。",
    "fits_estimate": (
        "预计还要 {seconds:duration}（{earliest:duration} 到 {latest:duration} 之间），依据是每个作业至少 {runs} 次"
        "历史运行。"
    ),
    "fits_no_estimate": "无法预计时间：这些作业的历史运行次数太少。",
    "fits_never": "放不下，等其他作业结束也没有用。",
    "fits_too_few": "它能用的所有节点最多放 {most} x {each:gpus}，而它需要 {pods} 个。",
    "fits_no_model": "没有节点装有 {model} 型号的 GPU。集群里的型号：{models}。",
    "fits_no_queue": "没有队列 {queue}。集群里的队列：{queues}。",
    "fits_unknown": "无法判断。",
    "fits_per_card": "{resource} 由专门的调度器逐卡分配：从节点的空闲总量看不出单张卡是否放得下。",
    "fits_models_unknown": "不知道这些节点的 GPU 型号：{nodes}。",
    "fits_no_class": "GPU 只能通过资源声明使用，但没有找到对应整卡的 DeviceClass。",
    "fits_nodes_unclear": (
        "其他节点没有空位，而这些节点的余量无法确定，因为它们的 GPU 是逐卡分配的，或同时由设备插件和资源声明分配："
        "{nodes}。"
    ),
    "fits_room_only": "节点上有空位：{nodes}。",
    "fits_queue_unread": "读不到队列 {queue} 的限额。",
    "fits_queue_ambiguous": "多个命名空间都有队列 {queue}，请指明命名空间。",
    "fits_uncovered": "ClusterQueue {queue} 没有 {resource} 的配额。",
    "fits_flavors": "Kueue 只让作业使用 ClusterQueue {queue} 某个 flavor 的节点，而这些节点是哪些无法得知。",
    "fits_borrows": (
        "ClusterQueue {queue} 的 {resource} 配额为 {limit}，已预留 {used}，作业需要 {needs}：取决于同一 cohort 的"
        "其他队列能借出多少。"
    ),
    "fits_weights": "队列 {queues} 里也有作业在等，Volcano 可能先启动它们。",
    "fits_unusable": "调度器会把有故障的、或被残留进程占用的 GPU 也算作空闲：{nodes}。",
    "fits_select_model": "在作业的节点亲和性里选定型号：{label} in ({values})",
    "fits_claim": "用 DeviceClass {name} 的 ResourceClaim 申请 GPU。",
    "fits_only_claims": "这些节点的 GPU 只给带资源声明的作业使用：{nodes}。",
    "fits_unseen": "读不到集群：{error}。",
}
