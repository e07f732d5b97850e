"""Chinese: the one-line results of commands."""

from __future__ import annotations

_RESULTS = {
    "cleanup.started": "{policy} 已在 {nodes} 上开始执行；结果见 gpuwarden cleanup history",
    "cleanup.started-cluster": "{policy} 已开始执行；结果见 gpuwarden cleanup history",
    "cleanup.started-nowhere": "没有执行：{policy} 不适用于任何有 agent 的节点",
    "cleanup.scanning": "正在扫描 {node} 上的 {root}",
    "cleanup.scanning-entries": "正在扫描 {node} 上的 {root}：{entries} 个文件和目录",
    "cleanup.not-scanned": "{node} 上的 {root} 没有扫描：{error}",
    "silenced": "已静默，到 {until} 为止；提前结束：gpuwarden alerts unsilence {id}",
    "unsilenced": "静默 {id} 已结束",
    "no-receiver": "没有配置接收者；请在 daemon.alerts.receivers 中添加",
    "reloaded": "已重新加载",
    "restart-needed": "{setting} 已更改；重启 daemon 后才生效",
    "reload-rejected": "新配置没有生效，继续使用原来的配置",
    "config-ok": "配置正确：{path}",
    "config-errors": "共 {count} 处错误",
}

WORDS: dict[str, str] = {f"cli.{key}": text for key, text in _RESULTS.items()}
