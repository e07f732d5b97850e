"""English: charts of the history."""

from __future__ import annotations

_CHARTS = {
    "plot.title": "History",
    "plot.span": "Time span",
    "plot.span.1h": "1 h",
    "plot.span.6h": "6 h",
    "plot.span.24h": "24 h",
    "plot.span.7d": "7 d",
    "plot.loading": "Loading...",
    "plot.empty": (
        "No data for this time yet. The first values appear within a minute after the daemon has seen it; if none do, "
        "check with gpuwarden doctor whether its agent answers."
    ),
    "plot.failed": "The history cannot be read: ",
    "plot.alerts": "Alerts in this time",
    "plot.fired": "fired",
    "plot.resolved": "resolved",
    "plot.was": "reported: ",
    "plot.max": "maximum",
    "plot.time": "Time",
    "plot.forecast": "forecast",
    "plot.forecast-range": "At the current growth, this disk will be full {when} (between {earliest} and {latest}).",
    "plot.forecast-later": "At the current growth, this disk will be full {when} ({earliest} at the earliest).",
    "plot.metric.utilization": "GPU utilisation",
    "plot.metric.gpus": "GPUs in use",
    "plot.metric.free": "Free GPUs",
    "plot.metric.waiting": "Waiting GPUs",
    "plot.metric.memory": "Memory",
    "plot.metric.memory-gpu": "GPU memory",
    "plot.metric.power": "Power",
    "plot.metric.temperature": "Temperature",
    "plot.metric.cpu": "CPU",
    "plot.metric.shm": "Shared memory",
    "plot.metric.received": "Received",
    "plot.metric.transmitted": "Sent",
    "plot.metric.used": "Disk space used",
    "plot.unit.ratio": "Load",
    "plot.unit.gpus": "GPUs",
    "plot.unit.watts": "Power",
    "plot.unit.celsius": "Temperature",
    "plot.unit.bytes": "Bytes",
    "plot.unit.bytes-per-second": "Network",
    "heat.title": "GPU utilisation by node",
    "heat.label": "Heat map of GPU utilisation by node and time. Arrow keys move, Enter opens.",
    "heat.unit": "Mean utilisation of the GPUs",
    "heat.unknown": "no data",
    "heat.hint": "Point at a cell, tap it, or move with the arrow keys to read its value.",
    "heat.group": "{first} to {last} ({count} nodes, mean)",
    "heat.summary": ("{count} nodes, {span}: mean {mean}, lowest {low} ({low_mean}), highest {high} ({high_mean})."),
    "heat.open": "Show these {count} nodes",
    "heat.open-node": "Open {name}",
    "heat.all": "All nodes",
    "heat.table": "As a table",
    "heat.node": "Node",
    "heat.mean": "Mean",
    "heat.lowest": "Lowest",
    "heat.highest": "Highest",
    "heat.latest": "Latest",
    "heat.empty": (
        "No node has data for this time yet. The first values appear within a minute; if none do, check with "
        "gpuwarden doctor whether the agents answer."
    ),
}

WORDS: dict[str, str] = {f"page.{key}": words for key, words in _CHARTS.items()}
