"""Why a job is not running: search for a pod, a job or a user."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from monitor.present.rows import ClusterIndex, pod_rows
from monitor.present.suggestions import suggestions
from monitor.queries.search import MAX_EXPLAINED_PODS, find_pods, split_name
from monitor.web.pages.environment import link
from monitor.web.pages.pods import explain
from monitor.web.pages.render import PageRequest

MAX_RESULTS = 30


def show(page: PageRequest) -> Response:
    """Results for `q`: a redirect for the exact name of a pod, explanations of the waiting pods among the results."""
    wanted = page.query("q")
    index = ClusterIndex(page.deps.cluster.view())
    found = find_pods(index.view.pods, wanted)
    if (pod := found.only) is not None:
        return RedirectResponse(link("pods", pod.namespace, pod.name), 303)
    if not found.exact and (path := _page_of(index, wanted)) is not None:
        return RedirectResponse(path, 303)
    rows = pod_rows(index, found.pods)
    waiting = [row for row in rows if row.waiting][:MAX_EXPLAINED_PODS]
    answers = list(zip(waiting, explain(page, [(row.pod.name, row.pod.namespace) for row in waiting]), strict=True))
    direct = explain(page, [split_name(wanted)])[0] if wanted and not rows else None
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
