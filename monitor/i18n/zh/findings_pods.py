"""Chinese: text of the rules about pods, images and queues."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # image-pull
    "rule.image-pull": "镜像拉取失败",
    "doc.image-pull": "Pod 的镜像拉取失败，并指出原因。第一次失败就告警。",
    "doc.image-pull.severity": "警告",
    "doc.image-pull.incident": "ImagePullBackOff，却不知道原因。",
    "doc.image-pull.limit.failures": "失败几次才告警。",
    "image-pull.disk-full": "{user} 的 Pod {pod} 拿不到镜像：{node} 的磁盘放不下 {image}。",
    "image-pull.wrong-architecture": "{user} 的 Pod {pod} 拿不到镜像：{image} 不适合 {node} 的处理器架构。",
    "image-pull.rate-limited": "{user} 的 Pod {pod} 拿不到镜像：{host} 限制了 {node} 拉取 {image} 的次数。",
    "image-pull.tls": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 不信任 {host} 的证书。",
    "image-pull.plain-http": "{user} 的 Pod {pod} 拿不到镜像 {image}：{host} 只提供 HTTP，而 {node} 要求 HTTPS。",
    "image-pull.dns": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 解析不到 {host} 的地址。",
    "image-pull.connection-refused": "{user} 的 Pod {pod} 拿不到镜像 {image}：{host} 拒绝 {node} 的连接。",
    "image-pull.timeout": "{user} 的 Pod {pod} 拿不到镜像 {image}：{host} 没有响应 {node}。",
    "image-pull.connection-broken": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 到 {host} 的连接中途断开。",
    "image-pull.too-slow": "{user} 的 Pod {pod} 拿不到镜像：{node} 拉取 {image} 太慢，已放弃。",
    "image-pull.registry-error": "{user} 的 Pod {pod} 拿不到镜像 {image}：{host} 给 {node} 返回了错误。",
    "image-pull.unauthorized": (
        "{user} 的 Pod {pod} 拿不到镜像：{host} 不让 {node} 拉取 {image}，或仓库里没有这个镜像。"
    ),
    "image-pull.not-found": "{user} 的 Pod {pod} 拿不到镜像：{registry} 里没有 {image}。",
    "image-pull.damaged-layer": "{user} 的 Pod {pod} 拿不到镜像：{node} 存不下 {image}，有一层已损坏。",
    "image-pull.bad-name": "{user} 的 Pod {pod} 拿不到镜像：{image} 不是合法的镜像名。",
    "image-pull.never-pull": "{user} 的 Pod {pod} 拿不到镜像：{node} 上没有 {image}，而 Pod 禁止拉取。",
    "image-pull.unknown": "{user} 的 Pod {pod} 拿不到镜像：{node} 无法拉取 {image}。",
    # image-pull-slow
    "rule.image-pull-slow": "镜像拉取缓慢",
    "doc.image-pull-slow": "镜像拉取太慢：镜像太大、仓库慢，或磁盘慢。",
    "doc.image-pull-slow.severity": "警告",
    "doc.image-pull-slow.incident": "50 GB 的镜像，创建环境用了 14 分钟。",
    "doc.image-pull-slow.limit.pulling": "拉取超过多久算慢。",
    "doc.image-pull-slow.limit.rate": "不小于 `large` 的镜像每秒至少应拉取多少。",
    "doc.image-pull-slow.limit.large": "多大的镜像才看速率。",
    "doc.image-pull-slow.limit.spoken_of": "慢拉取结束后多久内仍报告。",
    "image-pull-slow.large-image": "{node} 拉取 {image} 已用 {seconds:duration}（{user} 的 Pod {pod}）：镜像很大。",
    "image-pull-slow.large-image.advice": (
        "缩小镜像、不要把数据放进镜像，或提前拉取：在 {node} 上执行 crictl pull {image}"
    ),
    "image-pull-slow.slow-registry": (
        "{node} 从 {registry} 拉取 {image} 很慢：{took:duration}（{user} 的 Pod {pod}）。"
    ),
    "image-pull-slow.slow-registry.advice": (
        "和其他节点对比。都慢就检查 {registry} 的磁盘和网络；只有 {node} 慢就检查它的网络（ethtool、iperf3）。"
    ),
    "image-pull-slow.slow-disk": "{node} 写入 {image} 很慢：{took:duration}（{user} 的 Pod {pod}），磁盘繁忙。",
    "image-pull-slow.slow-disk.advice": "在 {node} 上用 iostat -x 5 看谁在写。镜像最好放在单独的磁盘（SSD）上。",
    "image-pull-slow.done": "拉取已经结束。",
    "image-pull-slow.rate": "平均每秒 {rate:bytes}，预期至少每秒 {limit:bytes}。",
    # registry-unreachable
    "rule.registry-unreachable": "镜像仓库无法访问",
    "doc.registry-unreachable": "节点访问不了镜像仓库，或仓库本身停了：合并成一条，而不是每个 Pod 一条。",
    "doc.registry-unreachable.severity": "警告",
    "doc.registry-unreachable.incident": "节点丢了 Harbor 的 hosts 配置。",
    "doc.registry-unreachable.limit.images": "多少个不同镜像失败才报；agent 探测失败则一次即可。",
    "registry-unreachable.node-cannot-resolve": "{nodes} 找不到 {registries}：在那里解析不到地址。",
    "registry-unreachable.node-cannot-resolve.advice": (
        "在 {node} 上执行：getent hosts {registry}。失败则恢复 /etc/hosts 里的条目或 /etc/resolv.conf 里的 DNS，"
        "并和正常的节点对比。"
    ),
    "registry-unreachable.node-cannot-connect": "{nodes} 连不上 {registries}。",
    "registry-unreachable.node-cannot-connect.advice": (
        "在 {node} 上执行：curl -v https://{registry}/v2/（返回 401 是正常的）。检查 /etc/hosts 里的地址、防火墙、"
        "代理和路由。"
    ),
    "registry-unreachable.node-does-not-trust": "{nodes} 不接受 {registries} 的证书或协议。",
    "registry-unreachable.node-does-not-trust.advice": (
        "在 {node} 上把镜像仓库的 CA 放到 /etc/docker/certs.d/{registry}/ca.crt 或 "
        "/etc/containerd/certs.d/{registry}/hosts.toml，并检查时钟和证书有效期。"
    ),
    "registry-unreachable.registry-down": "镜像仓库 {registries} 宕机：{count} 个节点（{nodes}）都访问不了。",
    "registry-unreachable.registry-down.advice": (
        "检查镜像仓库本身：curl -v https://{registry}/v2/。Harbor：docker-compose ps、磁盘、数据库、core 日志。"
    ),
    "registry-unreachable.probes": "在 {count} 个节点上探测失败：{error}",
    "registry-unreachable.others": "其他 {count} 个节点可以访问。",
    "registry-unreachable.pulls": "有 {pods} 个 Pod 因此等待 {images} 个镜像。",
    # pod-pending
    "rule.pod-pending": "Pod 排队等待",
    "doc.pod-pending": "作业的 Pod 等待调度过久，并说明原因。",
    "doc.pod-pending.severity": "警告",
    "doc.pod-pending.incident": "为什么调度不成功？是资源不够吗？",
    "doc.pod-pending.limit.waiting": "Pod 可以等待调度多久。",
    "pod-pending.no-single-node-fits": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有一个节点有 {gpus} 张空闲 GPU。"
    ),
    "pod-pending.not-enough-gpus": (
        "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：空闲 GPU 不够 {gpus} 张。"
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
    "pod-pending.priority": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：其他作业优先级更高。",
    "pod-pending.overtaken": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：后提交的作业先拿到了 GPU。",
    "pod-pending.unschedulable-other": "{job}（{user}）有 {count} 个 Pod 已等待 {seconds:duration}：没有节点能接收它。",
    "pod-pending.advice": "随时查看详细原因：gpuwarden why -n {namespace} {pod}",
    # pod-stuck-creating
    "rule.pod-stuck-creating": "Pod 卡在创建中",
    "doc.pod-stuck-creating": "Pod 已分到节点，容器却一直创建不出来，且不是镜像问题。",
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
    "pod-stuck-creating.advice": (
        "查看详情：kubectl describe pod {pod} -n {namespace}；在 {node} 上：journalctl -u kubelet | grep {pod}"
    ),
    # pod-start-failed
    "rule.pod-start-failed": "Pod 启动失败",
    "doc.pod-start-failed": "容器创建或启动失败，或反复退出。",
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
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus} 张 GPU，启动 "
        "{seconds:duration}以来一行日志也没有。"
    ),
    "pod-silent.never-logged.advice": (
        "问 {user} 作业是否正常。Python 会缓存输出：设置 PYTHONUNBUFFERED=1。输出是否写进了文件？kubectl logs {pod} "
        "-n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.stopped-logging": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus} 张 GPU，已有 {seconds:duration}没有写日志。"
    ),
    "pod-silent.stopped-logging.advice": (
        "问 {user} 作业是否卡住（NCCL、数据加载、磁盘满）：kubectl logs {pod} -n {namespace} -c {container} --tail 20"
    ),
    "pod-silent.log-unreadable": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 占着 {gpus} 张 GPU，启动 "
        "{seconds:duration}后仍读不到它的日志。"
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
    "quota-exhausted.namespace": "命名空间 {name} 已用 {used} 张 GPU，配额 {quota} 上限 {limit} 张，还有作业在等待。",
    "quota-exhausted.namespace.advice": (
        "释放 {name} 里的 GPU，或提高配额：kubectl edit resourcequota {quota} -n {name}"
    ),
    "quota-exhausted.queue": "队列 {name} 已用 {used} 张 GPU，上限 {limit} 张，还有作业在等待。",
    "quota-exhausted.queue.advice": (
        "释放队列 {name} 的 GPU，或提高它的上限（Volcano：spec.capability；Kueue：nominalQuota）。"
    ),
    "quota-exhausted.waiting": "有 {count} 个作业在等待 {needs} 张 GPU：{jobs}。",
    "quota-exhausted.holders": "占用最多的：{holders}。",
}
