"""One job: its pods, their GPUs, and how it used them."""

from __future__ import annotations

from starlette.responses import Response

from monitor.cluster.usage import UsageTotals
from monitor.history.model import HistorySubject
from monitor.present.rows import ClusterIndex, mean_utilization
from monitor.present.shares import wanted
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.held import held_gpus
from monitor.web.pages.pods import limited_rows
from monitor.web.pages.render import PageRequest


def show(page: PageRequest) -> Response:
    """The page of a job that has pods."""
    namespace, name = page.request.path_params["namespace"], page.request.path_params["name"]
    index = ClusterIndex(page.deps.cluster.view())
    pods = [pod for pod in index.view.pods if pod.namespace == namespace and pod.identity.job == name]
    if not pods:
        return page.not_found(f"{namespace}/{name}")
    totals = UsageTotals()
    for pod in pods:
        totals.add(pod)
    gpus = [gpu for pod in pods for gpu in index.gpus_by_pod.get((namespace, pod.name), ())]
    waiting = wanted(pod for pod in pods if pod.node is None)
    sections = [
        page.section("facts", "usage", use=totals.view(), ratio=mean_utilization(gpus), leftover=0, waiting=waiting),
        page.history(HistorySubject.JOB, f"{namespace}/{name}"),
        page.section("alerts", "alerts", polite=True, rows=firing_alerts(page, namespace=namespace, job=name)),
        page.section("pods", "pods", **limited_rows(index, pods)),
        held_gpus(page, index, gpus, pods),
    ]
    return page.respond("owner.html", f"{namespace}/{name}", *sections, kind="job")
