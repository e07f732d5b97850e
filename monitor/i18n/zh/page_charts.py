"""Chinese: charts of the history."""

from __future__ import annotations

_CHARTS = {
    "plot.title": "历史曲线",
    "plot.span": "时间范围",
    "plot.span.1h": "1 小时",
    "plot.span.6h": "6 小时",
    "plot.span.24h": "24 小时",
    "plot.span.7d": "7 天",
    "plot.loading": "正在加载……",
    "plot.empty": (
        "这段时间还没有数据。daemon 看到它之后一分钟内会出现第一批数值；"
        "如果一直没有，请用 gpuwarden doctor 检查它的 agent 是否有响应。"
    ),
    "plot.failed": "无法读取历史数据：",
    "plot.alerts": "这段时间内的告警",
    "plot.fired": "触发",
    "plot.resolved": "恢复",
    "plot.max": "最大值",
    "plot.time": "时间",
    "plot.forecast": "预测",
    "plot.forecast-range": "按目前的增长速度，这块磁盘将在 {when} 写满（最早 {earliest}，最晚 {latest}）。",
    "plot.forecast-later": "按目前的增长速度，这块磁盘将在 {when} 写满（最早 {earliest}）。",
    "plot.metric.utilization": "GPU 利用率",
    "plot.metric.gpus": "在用 GPU",
    "plot.metric.free": "空闲 GPU",
    "plot.metric.waiting": "排队需要的 GPU",
    "plot.metric.memory": "内存",
    "plot.metric.power": "功率",
    "plot.metric.temperature": "温度",
    "plot.metric.cpu": "CPU 使用率",
    "plot.metric.shm": "共享内存",
    "plot.metric.received": "接收",
    "plot.metric.transmitted": "发送",
    "plot.metric.used": "磁盘已用",
    "plot.unit.ratio": "负载",
    "plot.unit.gpus": "GPU 数",
    "plot.unit.watts": "功率",
    "plot.unit.celsius": "温度",
    "plot.unit.bytes": "字节",
    "plot.unit.bytes-per-second": "网络",
}

WORDS: dict[str, str] = {f"page.{key}": words for key, words in _CHARTS.items()}
