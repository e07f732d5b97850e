"""Users and queues: who has what, who waits for what, and how well it is used."""

from __future__ import annotations

from collections import Counter, defaultdict

from markupsafe import Markup
from starlette.responses import Response

from monitor.facts.cluster import GpuState, GpuView, UsageView
from monitor.i18n.figures import number, percent
from monitor.report.history import Kind, What
from monitor.web.pages.charts import Chart, draw
from monitor.web.pages.render import PageRequest
from monitor.web.pages.rows import SHOWN, Index, card_rows, firing, pod_rows


def show_users(visit: PageRequest) -> Response:
    """Show all users, those with the most cards first."""
    index = Index(visit.sources.asked.view())
    view, wanted = index.view, visit.query("q").lower()
    waiting: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    for pod in view.pods:
        user = pod.identity.user
        if user is not None:
            pods[user] += 1
            waiting[user] += int(pod.requested_gpus) if pod.node is None else 0
    idle = Counter(holder.user for gpu in view.gpus if gpu.state is GpuState.IDLE_HELD for holder in gpu.holders)
    found = sorted(view.users.items(), key=lambda each: (-each[1].gpus, each[0]))
    rows = [(user, use, pods[user], waiting[user], idle[user]) for user, use in found if wanted in user.lower()]
    listed = visit.section("users", "users", rows=rows[:SHOWN], more=max(0, len(rows) - SHOWN))
    return visit.answer("list.html", visit.t("nav.users"), listed, search=visit.query("q"), path="/users")


def show_user(visit: PageRequest) -> Response:
    """Show one user."""
    name = visit.request.path_params["name"]
    index = Index(visit.sources.asked.view())
    pods = [pod for pod in index.view.pods if pod.identity.user == name]
    cards = [gpu for gpu in index.view.gpus if any(holder.user == name for holder in gpu.holders)]
    use = index.view.users.get(name)
    if use is None and not pods and not cards:
        return visit.missing(name)
    sections = [
        visit.section("facts", "usage", use=use or UsageView(), cards=cards, waiting=_waiting(index, user=name)),
        visit.section("charts", "charts", charts=_charts(visit, Kind.USER, name, cards)),
        visit.section("alerts", "alerts", polite=True, rows=firing(visit, user=name)),
        visit.section("pods", "pods", rows=pod_rows(index, pods)[:SHOWN], more=max(0, len(pods) - SHOWN)),
        visit.section("cards", "cards", rows=card_rows(visit, cards[:SHOWN]), where=True),
    ]
    return visit.answer("owner.html", name, *sections, kind="user")


def show_queues(visit: PageRequest) -> Response:
    """Show all queues."""
    view, wanted = visit.sources.asked.view(), visit.query("q").lower()
    queues = sorted(view.queues, key=lambda queue: (-queue.waiting, -queue.used, queue.name))
    found = [queue for queue in queues if wanted in queue.name.lower()]
    listed = visit.section("queues", "queues", queues=found[:SHOWN], more=max(0, len(found) - SHOWN))
    return visit.answer("list.html", visit.t("nav.queues"), listed, search=visit.query("q"), path="/queues")


def show_queue(visit: PageRequest) -> Response:
    """Show one queue."""
    name = visit.request.path_params["name"]
    index = Index(visit.sources.asked.view())
    queue = next((each for each in index.view.queues if each.name == name), None)
    pods = [pod for pod in index.view.pods if pod.identity.queue == name]
    if queue is None and not pods:
        return visit.missing(name)
    cards = [gpu for gpu in index.view.gpus if any(holder.queue == name for holder in gpu.holders)]
    users: defaultdict[str, float] = defaultdict(float)
    for pod in pods:
        if pod.node is not None and pod.identity.user is not None:
            users[pod.identity.user] += pod.requested_gpus
    top = sorted(users.items(), key=lambda each: (-each[1], each[0]))
    sections = [
        visit.section("facts", "queue", queue=queue, users=top, cards=cards, waiting=_waiting(index, queue=name)),
        visit.section("charts", "charts", charts=_charts(visit, Kind.QUEUE, name, cards)),
        visit.section("alerts", "alerts", polite=True, rows=firing(visit, queue=name)),
        visit.section("pods", "pods", rows=pod_rows(index, pods)[:SHOWN], more=max(0, len(pods) - SHOWN)),
        visit.section("cards", "cards", rows=card_rows(visit, cards[:SHOWN]), where=True),
    ]
    return visit.answer("owner.html", name, *sections, kind="queue")


def _waiting(index: Index, user: str | None = None, queue: str | None = None) -> float:
    """Return for how many cards somebody waits."""
    return sum(
        pod.requested_gpus
        for pod in index.view.pods
        if pod.node is None and user in (None, pod.identity.user) and queue in (None, pod.identity.queue)
    )


def _charts(visit: PageRequest, kind: Kind, name: str, cards: list[GpuView]) -> Markup:
    loads = [gpu.utilization_ratio for gpu in cards if gpu.utilization_ratio is not None]
    load = percent(sum(loads) / len(loads)) if loads else "?"
    used = visit.sources.series(kind, name, What.UTILIZATION)
    held = visit.sources.series(kind, name, What.GPUS)
    return draw(
        visit.now,
        visit.lang,
        Chart(visit.t("chart.utilization"), used, 1.0, load),
        Chart(visit.t("chart.gpus"), held, None, number(len(cards))),
    )
