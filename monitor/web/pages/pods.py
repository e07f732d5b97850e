"""All pods, filtered by user, queue, node or name; and one pod with its explanation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from starlette.responses import Response

from monitor.facts.cluster import GpuState, PodView
from monitor.history.model import HistorySubject
from monitor.present.explanation import ExplanationParts, explanation_parts
from monitor.present.rows import ClusterIndex, pod_rows, pods_in_order
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.held import held_gpus
from monitor.web.pages.render import PageRequest

KINDS = ("gpu", "waiting", "idle", "all")
FILTERS = ("q", "user", "queue", "node")


def show_all(page: PageRequest) -> Response:
    """The selected pods; by default those with GPUs."""
    index = ClusterIndex(page.deps.cluster.view())
    kind = page.query("what") or "gpu"
    pods = [pod for pod in _filtered(page, index) if _is_kind(pod, index, kind)]
    users = sorted({pod.identity.user for pod in index.view.pods if pod.identity.user})
    queues = sorted({pod.identity.queue for pod in index.view.pods if pod.identity.queue})
    section = page.section("pods", "pods", **limited_rows(index, pods), narrowed=True)
    filters = {name: page.query(name) for name in FILTERS}
    return page.respond(
        "pods.html", page.t("nav.pods"), section, asked=filters, what=kind, kinds=KINDS, users=users, queues=queues
    )


def _filtered(page: PageRequest, index: ClusterIndex) -> Iterable[PodView]:
    name, user, queue, node = (page.query(parameter) for parameter in FILTERS)
    for pod in index.view.pods:
        identity = pod.identity
        if user not in ("", identity.user) or queue not in ("", identity.queue) or node not in ("", pod.node):
            continue
        if name in f"{pod.namespace}/{pod.name}" or name in (identity.job or ""):
            yield pod


def _is_kind(pod: PodView, index: ClusterIndex, kind: str) -> bool:
    if kind == "waiting":
        return pod.waiting
    if kind == "all" or (kind != "idle" and (pod.requested_gpus > 0 or pod.gpu_shares)):
        return True
    gpus = index.gpus_by_pod.get((pod.namespace, pod.name), ())
    return any(gpu.state is GpuState.IDLE_HELD for gpu in gpus) if kind == "idle" else bool(gpus)


def limited_rows(index: ClusterIndex, pods: Iterable[PodView]) -> dict[str, Any]:
    """Template values `rows` and `more`: rows of the first pods, and the number of further ones."""
    first = PageRequest.limited(pods_in_order(pods))
    return first | {"rows": pod_rows(index, first["rows"])}


def show(page: PageRequest) -> Response:
    """The page of a pod. A deleted pod has an explanation as well, and may still hold GPUs."""
    namespace, name = page.request.path_params["namespace"], page.request.path_params["name"]
    index = ClusterIndex(page.deps.cluster.view())
    pod = index.pod(namespace, name)
    (explanation,) = page.deps.cluster.why([(name, namespace)], page.lang)
    gpus = index.gpus_by_pod.get((namespace, name), [])
    is_known = pod is not None or explanation.cause != "unknown-name" or bool(gpus)
    alerts = [row for row in firing_alerts(page, pod=name) if row.alert.labels.get("namespace") in (None, namespace)]
    sections = [
        page.section("why", "why", chain=_parts_of(explanation), polite=True),
        page.section("facts", "pod", pod=pod, waiting=pod is not None and pod.waiting, namespace=namespace, name=name),
        page.history(HistorySubject.POD, f"{namespace}/{name}"),
        page.section("alerts", "alerts", polite=True, rows=alerts),
        held_gpus(page, index, gpus, () if pod is None else (pod,)),
    ]
    return page.respond("pod.html", f"{namespace}/{name}", *sections, status=200 if is_known else 404)


def explain(page: PageRequest, names: Sequence[WantedName]) -> list[ExplanationParts]:
    """The parts of explanations."""
    return [_parts_of(each) for each in page.deps.cluster.why(names, page.lang)]


def _parts_of(explanation: PodExplanation) -> ExplanationParts:
    return explanation_parts(explanation.name, explanation.lines, well=explanation.well)
