"""Chinese: text of the rules about disks, images on disk and mounts."""

from __future__ import annotations

_FULL = "{place} 的磁盘 {mount} 已用 {share:percent}，只剩 {available:bytes}："
_FILLING = "{place} 的磁盘 {mount} 将在 {left:duration}后写满（每小时增长 {rate:bytes}）："

WORDS: dict[str, str] = {
    # shared
    "disk-space": "共 {size:bytes}，已用 {used:bytes}，可用 {available:bytes}。",
    "disk-inodes": "inode 共 {inodes} 个，已用 {used} 个。",
    "disk-nodes": "{count} 个节点挂载了它，例如 {node}。",
    "disk-part.images": "镜像和构建缓存：{bytes:bytes}（占已用的 {share:percent}）。",
    "disk-part.container-layers": "容器写在自身里的文件：{bytes:bytes}（{share:percent}）。",
    "disk-part.logs": "容器日志：{bytes:bytes}（{share:percent}）。",
    "disk-part.volumes": "容器运行时的数据卷：{bytes:bytes}（{share:percent}）。",
    "disk-part.datasets": "数据：{bytes:bytes}（{share:percent}）。",
    "disk-part.other": "其他：{bytes:bytes}（{share:percent}）。",
    "disk-owner": "{pod}（用户 {user}）：写在容器里 {layer:bytes}，日志 {log:bytes}。",
    "disk-image.used": "镜像 {image}：{bytes:bytes}，使用者：{users}。",
    "disk-image.unused": "镜像 {image}：{bytes:bytes}，没有容器使用。",
    "disk-image.local": "镜像 {image}：{bytes:bytes}，没有容器使用；已知的镜像仓库里都没有，删除前先 push 或 save。",
    # shm-pressure
    "rule.shm-pressure": "共享内存不足",
    "doc.shm-pressure": "Pod 的共享内存快满了，或小到数据加载一定会用完。",
    "doc.shm-pressure.severity": "警告；达到 `critical` 为严重",
    "doc.shm-pressure.incident": "out of shared memory，作业报 bus error。",
    "doc.shm-pressure.limit.nearly_full": "用到多少触发警告。",
    "doc.shm-pressure.limit.default_size": "多大视为没有设置过。",
    "shm-pressure.nearly-full": (
        "{node} 上 {pod} 的共享内存已用 {share:percent}（{used:bytes}，共 {size:bytes}）：再写就可能因 bus error 退出。"
    ),
    "shm-pressure.default-size": (
        "{node} 上的 {pod} 用 GPU 训练，但共享内存只有默认的 {size:bytes}：多个数据加载进程会不够用。"
    ),
    "shm-pressure.used": "共享内存（/dev/shm）共 {size:bytes}，已用 {used:bytes}。",
    "shm-pressure.processes": "它有 {count} 个进程占用 GPU。",
    "shm-pressure.owner": "所属用户：{user}。",
    "shm-pressure.advice": (
        "给 Pod 加一个 emptyDir（medium: Memory，sizeLimit: {wanted}）并挂载到 /dev/shm"
        "（直接用 Docker 时：--shm-size）；在此之前减少数据加载进程数。"
    ),
    # disk-full
    "rule.disk-full": "磁盘空间不足",
    "doc.disk-full": "磁盘空间或 inode 快用完，或被内核改为只读；并指出是什么占满的。",
    "doc.disk-full.severity": "警告；达到 `critical` 或变成只读为严重",
    "doc.disk-full.incident": "系统盘写满，平台宕机后才定位到。",
    "doc.disk-full.limit.warning": "磁盘用到多少触发警告（与 `df` 相同），inode 同理。",
    "disk-full.images": _FULL + "主要是容器镜像（{bytes:bytes}）。",
    "disk-full.container-layers": _FULL + "主要是容器写在自身里的文件（{bytes:bytes}）。",
    "disk-full.logs": _FULL + "主要是容器日志（{bytes:bytes}）。",
    "disk-full.volumes": _FULL + "主要是容器运行时的数据卷（{bytes:bytes}）。",
    "disk-full.datasets": _FULL + "主要是数据（{bytes:bytes}）。",
    "disk-full.other": _FULL + "主要是不属于任何容器的文件（{bytes:bytes}）。",
    "disk-full.inodes": (
        "{place} 的磁盘 {mount} 的 inode 已用 {share:percent}：虽然还剩 {available:bytes}，但很快就不能再新建文件。"
    ),
    "disk-full.read-only": "{place} 的磁盘 {mount} 变成了只读：需要往里写的程序现在都会失败。",
    "disk-full.images.advice": (
        "gpuwarden cleanup plan 列出 {node} 上可以安全删除的镜像；由 images 类清理策略在夜间删除，或立即执行"
        "：gpuwarden cleanup run POLICY"
    ),
    "disk-full.container-layers.advice": ("请上面列出的用户把数据写到数据盘，或重启 Pod：写在容器里的文件会随之删除。"),
    "disk-full.logs.advice": (
        "在 {node} 上清空最大的日志（truncate -s 0 文件），并限制日志大小：Docker 设 log-opts max-size=100m，"
        "kubelet 设 containerLogMaxSize。"
    ),
    "disk-full.volumes.advice": (
        "在 {node} 上用 docker system df -v 查看没有容器使用的数据卷。删除之前先问所有者：docker volume rm 名称"
    ),
    "disk-full.datasets.advice": "找出最大的目录及其所有者：du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.other.advice": "在 {node} 上找出大文件：du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.inodes.advice": (
        "在 {node} 上找出文件最多的目录：du -x --inodes --max-depth=3 {mount} | sort -rn | head"
    ),
    "disk-full.read-only.advice": (
        "在 {node} 上查看原因（{device}：dmesg -T | grep -iE 'error|remount'），先保存数据，再 fsck 或更换磁盘。"
    ),
    # disk-filling
    "rule.disk-filling": "磁盘即将写满",
    "doc.disk-filling": "按最近几小时的增长，磁盘很快会写满；并指出是什么在占用。",
    "doc.disk-filling.severity": "警告；短于 `critical` 为严重",
    "doc.disk-filling.incident": "同上，提前预警。",
    "doc.disk-filling.limit.warning": "离写满还有多久时触发警告。",
    "disk-filling.images": _FILLING + "主要是容器镜像。",
    "disk-filling.container-layers": _FILLING + "主要是容器写在自身里的文件。",
    "disk-filling.logs": _FILLING + "主要是容器日志。",
    "disk-filling.volumes": _FILLING + "主要是容器运行时的数据卷。",
    "disk-filling.datasets": _FILLING + "主要是数据。",
    "disk-filling.other": _FILLING + "主要是不属于任何容器的文件。",
    "disk-filling.advice": (
        "请找出是什么在增长：在 {node} 上执行 du -xh --max-depth=2 {mount} | sort -rh | head，过一会儿再比较。"
    ),
    "disk-filling.history": "最近 {window:duration}增长了 {bytes:bytes}。",
    # disk-io-saturated
    "rule.disk-io-saturated": "磁盘 I/O 过载",
    "doc.disk-io-saturated": "磁盘一直繁忙、请求积压；并列出节点上的 Pod。",
    "doc.disk-io-saturated.severity": "警告",
    "doc.disk-io-saturated.incident": "训练 IO 较大，作业偶尔失败，网络时而中断。",
    "doc.disk-io-saturated.limit.busy": "繁忙程度达到多少。",
    "doc.disk-io-saturated.limit.queue": "等待的请求数达到多少。",
    "disk-io-saturated": (
        "{node} 的磁盘 {device} 已连续繁忙 {seconds:duration}（{share:percent}），"
        "有 {queue} 个请求在排队：上面的一切都很慢。"
    ),
    "disk-io-saturated.mounts": "它承载 {mounts}。",
    "disk-io-saturated.queue": "开始时有 {before} 个请求在排队，现在是 {queue} 个。",
    "disk-io-saturated.waiting": "{pod}（用户 {user}）在等它：{count} 个进程处于 D 状态。",
    "disk-io-saturated.pod": "{pod}（用户 {user}）在该节点上运行。",
    "disk-io-saturated.advice": (
        "在 {node} 上执行 iotop -oPa 查看谁读写最多。把数据集移到其他磁盘或放进内存，降低写 checkpoint 的频率。"
    ),
    # image-cache-large
    "rule.image-cache-large": "镜像占用磁盘过多",
    "doc.image-cache-large": "镜像占用磁盘过多；并指出哪些可以删。",
    "doc.image-cache-large.severity": "警告",
    "doc.image-cache-large.incident": "急需扩容 docker 缓存空间。",
    "doc.image-cache-large.limit.share": "镜像缓存可占磁盘的比例。",
    "doc.image-cache-large.limit.size": "镜像缓存的总上限；0 表示只看比例。",
    "image-cache-large.growth": "{node} 的 {mount} 上镜像占 {bytes:bytes}，是磁盘的 {share:percent}，大部分正在使用。",
    "image-cache-large.unused-images": (
        "{node} 的 {mount} 上镜像占 {bytes:bytes}，是磁盘的 {share:percent}；其中 {unused:bytes} 未使用。"
    ),
    "image-cache-large.build-cache": (
        "{node} 的 {mount} 上镜像占 {bytes:bytes}，是磁盘的 {share:percent}；其中 {build:bytes} 是构建缓存。"
    ),
    "image-cache-large.growth.advice": (
        "把 {node} 的运行时目录迁到更大的磁盘，或把作业分散到其他节点；请最大镜像的所有者缩小镜像。"
    ),
    "image-cache-large.unused-images.advice": (
        "gpuwarden cleanup plan 列出 {node} 上可以安全删除的镜像；由 images 类清理策略在夜间删除，或立即执行"
        "：gpuwarden cleanup run POLICY"
    ),
    "image-cache-large.build-cache.advice": (
        "gpuwarden cleanup plan 列出 {node} 上可以安全删除的构建缓存；由 images 类清理策略删除。"
    ),
    # image-oversize
    "rule.image-oversize": "镜像过大",
    "doc.image-oversize": "镜像太大，占满磁盘、启动慢；并指出谁在用。",
    "doc.image-oversize.severity": "警告",
    "doc.image-oversize.incident": "用户保存 2 个 59G 的大镜像，导致平台不能访问。",
    "doc.image-oversize.limit.size": "镜像最大多大。",
    "image-oversize": "镜像 {image} 有 {bytes:bytes}，在 {count} 个节点上（{nodes}）。",
    "image-oversize.used": "使用者：{users}。",
    "image-oversize.unused": "现在没有容器使用它。",
    "image-oversize.advice": (
        "请所有者不要把数据、缓存和 checkpoint 放进镜像（docker history {image} 可看出哪一步最大），改为挂载。"
    ),
    # mass-deletion
    "rule.mass-deletion": "大量数据被删除",
    "doc.mass-deletion": "某个挂载上的大量数据在几分钟内消失。本产品自己的清理不算；手工大清理前请先静默。",
    "doc.mass-deletion.severity": "严重",
    "doc.mass-deletion.incident": "环境被黑，删除了数据。",
    "doc.mass-deletion.limit.share": "消失的数据占多少。",
    "doc.mass-deletion.limit.size": "消失多少数据。",
    "doc.mass-deletion.limit.within": "多长时间之内。",
    "doc.mass-deletion.limit.keep_for": "持续报告多久。",
    "mass-deletion": "{place} 的 {mount} 上有 {bytes:bytes} 数据（{share:percent}）在 {window:duration}内消失。",
    "mass-deletion.now": "原有 {before:bytes}，现在只有 {now:bytes}。",
    "mass-deletion.advice": (
        "请立即确认是否有意删除。如果不是：停止删除，改为只读（mount -o remount,ro {mount}），从快照恢复。查看谁登录"
        "过 {node}：last -n 20"
    ),
    # mount-lost
    "rule.mount-lost": "挂载丢失",
    "doc.mount-lost": "`agent.mounts` 中要求的挂载丢失、卡住、只读或失效。",
    "doc.mount-lost.severity": "严重",
    "doc.mount-lost.incident": "NAS 挂载错误。",
    "doc.mount-lost.limit.everywhere": "多少个节点同时丢失视为存储服务器的问题。",
    "mount-lost.missing": "{node} 上没有挂载 {mount}：那里的作业找不到数据。",
    "mount-lost.hung": "{node} 上的 {mount} 已 {seconds:duration}没有响应：访问它的程序都会卡住。",
    "mount-lost.read-only": "{node} 上的 {mount} 不能写入：保存 checkpoint 会失败。",
    "mount-lost.stale": "{node} 上的 {mount} 已失效：{error}。",
    "mount-lost.everywhere": "{total} 个节点中有 {count} 个丢失了 {mount}（{state:code}）：请先检查存储服务器。",
    "mount-lost.missing.advice": "在 {node} 上重新挂载 {mount}；检查 /etc/fstab 是否有它，存储服务器是否能访问。",
    "mount-lost.hung.advice": (
        "在 {node} 上检查存储服务器能否访问（grep {mount} /proc/mounts，再 ping 它）；"
        "如果不会恢复：umount -f -l {mount}"
    ),
    "mount-lost.read-only.advice": (
        "在 {node} 上执行 dmesg -T | grep -iE 'nfs|remount|error'；检查导出权限，然后：mount -o remount,rw {mount}"
    ),
    "mount-lost.stale.advice": "在 {node} 上执行 umount -l {mount} && mount {mount}；使用它的 Pod 需要重启。",
    "mount-lost.everywhere.advice": "检查 {mount} 的存储服务器和网络是否正常。在 {node} 上：grep {mount} /proc/mounts",
    "mount-lost.since": "已持续 {seconds:duration}。",
    "mount-lost.pods": "{node} 上有 {count} 个 Pod 可能在使用它。",
}
