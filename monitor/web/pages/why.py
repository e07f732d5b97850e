"""Why is my job not running: a pod, a job or a user is looked for, and each answer leads on."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import RedirectResponse, Response

from monitor.facts.cluster import PodView
from monitor.queries.cluster import PodExplanation
from monitor.web.pages.pods import chain
from monitor.web.pages.render import PageRequest, link
from monitor.web.pages.rows import Index, pod_rows

FOUND = 30
ANSWERED = 6  # of a user's waiting jobs; an explanation is work


def show(visit: PageRequest) -> Response:
    """Show the answer to `q`: of a pod or job at once, of a user's waiting pods each, else what has such a name."""
    wanted = visit.query("q")
    index = Index(visit.sources.asked.view())
    namespace, _, name = wanted.rpartition("/")
    exact = [pod for pod in index.view.pods if _named(pod, namespace, name)]
    if len(exact) == 1:
        pod = exact[0]
        return RedirectResponse(link("pods", pod.namespace, pod.name), 303)
    rows = pod_rows(index, exact or _like(index.view.pods, wanted.lower()) if wanted else ())
    waiting = [row for row in rows if row.waiting][:ANSWERED]
    answers = [(row, chain(_why(visit, row.pod.name, row.pod.namespace))) for row in waiting]
    direct = chain(_why(visit, name, namespace or None)) if wanted and not rows else None
    found = visit.section("found", "found", rows=rows[:FOUND], more=max(0, len(rows) - FOUND), wanted=wanted,
                          answers=answers, direct=direct)  # fmt: skip
    return visit.answer("why.html", visit.t("nav.why"), found, wanted=wanted)


def _why(visit: PageRequest, name: str, namespace: str | None) -> PodExplanation:
    return visit.sources.asked.why(name, namespace, visit.lang)


def _named(pod: PodView, namespace: str, name: str) -> bool:
    return pod.name == name and namespace in ("", pod.namespace)


def _like(pods: Iterable[PodView], wanted: str) -> list[PodView]:
    """Return the pods that may be meant: of this user or job, or with such a name."""
    pods = list(pods)
    owned = [pod for pod in pods if wanted in ((pod.identity.user or "").lower(), (pod.identity.job or "").lower())]
    return owned or [pod for pod in pods if wanted in f"{pod.namespace}/{pod.name}".lower()]
