# ruff: noqa: RUF001  # Chinese has its own punctuation
"""The page of metrics: the agent's from a full snapshot, the daemon's from its tables."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from docs.generate.tables import code, intro, table, word
from monitor.agent.metrics import GROUPS
from monitor.base.metrics import MetricName
from monitor.daemon import metrics as exposition
from tests.support.snapshots import full_snapshot

HEAD = {"en": ("metric", "type", "labels", "meaning"), "zh": ("指标", "类型", "标签", "含义")}
SIDES = {
    "en": {"agent": "Agent", "daemon": "Daemon"},
    "zh": {"agent": "agent 的指标", "daemon": "daemon 的指标"},
}
PROCESS = {
    "en": "Also `process_*` (CPU seconds, resident memory, open files) of the daemon's process, by prometheus-client.",
    "zh": "另有 daemon 进程自身的 `process_*`（CPU 时间、常驻内存、打开的文件），由 prometheus-client 提供。",
}


def page(lang: str) -> str:
    """The page in a language."""
    parts = [intro("metrics", lang)]
    for side, areas in (("agent", agent_areas()), ("daemon", daemon_areas())):
        parts.append(f"\n## {SIDES[lang][side]}\n")
        for area, names in areas:
            parts.append(f"\n### {word('areas.tsv', f'{side}.{area}', lang)}\n\n")
            parts.append(table(HEAD[lang], [_row(name, lang) for name in names]))
    return "".join(parts) + f"\n{PROCESS[lang]}\n"


def _row(name: MetricName, lang: str) -> tuple[str, ...]:
    meaning = name.help if lang == "en" else word("metrics.tsv", name.name, "en")
    return code(name.name), name.kind, ", ".join(map(code, name.labels)) or "–", meaning


def agent_areas() -> Iterator[tuple[str, list[MetricName]]]:
    """Areas of the agent with their metrics on a node where everything is known."""
    snapshot = full_snapshot()
    for _, render in GROUPS:
        yield render.__module__.rpartition(".")[2], [_name(family) for family in render(snapshot) if family.samples]


def _name(family: Metric) -> MetricName:
    labels = dict.fromkeys(label for sample in family.samples for label in sample.labels)
    return MetricName(family.samples[0].name, family.type, family.documentation, tuple(labels))


def daemon_areas() -> Iterator[tuple[str, list[MetricName]]]:
    """Areas of the daemon with their metrics."""
    listed = set()
    for module in exposition.MODULES:
        names = [name for rows in module.TABLES for name in rows.names()]
        listed.update(names)
        yield module.__name__.rpartition(".")[2], names
    yield "rest", [name for name in exposition.catalogue() if name not in listed]
