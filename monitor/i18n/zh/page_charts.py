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
    "plot.was": "当时：",
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
    "plot.metric.memory-gpu": "显存",
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
    "heat.title": "各节点 GPU 利用率",
    "heat.label": "GPU 利用率热力图，按节点和时间排列。方向键移动，回车键打开。",
    "heat.unit": "GPU 平均利用率",
    "heat.unknown": "无数据",
    "heat.hint": "将指针移到色块上、点按色块，或用方向键查看数值。",
    "heat.group": "{first} 至 {last}（{count} 个节点的平均值）",
    "heat.summary": "{count} 个节点，{span}：平均 {mean}，最低 {low}（{low_mean}），最高 {high}（{high_mean}）。",
    "heat.open": "展开这 {count} 个节点",
    "heat.open-node": "打开 {name}",
    "heat.all": "全部节点",
    "heat.table": "以表格查看",
    "heat.node": "节点",
    "heat.mean": "平均",
    "heat.lowest": "最低",
    "heat.highest": "最高",
    "heat.latest": "最近",
    "heat.empty": (
        "这段时间还没有任何节点的数据。一分钟内会出现第一批数值；"
        "如果一直没有，请用 gpuwarden doctor 检查 agent 是否有响应。"
    ),
}

WORDS: dict[str, str] = {f"page.{key}": words for key, words in _CHARTS.items()}
