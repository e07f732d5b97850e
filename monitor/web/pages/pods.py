"""All pods, by user, queue, node or name; and one, with why it is as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from starlette.responses import Response

from monitor.facts.cluster import GpuState, PodView
from monitor.queries.cluster import PodExplanation
from monitor.web.pages.render import PageRequest
from monitor.web.pages.rows import SHOWN, Index, PodRow, card_rows, firing, pod_rows

WHAT = ("gpu", "waiting", "idle", "all")


@dataclass(frozen=True)
class Chain:
    """Why something is as it is: who, the answer, what shows it, what to do."""

    well: bool
    who: str
    headline: str
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def chain(why: PodExplanation) -> Chain:
    """Given an explanation as lines, return its parts."""
    lines = why.lines
    return Chain(
        well=why.well,
        who=lines[0] if lines else why.name,
        headline=lines[1] if len(lines) > 1 else "",
        evidence=tuple(line[4:] for line in lines if line.startswith("  - ")),
        advice=tuple(line[4:] for line in lines if line.startswith("  > ")),
    )


def show_all(visit: PageRequest) -> Response:
    """Show the pods that are asked for: those with cards, if nothing else is said."""
    index = Index(visit.sources.asked.view())
    what = visit.query("what") or "gpu"
    rows = [row for row in pod_rows(index, _wanted(visit, index)) if _is(row, what)]
    users = sorted({pod.identity.user for pod in index.view.pods if pod.identity.user})
    queues = sorted({pod.identity.queue for pod in index.view.pods if pod.identity.queue})
    listed = visit.section("pods", "pods", rows=rows[:SHOWN], more=max(0, len(rows) - SHOWN))
    asked = {name: visit.query(name) for name in ("q", "user", "queue", "node")}
    return visit.answer(
        "pods.html", visit.t("nav.pods"), listed, asked=asked, what=what, kinds=WHAT, users=users, queues=queues
    )


def _wanted(visit: PageRequest, index: Index) -> Iterable[PodView]:
    name, user, queue, node = (visit.query(each) for each in ("q", "user", "queue", "node"))
    for pod in index.view.pods:
        identity = pod.identity
        if user not in ("", identity.user) or queue not in ("", identity.queue) or node not in ("", pod.node):
            continue
        if name in f"{pod.namespace}/{pod.name}" or name in (identity.job or ""):
            yield pod


def _is(row: PodRow, what: str) -> bool:
    if what == "waiting":
        return row.waiting
    if what == "idle":
        return any(gpu.state is GpuState.IDLE_HELD for gpu in row.cards)
    return what == "all" or row.pod.requested_gpus > 0 or bool(row.cards)


def show(visit: PageRequest) -> Response:
    """Show one pod. One that is gone still has an explanation, and maybe cards."""
    namespace, name = visit.request.path_params["namespace"], visit.request.path_params["name"]
    index = Index(visit.sources.asked.view())
    pod = index.pod(namespace, name)
    why = visit.sources.asked.why(name, namespace, visit.lang)
    cards = index.held.get((namespace, name), [])
    known = pod is not None or why.cause != "unknown-name" or bool(cards)
    alerts = [row for row in firing(visit, pod=name) if row.alert.labels.get("namespace") in (None, namespace)]
    sections = [
        visit.section("why", "why", chain=chain(why), polite=True),
        visit.section("facts", "pod", pod=pod, namespace=namespace, name=name),
        visit.section("alerts", "alerts", polite=True, rows=alerts),
        visit.section("cards", "cards", rows=card_rows(visit, cards), where=True),
    ]
    return visit.answer("pod.html", f"{namespace}/{name}", *sections, status=200 if known else 404)
