"""The overview: health, GPU map, problems, disks, queues and waiting pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from starlette.responses import Response

from monitor.facts.cluster import PodView, SourceView
from monitor.history.model import CLUSTER, HistoryMetric, HistorySubject, Point
from monitor.i18n.figures import percent
from monitor.i18n.notes import sentence
from monitor.present import disks
from monitor.present.gpu_totals import GpuCounter
from monitor.present.health import ClusterHealth, cluster_health
from monitor.present.problems import ProblemRow, issues_of_alerts, issues_of_findings, problem_rows
from monitor.present.rows import PodRow, queues_by_demand, waiting_pods
from monitor.web.pages.charts import HOUR, MINUTE, Chart, draw
from monitor.web.pages.environment import UNKNOWN, link
from monitor.web.pages.gpumap import GpuMap, legend
from monitor.web.pages.render import PageRequest, PageSection

MAX_PROBLEMS, MAX_DISKS, MAX_QUEUES, MAX_WAITING = 12, 8, 12, 8


class OverviewPage:
    """The page at /."""

    def __init__(self) -> None:
        self._map = GpuMap()
        self._gpus = GpuCounter()
        self._disks = disks.DiskRanking()

    def show(self, page: PageRequest) -> Response:
        view = page.deps.cluster.overview()
        problems, waiting = _problems(page), waiting_pods(view)
        gpus = self._gpus.totals(view)
        health = cluster_health(view, gpus, waiting, problems)
        map_sections = self._map.sections(page, view)
        sections = [
            _health(page, health),
            page.section("legend", "legend", states=legend(gpus.states)),
            *map_sections,
            page.section(
                "problems",
                "problems",
                polite=True,
                problems=problems and problems[:MAX_PROBLEMS],
                more=max(0, len(problems or ()) - MAX_PROBLEMS),
                link_of=_link_of,
            ),
            page.section("disks", "disks", disks=self._fullest_disks(page), brief=True),
            page.section(
                "queues",
                "queues",
                queues=queues_by_demand(view)[:MAX_QUEUES],
                more=max(0, len(view.queues) - MAX_QUEUES),
            ),
            _waiting(page, waiting, health.blind_spots),
        ]
        if page.deps.data.history is not None and view.nodes:
            sections.append(page.heat_map())
        ids = [section.id for section in map_sections]
        rich = len(map_sections) == len(view.nodes)
        return page.respond("overview.html", page.t("nav.overview"), *sections, rows=ids, rich=rich)

    def _fullest_disks(self, page: PageRequest) -> list[disks.DiskRow]:
        return page.with_forecasts(self._disks.fullest(page.deps.data.agents(), MAX_DISKS))


def _health(page: PageRequest, health: ClusterHealth) -> PageSection:
    hints = [sentence(hint, page.lang) for hint in health.hints]
    css, charts = f"health {health.level}", _charts(page, health)
    return page.section("health", "health", polite=True, css=css, health=health, hints=hints, charts=charts)


def _charts(page: PageRequest, health: ClusterHealth) -> Markup:
    utilization, held = _points(page, HistoryMetric.UTILIZATION), _points(page, HistoryMetric.GPUS)
    ratio = health.utilization_ratio
    return draw(
        page.now,
        page.lang,
        Chart(page.t("chart.utilization"), utilization, 1.0, UNKNOWN if ratio is None else percent(ratio)),
        Chart(page.t("chart.gpus"), held, float(health.gpus or 1), str(health.busy)),
    )


def _points(page: PageRequest, metric: HistoryMetric) -> tuple[Point, ...]:
    """The last hour by the minute; a day if there is more than an hour."""
    hour = page.deps.points(HistorySubject.CLUSTER, CLUSTER, metric, HOUR)
    if not hour or hour[0][0] > page.now - HOUR + 2 * MINUTE:
        return hour
    return page.deps.points(HistorySubject.CLUSTER, CLUSTER, metric, 24 * HOUR)


def _problems(page: PageRequest) -> list[ProblemRow] | None:
    """Problems by cause; None before the first evaluation."""
    data = page.deps.data
    if data.alerts is not None:
        issues = issues_of_alerts(data.alerts())
        return problem_rows(issues) if issues or data.findings() is not None else None
    findings = page.deps.cluster.findings(page.lang)
    return None if findings is None else problem_rows(issues_of_findings(findings))


def _link_of(problem: ProblemRow) -> str | None:
    """Where to read more about a problem."""
    if not problem.worst.is_alert:
        return None
    return link("alerts", problem.worst.id) if problem.count == 1 else f"/alerts?rule={problem.worst.rule}"


def _waiting(page: PageRequest, pods: Iterable[PodView], sources: Sequence[SourceView]) -> PageSection:
    """The oldest waiting pods, and the failing sources."""
    waiting = sorted(pods, key=lambda pod: pod.created_at or 0.0)
    return page.section(
        "waiting",
        "waiting",
        rows=[PodRow(pod) for pod in waiting[:MAX_WAITING]],
        more=max(0, len(waiting) - MAX_WAITING),
        sources=sources,
    )
