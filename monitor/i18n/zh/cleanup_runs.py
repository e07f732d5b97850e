"""Chinese: what runs of cleanup tell: reports, notices to owners, announcements."""

from __future__ import annotations

_REPORT: dict[str, str] = {
    "cleanup.report.done": "{policy}：释放 {freed:bytes}，完成 {done} 项，保留 {left} 项，失败 {failed} 项。",
    "cleanup.report.dry-run": "{policy} 将处理 {count} 项，释放 {bytes:bytes}。当前为演练模式，没有做任何改动。",
    "cleanup.report.release": "{by} 释放了 {node} 的 GPU {gpu}：完成 {done} 项，保留 {left} 项，失败 {failed} 项。",
    "cleanup.report.disk": "磁盘使用率由 {before:percent} 降至 {after:percent}。",
    "cleanup.report.item": "{name}：约 {bytes:bytes}。",
    "cleanup.report.kept": "保留：{name}（{outcome:code}）。",
    "cleanup.report.failed": "失败：{name}（{outcome:code}）：{message}",
    "cleanup.end.done": "计划中的各项都已处理。",
    "cleanup.end.low-water": "已降到低水位，停止清理。",
    "cleanup.end.minutes": "已到单次时间上限，停止清理。",
    "cleanup.end.bytes": "已到单次字节数上限，停止清理。",
    "cleanup.end.errors": "失败过多，已中止。详见 gpuwarden cleanup history。",
    "cleanup.end.unmeasured": "读不到磁盘用量，已停止。",
    "cleanup.end.lease-lost": "本副本已失去租约，由其他副本接手，清理停止。",
    "cleanup.end.interrupted": "清理中途 daemon 停止；已查明进行中的操作，没有重复执行。",
    "cleanup.report.advice": "详见 gpuwarden cleanup history。",
    "cleanup.report.dry-run.advice": "如需真正执行，请把 {policy} 的 mode 设为 enforce。",
}

_NOTICE: dict[str, str] = {
    "cleanup.notice.datasets": (
        "{owner}：您在 {root} 下的 {count} 个数据集（{bytes:bytes}）将在 {seconds:duration}后移入回收站。"
    ),
    "cleanup.notice.gpus": "{owner}：您的 {count} 个作业将在 {seconds:duration}后释放 GPU。",
    "cleanup.notice.nobody": "{policy} 中有 {count} 项找不到所有者，将在 {seconds:duration}后处理。",
    "cleanup.notice.item": "{name}（{bytes:bytes}，{seconds:duration}未使用）",
    "cleanup.notice.datasets.advice": (
        "如需保留，请使用该数据，或在目录中放一个 .keep 文件。移入回收站后一段时间内仍可恢复。"
    ),
    "cleanup.notice.keep": "如需暂时保留，请打开对应的链接。",
    "cleanup.kept-by": "{name} 已要求保留，还剩 {seconds:duration}。",
    "cleanup.kept-by-because": "{name} 已要求保留，还剩 {seconds:duration}：{reason}",
    "cleanup.notice.gpus.advice": "如仍需要，请让作业真正使用 GPU；已完成的请自行删除。",
}

_ANNOUNCED: dict[str, str] = {
    "cleanup.announced": (
        "清理策略 {policy} 将在 {seconds:duration}后开始执行。按当前计划共 {count} 项，{bytes:bytes}。"
    ),
    "cleanup.announced.advice": "用 gpuwarden cleanup plan 查看计划。如需阻止，请把 {policy} 的 mode 设为 dry-run。",
}

_PLANS: dict[str, str] = {
    "cleanup.why.restore": "{by} 要求恢复。",
    "cleanup.why.retention": "按 {project} 的保留规则，{total} 个标签中将删除 {count} 个。",
    "cleanup.why.gc": "{registry} 中已无标签引用的数据：{blobs} 个 blob。",
    "cleanup.why.gc-bytes": "{registry} 中已无标签引用的数据：{bytes:bytes}，{blobs} 个 blob。",
    "cleanup.refused.not-scanned": "还没有计划：daemon 启动后尚未扫描 {node} 上的 {root}。",
    "cleanup.refused.scan-failed": "没有计划：扫描 {node} 上的 {root} 失败：{error}",
    "cleanup.refused.not-tried": "还没有计划：daemon 启动后尚未让 {registry} 做过演练。",
    "cleanup.refused.registry-failed": "没有计划：无法查询 {registry}：{error}",
}

_NAMES: dict[str, str] = {
    "rule.cleanup-report": "清理报告",
    "rule.cleanup-notice": "清理预告",
    "rule.cleanup-announced": "清理策略即将执行",
}

WORDS: dict[str, str] = _REPORT | _NOTICE | _ANNOUNCED | _PLANS | _NAMES
