"""English: the report on what became of GPU hours, disks and incidents."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "report.title": "GPU report",
    "report.period": "{start} to {end}; monitored for {watched:duration} of {seconds:duration}.",
    "report.hours": (
        "Of {hours} GPU hours, {allocated} were allocated ({share:percent}), {free} free, {faulty} out of service, "
        "{unknown} unknown."
    ),
    "report.waste": "Wasted: {wasted} GPU hours; {idle} idle while allocated, {zombie} held by finished pods.",
    "report.cleaned-since": "Cleanups before {start} are no longer on record, so the cleanup figures are too low.",
    "report.by.user": "By user",
    "report.by.queue": "By queue",
    "report.by.node": "By node",
    "report.column.user": "user",
    "report.column.queue": "queue",
    "report.column.node": "node",
    "report.column.allocated": "allocated h",
    "report.column.used": "used h",
    "report.column.utilization": "utilisation",
    "report.column.wasted": "wasted h",
    "report.column.idle": "idle h",
    "report.column.zombie": "zombie h",
    "report.column.faulty": "out of service h",
    "report.column.free": "free h",
    "report.column.unknown": "unknown h",
    "report.column.disk": "disk",
    "report.column.cleaned": "cleaned up",
    "report.column.rule": "rule",
    "report.column.cause": "cause",
    "report.column.fired": "times",
    "report.column.resolved": "resolved",
    "report.column.mean": "mean time to resolve",
    "report.total": "total",
    "report.nobody": "(unknown)",
    "report.empty": "no records",
    "report.incidents": "Incidents",
    "report.incidents-since": "Incidents (since {start}; earlier ones are no longer on record)",
    "report.no-incidents": "none",
    "report.told": "[Report] {allocated} GPU hours allocated, {wasted} wasted",
    "report.told.used": "Mean utilisation of allocated GPUs: {utilization:percent} ({used} GPU hours used).",
    "report.told.cleaned": "Cleaned up: {size:bytes}.",
    "report.told.row": "{name}: {allocated} GPU hours, utilisation {utilization:percent}, {wasted} wasted",
    "report.told.rest": "and {count:other|others}: {allocated} GPU hours, {wasted} wasted",
    "report.column.cost": "cost ({currency})",
    "report.column.wasted_cost": "wasted ({currency})",
    "report.cost": "Cost: {cost} for GPUs held by pods, {wasted} of it wasted.",
    "report.cost.waste-unknown": "Cost: {cost} for GPUs held by pods; what was wasted has no price.",
    "report.unpriced": "No price is configured for {models}; the cost does not include them.",
    "report.unpriced-share": (
        "The cost does not include {hours} GPU hours of which the model or the size of the share is not known."
    ),
    "report.told.cost": "[Report] {allocated} GPU hours allocated, {wasted} wasted ({cost})",
    "report.told.row.cost": (
        "{name}: {allocated} GPU hours, utilisation {utilization:percent}, {wasted} wasted ({cost})"
    ),
    "report.told.unpriced": "[Report] {allocated} GPU hours allocated, {wasted} wasted (no price)",
    "report.told.row.unpriced": (
        "{name}: {allocated} GPU hours, utilisation {utilization:percent}, {wasted} wasted (no price)"
    ),
    "report.chart.user": "GPU hours by user",
    "report.chart.queue": "GPU hours by queue",
    "report.chart.node": "GPU hours by node",
    "report.chart.waste.user": "Wasted GPU hours by user",
    "report.chart.waste.queue": "Wasted GPU hours by queue",
    "report.chart.waste.node": "Wasted GPU hours by node",
    "report.chart.hours": "Share of GPUs allocated by day and hour ({zone})",
    "chart.hours": "{hours} h",
    "chart.no-data": "no data",
    "chart.part.used": "used",
    "chart.part.unused": "allocated, not used",
    "chart.part.unmeasured": "utilisation unknown",
    "chart.part.idle": "idle while allocated",
    "chart.part.zombie": "held by finished pods",
}
