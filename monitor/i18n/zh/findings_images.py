"""Chinese: findings about images, pulls and registries."""

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
    "image-pull.damaged-layer": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 下载到的内容与摘要不符。",
    "image-pull.bad-name": "{user} 的 Pod {pod} 拿不到镜像：{image} 不是合法的镜像名。",
    "image-pull.never-pull": "{user} 的 Pod {pod} 拿不到镜像：{node} 上没有 {image}，而 Pod 禁止拉取。",
    "image-pull.kubelet-limit": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的 kubelet 限制了自己的拉取频率。",
    "image-pull.proxy": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的 HTTP 代理 {host} 有问题。",
    "image-pull.mirror": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的镜像加速地址 {host} 有问题。",
    "image-pull.token-expired": "{user} 的 Pod {pod} 拿不到镜像 {image}：访问 {host} 的凭据已过期。",
    "image-pull.credential-helper": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的凭据助手无法运行。",
    "image-pull.policy": "{user} 的 Pod {pod} 拿不到镜像 {image}：镜像仓库或 {node} 的规则禁止使用它。",
    "image-pull.bad-image": "{user} 的 Pod {pod} 拿不到镜像 {image}：镜像本身有问题，{node} 无法解包。",
    "image-pull.old-format": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的运行时已不再支持它的格式。",
    "image-pull.corrupt-layer": "{user} 的 Pod {pod} 拿不到镜像 {image}：有一层传到 {node} 时已损坏。",
    "image-pull.node-store": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的镜像存储不一致。",
    "image-pull.node-disk": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的磁盘出错或变成只读。",
    "image-pull.snapshotter": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的 snapshotter 无法工作。",
    "image-pull.runtime-down": "{user} 的 Pod {pod} 拿不到镜像 {image}：{node} 的容器运行时没有响应。",
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
}
