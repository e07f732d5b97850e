"""Why a job is not running: search for a pod, a job or a user."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import RedirectResponse, Response

from monitor.facts.cluster import PodView
from monitor.present.explanation import ExplanationParts
from monitor.present.rows import ClusterIndex, pod_rows
from monitor.present.suggestions import suggestions
from monitor.web.pages.pods import parts_of
from monitor.web.pages.render import PageRequest, link

MAX_RESULTS = 30
MAX_EXPLAINED_PODS = 6  # an explanation is expensive


def show(page: PageRequest) -> Response:
    """Results for `q`: a redirect for the exact name of a pod, explanations of the waiting pods among the results."""
    wanted = page.query("q")
    index = ClusterIndex(page.deps.cluster.view())
    namespace, _, name = wanted.rpartition("/")
    exact = [pod for pod in index.view.pods if pod.name == name and namespace in ("", pod.namespace)]
    if len(exact) == 1:
        pod = exact[0]
        return RedirectResponse(link("pods", pod.namespace, pod.name), 303)
    if not exact and (path := _page_of(index, wanted)) is not None:
        return RedirectResponse(path, 303)
    rows = pod_rows(index, exact or _matching(index.view.pods, wanted.lower()) if wanted else ())
    waiting = [row for row in rows if row.waiting][:MAX_EXPLAINED_PODS]
    answers = [(row, _explain(page, row.pod.name, row.pod.namespace)) for row in waiting]
    direct = _explain(page, name, namespace or None) if wanted and not rows else None
    section = page.section(
        "found", "found", **page.limited(rows, MAX_RESULTS), wanted=wanted, answers=answers, direct=direct
    )
    return page.respond("why.html", page.t("nav.why"), section, wanted=wanted)


def suggest(page: PageRequest) -> Response:
    """Names that contain what was typed into the search, as options."""
    return page.fragment("suggestions", found=suggestions(page.deps.cluster.view(), page.query("q")))


def _page_of(index: ClusterIndex, name: str) -> str | None:
    """Path of the node or queue of this name."""
    if name in index.nodes:
        return link("nodes", name)
    return link("queues", name) if any(queue.name == name for queue in index.view.queues) else None


def _explain(page: PageRequest, name: str, namespace: str | None) -> ExplanationParts:
    return parts_of(page.deps.cluster.why(name, namespace, page.lang))


def _matching(pods: Iterable[PodView], wanted: str) -> list[PodView]:
    """The pods of a user or job of this name, else those whose name contains it."""
    pods = list(pods)
    owned = [pod for pod in pods if wanted in ((pod.identity.user or "").lower(), (pod.identity.job or "").lower())]
    return owned or [pod for pod in pods if wanted in f"{pod.namespace}/{pod.name}".lower()]
