"""Chinese: images that are not there."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "pull_disk_full": "{node} 的磁盘满了：镜像 {image} 放不下。",
    "pull_disk_full_advice": (
        "清理 {node} 存放镜像的磁盘（docker system df 或 crictl images）。gpuwarden cleanup plan "
        "会列出可以安全清理的内容。"
    ),
    "pull_wrong_architecture": "镜像 {image} 没有适合 {node} 处理器架构的版本。",
    "pull_wrong_architecture_advice": (
        "为该架构也构建一份 {image}（docker buildx build --platform linux/amd64,linux/arm64），或用 "
        "kubernetes.io/arch 选择其他节点。"
    ),
    "pull_rate_limited": "{host} 限制了拉取次数：拉取过于频繁。",
    "pull_rate_limited_advice": "稍后再试、登录后拉取（imagePullSecrets），或通过自己的镜像仓库中转。",
    "pull_tls": "{node} 不信任 {host} 的证书。",
    "pull_tls_advice": (
        "把镜像仓库的 CA 放到 {node}（Docker：/etc/docker/certs.d/{host}/ca.crt；containerd："
        "/etc/containerd/certs.d/{host}/hosts.toml），并检查证书是否过期、时钟是否准确。"
    ),
    "pull_plain_http": "{host} 只提供 HTTP，而 {node} 要求 HTTPS。",
    "pull_plain_http_advice": (
        "在 {node} 上放行（Docker：/etc/docker/daemon.json 的 insecure-registries；containerd："
        '/etc/containerd/certs.d/{host}/hosts.toml 里 server = "http://{host}"），或给镜像仓库配上证书。'
    ),
    "pull_dns": "{node} 找不到 {host}：在那里解析不到地址。",
    "pull_dns_advice": (
        "在 {node} 上执行：getent hosts {host}。失败则恢复 /etc/hosts 里的条目或 /etc/resolv.conf 里的 DNS。"
        "如果只有这个节点失败，和正常的节点对比。"
    ),
    "pull_connection_refused": "{host} 拒绝 {node} 的连接：那里没有服务在监听，或被防火墙拒绝。",
    "pull_connection_refused_advice": (
        "镜像仓库在运行吗？在 {node} 上执行：curl -v https://{host}/v2/（返回 401 是正常的）。如果只有这个节点失败，"
        "检查它的 hosts 文件和防火墙。"
    ),
    "pull_timeout": "{host} 没有响应 {node}。",
    "pull_timeout_advice": (
        "在 {node} 上执行：curl -v https://{host}/v2/。没有响应：/etc/hosts 里地址不对、防火墙、代理或路由有问题；"
        "或镜像仓库宕机。"
    ),
    "pull_connection_broken": "从 {node} 到 {host} 的连接在拉取过程中断开。",
    "pull_connection_broken_advice": "检查 {node} 与 {host} 之间的网络、中间的代理，以及镜像仓库自己的日志。",
    "pull_too_slow": "{node} 拉取 {image} 太慢，已超时放弃。",
    "pull_too_slow_advice": (
        "镜像太大或网络太慢。在 {node} 上手工拉取一次（crictl pull {image}）、缩小镜像，或放宽超时（containerd："
        "image_pull_progress_timeout）。"
    ),
    "pull_registry_error": "镜像仓库 {host} 自身有问题：它返回了错误。",
    "pull_registry_error_advice": (
        "检查镜像仓库 {host}：磁盘是否满了、数据库是否正常？Harbor：docker-compose ps 和 core 日志。"
    ),
    "pull_unauthorized": "{host} 不让 {node} 拉取 {image}：没有权限，或仓库里没有这个镜像。",
    "pull_unauthorized_advice": (
        "先检查 {image} 的拼写，再检查凭据：Pod 或其 ServiceAccount 的 imagePullSecrets，以及该账号能否读取这个项目。"
    ),
    "pull_not_found": "{registry} 里没有镜像 {image}。",
    "pull_not_found_advice": "检查 {image} 的名字和标签。它可能已被从仓库删除：重新推送。",
    "pull_damaged_layer": "{node} 下载到的 {image} 与其摘要或大小不符。",
    "pull_damaged_layer_advice": (
        "在 {node} 上删除未完成的下载后重新拉取（crictl rmi {image}；crictl pull {image}）。若反复出现，重新推送镜像，"
        "并检查中间的代理和缓存；不需要腾空节点。"
    ),
    "pull_bad_name": "{image} 不是合法的镜像名。",
    "pull_bad_name_advice": "改正：只能小写，格式为 仓库/项目/名字:标签，不含空格，前面不要写 https://。",
    "pull_never_pull": "{node} 上没有镜像 {image}，而 Pod 禁止拉取（imagePullPolicy: Never）。",
    "pull_never_pull_advice": "改用 imagePullPolicy: IfNotPresent，或事先把 {image} 导入 {node}。",
    "pull_unknown": "{node} 无法拉取镜像 {image}。",
    "pull_unknown_advice": "在 {node} 上手工尝试：crictl pull {image}。运行时日志：journalctl -u containerd -u docker",
    "pull_runtime_down": "{node} 的容器运行时没有响应，{image} 还没有开始拉取。",
    "pull_runtime_down_advice": (
        "在 {node} 上执行：systemctl status containerd docker，重启停掉的服务（{image} 会自动再拉取）。"
    ),
    "pull_kubelet_limit": "{node} 上的 kubelet 限制了自己的拉取频率（registryPullQPS）：{image} 需要等待。",
    "pull_kubelet_limit_advice": (
        "等待即可，{image} 会自动重试。若一直如此，在 {node} 的 kubelet 配置里调大 registryPullQPS 和 registryBurst。"
    ),
    "pull_proxy": "{node} 的容器运行时使用的 HTTP 代理 {host} 有问题，镜像仓库没有问题。",
    "pull_proxy_advice": (
        "在 {node} 上检查 {host} 是否在运行、地址和协议是否正确。设置是运行时的服务的"
        " HTTPS_PROXY（systemctl show -p Environment containerd docker）。内部仓库写进 NO_PROXY，然后重启运行"
        "时。"
    ),
    "pull_mirror": "{node} 配置的镜像加速地址 {host} 有问题，也没能从 {registry} 拉到 {image}。",
    "pull_mirror_advice": (
        "启动或修复镜像加速服务 {host}（Dragonfly、Spegel、Nexus 等），或从 {node} 的运行时配置里去掉它（"
        "containerd：/etc/containerd/certs.d/*/hosts.toml；Docker：registry-mirrors；CRI-O：registries.conf）"
        "。去掉后运行时会直接访问 {registry}，请确认 {node} 能访问它。"
    ),
    "pull_token_expired": "访问 {host} 的凭据已过期：{image} 被拒绝。",
    "pull_token_expired_advice": "更新 {image} 的拉取凭据或令牌（ECR 令牌 12 小时过期），并检查 {node} 的时钟。",
    "pull_credential_helper": "{node} 拿不到 {image} 的凭据：凭据助手无法运行。",
    "pull_credential_helper_advice": (
        "在 {node} 上安装信息里提到的凭据助手，或改正运行时或 kubelet 配置里的 credHelpers。也可以给 Pod 配置"
        " {image} 的 imagePullSecrets。"
    ),
    "pull_policy": "有规则禁止使用 {image}：存在漏洞，或签名缺失、不被接受。",
    "pull_policy_advice": (
        "修复漏洞或给 {image} 签名后重新推送，或请规则的负责人放行（Harbor：项目的 CVE 白名单和部署安全；"
        "CRI-O：{node} 上的 /etc/containers/policy.json）。"
    ),
    "pull_bad_image": "镜像 {image} 本身有问题：{node} 无法解包或使用它。",
    "pull_bad_image_advice": "重新构建并推送 {image}，节点没有问题。如果其他节点能用，和 {node} 比较运行时版本。",
    "pull_old_format": "镜像 {image} 的格式太旧，{node} 的容器运行时已不再支持。",
    "pull_old_format_advice": (
        "用新工具重新构建 {image}，或复制成新格式：skopeo copy --format v2s2 docker://{image} "
        "docker://{image}；{node} 不需要改动。"
    ),
    "pull_corrupt_layer": "{image} 的一层传到 {node} 时已损坏：压缩数据读不出来。",
    "pull_corrupt_layer_advice": (
        "在 {node} 上再拉取一次（crictl pull {image}）。若反复出现，重新推送 {image} 并检查镜像仓库的存储；不"
        "需要腾空节点。"
    ),
    "pull_node_store": "{node} 的镜像存储不一致：记录里有 {image} 的内容，实际已不在。",
    "pull_node_store_advice": (
        "在 {node} 上删除该镜像及其内容后重新拉取（crictl rmi {image}；ctr -n k8s.io content prune references"
        "）。仓库里的镜像没有问题。"
    ),
    "pull_node_disk": "{node} 的磁盘出错或变成只读：{image} 写不进去。",
    "pull_node_disk_advice": (
        "在 {node} 上执行：dmesg | grep -iE 'i/o error|remount|ext4|xfs'。封锁并腾空节点，检查或更换磁盘；"
        "{image} 没有问题。"
    ),
    "pull_snapshotter": "{node} 上按需加载 {image} 的 snapshotter 无法工作。",
    "pull_snapshotter_advice": (
        "在 {node} 上启动或配置信息里提到的 snapshotter（nydus-snapshotter、stargz-snapshotter、"
        "soci-snapshotter）并查看其日志，或让 containerd 改回 overlayfs。之后 {image} 会重新拉取。"
    ),
    "pull_says": "运行时的说法：{message}",
    "pull_attempts": "已尝试 {count} 次。",
    "pull_secret_missing": "Pod 指定的拉取凭据在 {namespace} 里不存在：{message}",
    "pull_node_suspect": "{node} 上有 {count} 个不同的镜像拉取失败：先检查这个节点。",
    "pull_registry_suspect": "有 {count} 个节点从 {registry} 拉取失败：先检查镜像仓库。",
    "pull_image_suspect": "这个镜像在 {count} 个节点上都失败：名字或权限不对。",
    "pull_credential_suspect": "{registry} 的 {count} 个不同镜像都被拒绝：先检查拉取凭据的账号或机器人账号。",
    "pull_host_suspect": "经过 {host} 的拉取在 {count} 个节点上失败：先检查 {host}。",
    "probe_ok": "目前 {node} 能访问 {registry}。",
    "probe_fails": "从 {node} 探测 {registry} 也失败：{cause:code}。",
    "probe_only_here": "只有 {node} 访问不了 {registry}（{cause:code}），其他 {others} 个节点都可以：问题在这个节点。",
    "image_elsewhere": "已有 {count} 个节点存有这个镜像：{nodes}。",
    "pull_in_progress": "{node} 正在拉取镜像 {image}，已用 {seconds:duration}。",
    "pull_slow_advice": "较慢。缩小镜像，或事先在 {node} 上拉取（crictl pull {image}），下次会快。",
    "image_size": "{image} 大小为 {size:bytes}。",
    "probe_others": "其他 {others} 个节点中有 {reach} 个能访问 {registry}。",
}
