"""Chinese: the dashboard of storage and cleanup."""
# ruff: noqa: RUF001

from __future__ import annotations

DASHBOARD = (
    "gpuwarden / 存储与清理",
    "磁盘有多满、装了什么、何时写满，挂载和镜像仓库是否正常，以及清理了什么。",
)
ROWS = {
    "storage.now": "当前",
    "storage.disks": "磁盘",
    "storage.io": "I/O",
    "storage.images": "镜像",
    "storage.containers": "容器写入的内容",
    "storage.reach": "挂载与镜像仓库",
    "storage.cleanup": "清理",
}
PANELS = {
    "storage.full": ("超过 80% 的磁盘", "下方可以看到是什么占满的：镜像、可写层、日志还是数据。"),
    "storage.filling": ("24 小时内写满", "按最近 6 小时的增长推算。请优先处理。"),
    "storage.inodes": ("inode 超过 80%", "小文件太多：即使还有空间，也不能再新建文件。"),
    "storage.broken": ("无响应、出错、变成只读", "变成只读的磁盘往往快坏了；无响应的多半是 NAS 失联。"),
    "storage.mounts-lost": ("丢失的挂载", "应有而没有或没有响应的挂载，按节点计数。"),
    "storage.registries-lost": ("无法访问的镜像仓库", "节点与镜像仓库的组合数。这些节点无法拉取镜像。"),
    "storage.disks": ("磁盘", "已用按 df 计算。预计写满按 6 小时的趋势推算，没有增长的为空。"),
    "storage.share": ("已用", "最满的 20 个。gpuwarden 在 80% 时警告，90% 为严重。"),
    "storage.marks": (
        "镜像所在磁盘与 kubelet 的水位线",
        (
            "超过第一条线，kubelet 会删除镜像，任务还得重新拉取；到最后一条线会驱逐 Pod。请提前清理。"
            "多个节点时画出最严格的水位线。"
        ),
    ),
    "storage.prediction": ("24 小时后用量", "按最近 6 小时的趋势。到 100% 的，请今天腾出空间。"),
    "storage.room": ("距离 kubelet 驱逐 Pod 的余量", "磁盘剩余减去驱逐水位线，最小的 20 个。低于 0 时正在驱逐 Pod。"),
    "storage.inodes-line": ("inode 用量", "最满的 20 个。查找位置：du -x --inodes --max-depth=3 挂载点。"),
    "storage.busy": ("繁忙时间", "超过 90% 且旁边的队列也长：磁盘是瓶颈。"),
    "storage.queue": ("等待中的请求", "繁忙的磁盘连续几分钟超过 4：任务在等。请迁移数据集，或把任务分散开。"),
    "storage.throughput": ("读写吞吐", "各取最高的 10 个。可与磁盘的额定能力比较。"),
    "storage.iowait": ("等待 I/O 的 CPU", "最高的 20 个。长期超过 1 个核：训练受限于存储。"),
    "storage.cache": ("镜像缓存", "每个运行时的全部镜像，共享层只计一次，最大的 20 个。"),
    "storage.unused": ("未使用的镜像", "没有容器使用、可以清理的镜像数。"),
    "storage.parts": ("运行时占用的空间", "所选节点合计。增长最快的部分，就是该先处理的。"),
    "storage.oversize": ("最大的镜像", "超过 30 GiB 的镜像拉取慢、占磁盘：请把数据和编译工具从镜像中移出。"),
    "storage.layers": ("最大的可写层", "容器写在自身里的文件。请改用数据卷。"),
    "storage.logs": ("最大的日志", "请限制大小：kubelet 的 containerLogMaxSize，或 Docker 的 max-size。"),
    "storage.shm": ("共享内存占比", "最满的 20 个。它占的是节点内存，Pod 结束前不会归还。"),
    "storage.log-growth": ("日志增长", "15 分钟内最快的 20 个。刷日志的任务会写满大家的磁盘。"),
    "storage.mounts": ("应有的挂载", "一个节点异常：重新挂载。所有节点异常：检查存储服务器。"),
    "storage.mount-latency": ("挂载响应时间", "一次小请求的秒数。所有节点都变慢：存储服务器过载。"),
    "storage.mount-states": ("异常的挂载", "无响应、缺失、失效或只读，及开始时间。空表示正常。"),
    "storage.registries": ("镜像仓库", "各节点能否访问各镜像仓库。只有一个节点异常时，请检查该节点的网络。"),
    "storage.registry-duration": ("镜像仓库探测耗时", "每个镜像仓库取最慢的节点。"),
    "storage.registry-failures": ("无法访问镜像仓库的原因", "失败环节指明该查什么：DNS、TCP、TLS 还是 HTTP。"),
    "storage.policies": ("清理策略", "守护进程启动以来的次数、项数和字节数。从未执行的，请检查计划或触发条件。"),
    "storage.freed": ("释放空间", "各策略释放的字节数。"),
    "storage.runs": ("执行次数", "按结果。失败的原因见 `gpuwarden cleanup history`。"),
    "storage.items": ("处理项数", "按结果。被拒绝的多，说明保护规则在起作用，并会说明原因。"),
    "storage.actions": ("节点上的操作", "agent 执行和拒绝的操作。因令牌被拒绝：有人在尝试，或令牌已过期。"),
}
