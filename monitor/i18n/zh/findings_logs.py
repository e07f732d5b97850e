"""Chinese: findings about containers whose log says why they fail (pod-start-failed)."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "pod-start-failed.gpu-fault": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：GPU 报告错误（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.storage": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：存储已满、只读或出错（已重启 {restarts} 次）。"
    ),
    "pod-start-failed.network": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：所需的服务器拒绝请求或没有响应（已重启 "
        "{restarts} 次）。"
    ),
    "pod-start-failed.limit": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：达到进程数、文件数或内核限制（已重启 "
        "{restarts} 次）。"
    ),
    "pod-start-failed.distributed": (
        "{node} 上 {user} 的 Pod {pod} 的容器 {container} 运行不下去：与作业的其他进程失去联系（已重启 {restarts} "
        "次）。"
    ),
    "pod-start-failed.others": "作业的其他 {count} 个 Pod 因它而失败。",
}
