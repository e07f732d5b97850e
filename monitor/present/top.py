"""The live table of `gpuwarden top`: rows, their order, and what a key does. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from monitor.alert.model import Phase
from monitor.base.logs import printable
from monitor.base.text import natural_key
from monitor.facts.cluster import ClusterView, GpuState, GpuView, PodView
from monitor.facts.findings import Severity
from monitor.facts.text import Value
from monitor.i18n import say
from monitor.present.alerts import LocalizedAlert
from monitor.present.cluster import URGENCY, node_state
from monitor.present.rows import ClusterIndex, mean_utilization
from monitor.present.table import table_word

SORT_KEYS = {
    "n": "name",
    "u": "utilization",
    "m": "memory",
    "t": "temperature",
    "p": "power",
    "o": "user",
    "s": "state",
}
ASCENDING = frozenset({"name", "user", "state"})
STATE_ORDER = (*URGENCY, GpuState.BUSY, GpuState.FREE)


class TopKind(StrEnum):
    """What a row stands for."""

    GPUS = "gpus"
    NODES = "nodes"


@dataclass(frozen=True)
class TopChoice:
    """What the user has chosen: the kind of rows, their order, and the first row shown."""

    kind: TopKind = TopKind.GPUS
    sort: str = "name"
    reverse: bool = False
    first: int = 0


@dataclass(frozen=True)
class TopRow:
    """A GPU, or a node with the sums, the mean utilization and the highest temperature of its GPUs. None: unknown.

    `state_text` is the state in words, where it is not a code.
    """

    name: str
    state: str
    state_text: str = ""
    model: str | None = None
    utilization_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    user: str = ""
    pod: str = ""
    job: str = ""
    free: str = ""


@dataclass(frozen=True)
class TopFrame:
    """Everything on the screen: lines above the table, with the severity of the worst alert, and all rows in order."""

    summary: str
    alerts: str
    severity: Severity | None
    sources: str
    rows: tuple[TopRow, ...]
    choice: TopChoice


def pressed(choice: TopChoice, key: str, rows: int, page: int) -> TopChoice:
    """The choice after a key, with `rows` rows and room for `page` of them."""
    if key in SORT_KEYS:
        return replace(choice, sort=SORT_KEYS[key], reverse=False, first=0)
    if key == "r":
        return replace(choice, reverse=not choice.reverse, first=0)
    if key == "tab":
        return replace(choice, kind=TopKind.NODES if choice.kind is TopKind.GPUS else TopKind.GPUS, first=0)
    step = {"down": 1, "j": 1, "up": -1, "k": -1, "page-down": page, "page-up": -page, "home": -rows, "end": rows}
    first = choice.first + step.get(key, 0)
    return replace(choice, first=max(0, min(first, rows - page)))


def top_frame(view: ClusterView, alerts: Sequence[LocalizedAlert] | None, choice: TopChoice, lang: str) -> TopFrame:
    """The frame for a view and its alerts, None if they are unknown."""
    rows = _gpu_rows(view) if choice.kind is TopKind.GPUS else _node_rows(view, lang)
    line, severity = _alert_line(alerts, lang)
    failing = [printable(source.name) for source in view.sources if not source.ok]
    return TopFrame(
        summary=_summary(view, lang),
        alerts=line,
        severity=severity,
        sources=say(lang, "top.sources", {"names": ", ".join(failing)}) if failing else "",
        rows=tuple(_ordered(rows, choice)),
        choice=choice,
    )


def _summary(view: ClusterView, lang: str) -> str:
    counts = Counter(gpu.state for gpu in view.gpus)
    states = [
        say(lang, "top.state", {"count": counts[state], "state": table_word(state.value, lang)})
        for state in GpuState
        if counts[state]
    ]
    if (mean := mean_utilization(view.gpus)) is not None:
        states.append(say(lang, "top.mean", {"ratio": mean}))
    values: dict[str, Value] = {
        "nodes": len(view.nodes),
        "gpus": len(view.gpus),
        "states": say(lang, "alert.list", {}).join(states),
    }
    return say(lang, "top.summary", values)


def _alert_line(alerts: Sequence[LocalizedAlert] | None, lang: str) -> tuple[str, Severity | None]:
    """Number of alerts by severity, and the worst; symptoms and silenced ones do not count."""
    if alerts is None:
        return say(lang, "top.blind", {}), None
    firing = [
        alert
        for alert in alerts
        if alert.phase is Phase.FIRING
        and alert.explained_by is None
        and alert.silenced_by is None
        and not alert.in_maintenance
    ]
    if not firing:
        return say(lang, "top.calm", {}), None
    count = Counter(alert.severity for alert in firing)
    values: dict[str, Value] = {
        "critical": count[Severity.CRITICAL],
        "warnings": count[Severity.WARNING],
        "info": count[Severity.INFO],
        "headline": printable(firing[0].headline),
    }
    return say(lang, "top.alerts", values), firing[0].severity


def _gpu_rows(view: ClusterView) -> list[TopRow]:
    pods = {pod.uid: pod for pod in view.pods}
    return [_gpu_row(gpu, pods) for gpu in view.gpus]


def _gpu_row(gpu: GpuView, pods: dict[str, PodView]) -> TopRow:
    known = [pods.get(holder.pod_uid or "") for holder in gpu.holders]
    names = [f"{holder.namespace or '?'}/{holder.pod or holder.pod_uid or '?'}" for holder in gpu.holders]
    return TopRow(
        name=printable(f"{gpu.node}/{gpu.index}"),
        state=gpu.state.value,
        model=None if gpu.model is None else printable(gpu.model),
        utilization_ratio=gpu.utilization_ratio,
        memory_used_bytes=gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
        temperature_celsius=gpu.temperature_celsius,
        power_watts=gpu.power_watts,
        power_limit_watts=gpu.power_limit_watts,
        user=_joined(holder.user or "?" for holder in gpu.holders),
        pod=_joined(names),
        job=_joined(
            pod.identity.job
            for pod in known
            if pod is not None and pod.identity.job and pod.identity.job != pod.name  # it would only say the same again
        ),
    )


def _joined(names: Iterable[str]) -> str:
    return printable(", ".join(dict.fromkeys(names)))


def _node_rows(view: ClusterView, lang: str) -> list[TopRow]:
    by_node = ClusterIndex(view).gpus_by_node
    rows = []
    for node in view.nodes:
        gpus = by_node.get(node.name, ())
        total = node.cards if node.allocatable is None else node.allocatable
        rows.append(
            TopRow(
                name=printable(node.name),
                state=node_state(node, view),
                state_text=node_state(node, view, lang),
                model=None if node.model is None else printable(node.model),
                utilization_ratio=mean_utilization(gpus),
                memory_used_bytes=_total(gpu.memory_used_bytes for gpu in gpus),
                memory_total_bytes=_total(gpu.memory_total_bytes for gpu in gpus),
                temperature_celsius=max(
                    (t for gpu in gpus if (t := gpu.temperature_celsius) is not None), default=None
                ),
                power_watts=_total(gpu.power_watts for gpu in gpus),
                power_limit_watts=_total(gpu.power_limit_watts for gpu in gpus),
                user=_joined(sorted({holder.user or "?" for gpu in gpus for holder in gpu.holders})),
                free=f"{_or_unknown(node.free)}/{_or_unknown(total)}",
            )
        )
    return rows


def _or_unknown(count: int | None) -> str:
    return "?" if count is None else str(count)


def _total(values: Iterable[float | None]) -> int | None:
    """Sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return round(sum(known)) if known else None


def _ordered(rows: Iterable[TopRow], choice: TopChoice) -> list[TopRow]:
    """Rows in the chosen order, unknown figures last in either direction."""
    named = sorted(rows, key=lambda row: natural_key(row.name))
    known = [row for row in named if _figure(row, choice.sort) is not None]
    unknown = [row for row in named if _figure(row, choice.sort) is None]
    known.sort(key=lambda row: _figure(row, choice.sort), reverse=(choice.sort not in ASCENDING) != choice.reverse)
    return [*known, *unknown]


def _figure(row: TopRow, sort: str) -> Any:
    """What a row is sorted by."""
    figures = {
        "name": natural_key(row.name),
        "utilization": row.utilization_ratio,
        "memory": row.memory_used_bytes,
        "temperature": row.temperature_celsius,
        "power": row.power_watts,
        "user": row.user or None,
        "state": _state_rank(row.state),
    }
    return figures[sort]


def _state_rank(state: str) -> int:
    """States that need attention first; among nodes, those that are not ok."""
    return STATE_ORDER.index(GpuState(state)) if state in STATE_ORDER else int(state == "ok")
