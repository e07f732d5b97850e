"""The overview: how the cluster fares, in one line, as a map, and what needs somebody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup
from starlette.responses import Response

from monitor.facts.cluster import ClusterView, GpuState, QueueView
from monitor.facts.findings import Severity
from monitor.i18n.figures import percent
from monitor.report.history import CLUSTER, Kind, What
from monitor.web.pages import disks
from monitor.web.pages.charts import Chart, draw
from monitor.web.pages.gpumap import GpuMap, legend
from monitor.web.pages.problems import Problem, grouped, of_alerts, of_findings
from monitor.web.pages.render import PageSection, PageRequest
from monitor.web.pages.rows import PodRow

QUIET = (GpuState.BUSY, GpuState.FREE, GpuState.UNKNOWN)
PROBLEMS, DISKS, QUEUES, WAITING = 12, 8, 12, 8  # rows that are shown


class Overview:
    """The page at /."""

    def __init__(self) -> None:
        self._map = GpuMap()

    def show(self, visit: PageRequest) -> Response:
        view = visit.sources.asked.view()
        problems = _problems(visit)
        states = Counter(gpu.state for gpu in view.gpus)
        waiting = [row for pod in view.pods if pod.node is None and (row := PodRow(pod, ())).waiting]
        rows = self._map.sections(visit, view)
        sections = [
            _health(visit, view, states, problems, waiting),
            visit.section("legend", "legend", states=legend(states)),
            *rows,
            visit.section(
                "problems",
                "problems",
                polite=True,
                problems=problems and problems[:PROBLEMS],
                more=max(0, len(problems or ()) - PROBLEMS),
            ),
            visit.section("disks", "disks", disks=_disks(visit), brief=True),
            visit.section("queues", "queues", queues=_busiest(view), more=max(0, len(view.queues) - QUEUES)),
            visit.section(
                "waiting",
                "waiting",
                rows=sorted(waiting, key=_oldest)[:WAITING],
                more=max(0, len(waiting) - WAITING),
                sources=[source for source in view.sources if not source.ok],
            ),
        ]
        names = [row.own for row in rows]
        rich = len(rows) == len(view.nodes)
        return visit.answer("overview.html", visit.t("nav.overview"), *sections, rows=names, rich=rich)


def _oldest(row: PodRow) -> float:
    return row.pod.created_at or 0.0


def _health(
    visit: PageRequest,
    view: ClusterView,
    states: Counter[GpuState],
    problems: Sequence[Problem] | None,
    waiting: Sequence[PodRow],
) -> PageSection:
    told = [each for each in problems or () if not each.silenced]
    counts = {severity: sum(each.first.severity is severity for each in told) for severity in Severity}
    unseen = any(not source.ok for source in view.sources)
    level = "fine"
    if counts[Severity.CRITICAL]:
        level = "critical"
    elif counts[Severity.WARNING] or unseen:
        level = "warning"
    elif problems is None:
        level = "unknown"
    loads = [gpu.utilization_ratio for gpu in view.gpus if gpu.utilization_ratio is not None]
    busy = states[GpuState.BUSY] + states[GpuState.IDLE_HELD]
    return visit.section(
        "health",
        "health",
        polite=True,
        css=f"health {level}",
        level=level,
        counts={severity.value: count for severity, count in counts.items()},
        nodes=len(view.nodes),
        down=sum(node.in_kubernetes and not node.ready for node in view.nodes),
        gpus=len(view.gpus),
        busy=busy,
        free=sum(each.free for each in view.free),
        odd=sum(count for state, count in states.items() if state not in QUIET),
        load=sum(loads) / len(loads) if loads else None,
        waiting=len(waiting),
        waiting_gpus=sum(row.pod.requested_gpus for row in waiting),
        unseen=unseen,
        charts=_charts(visit, len(view.gpus), busy, sum(loads) / len(loads) if loads else None),
    )


def _charts(visit: PageRequest, gpus: int, busy: int, load: float | None) -> Markup:
    loads = visit.sources.series(Kind.CLUSTER, CLUSTER, What.UTILIZATION)
    held = visit.sources.series(Kind.CLUSTER, CLUSTER, What.GPUS)
    return draw(
        visit.now,
        visit.lang,
        Chart(visit.t("chart.utilization"), loads, 1.0, "?" if load is None else percent(load)),
        Chart(visit.t("chart.gpus"), held, float(gpus or 1), str(busy)),
    )


def _problems(visit: PageRequest) -> list[Problem] | None:
    """Return what is wrong by cause; None while nobody has looked."""
    shown = visit.sources.parts.shown
    if shown is not None:
        firing = of_alerts(shown())
        return grouped(firing) if firing or visit.sources.parts.found() is not None else None
    findings = visit.sources.asked.findings(visit.lang)
    return None if findings is None else grouped(of_findings(findings))


def _disks(visit: PageRequest) -> list[disks.DiskRow]:
    """Return the disks that somebody should know of: the fullest."""
    found = disks.rows(visit.sources.parts.agents(), DISKS)
    trends = {row.node: visit.sources.series(Kind.NODE, row.node, What.DISK) for row in found}
    return disks.with_times(found, disks.told_seconds(visit.sources.parts.found()), trends, visit.now)


def _busiest(view: ClusterView) -> list[QueueView]:
    return sorted(view.queues, key=lambda queue: (-queue.waiting, -queue.used, queue.name))[:QUEUES]
