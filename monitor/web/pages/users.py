"""Users and queues: GPUs they hold, wait for and use."""

from __future__ import annotations

from collections import defaultdict

from starlette.responses import Response

from monitor.facts.cluster import GpuView, PodView, UsageView
from monitor.facts.text import Value
from monitor.history.model import HistorySubject
from monitor.present.rows import (
    MAX_ROWS,
    ClusterIndex,
    leftover_gpus,
    queues_by_demand,
    user_rows,
    user_utilization,
)
from monitor.present.shares import requested, wanted
from monitor.web.pages.alerts import firing_alerts
from monitor.web.pages.held import held_gpus
from monitor.web.pages.pods import limited_rows
from monitor.web.pages.render import PageRequest, PageSection


def show_users(page: PageRequest) -> Response:
    """All users, those with the most GPUs first."""
    wanted = page.query("q").lower()
    rows = [row for row in user_rows(page.deps.cluster.view()) if wanted in row.name.lower()]
    section = page.section("users", "users", **page.limited(rows))
    return page.respond("list.html", page.t("nav.users"), section, search=page.query("q"), path="/users")


def show_user(page: PageRequest) -> Response:
    """The page of a user."""
    name = page.request.path_params["name"]
    index = ClusterIndex(page.deps.cluster.view())
    pods = [pod for pod in index.view.pods if pod.identity.user == name]
    gpus = [gpu for gpu in index.view.gpus if any(holder.user == name for holder in gpu.holders)]
    usage = index.view.users.get(name)
    if usage is None and not pods and not gpus:
        return page.not_found(name)
    sections = [
        page.section(
            "facts",
            "usage",
            use=usage or UsageView(),
            ratio=user_utilization(gpus, name),
            waiting=_waiting_gpus(pods),
            leftover=leftover_gpus(gpus)[name],
        ),
        *_owner_sections(page, index, HistorySubject.USER, name, pods, gpus),
    ]
    return page.respond("owner.html", name, *sections, kind="user")


def show_queues(page: PageRequest) -> Response:
    """All queues, those with the most waiting GPUs first."""
    wanted = page.query("q").lower()
    queues = [queue for queue in queues_by_demand(page.deps.cluster.view()) if wanted in queue.name.lower()]
    section = page.section("queues", "queues", queues=queues[:MAX_ROWS], more=max(0, len(queues) - MAX_ROWS))
    return page.respond("list.html", page.t("nav.queues"), section, search=page.query("q"), path="/queues")


def show_queue(page: PageRequest) -> Response:
    """The page of a queue."""
    name = page.request.path_params["name"]
    index = ClusterIndex(page.deps.cluster.view())
    queue = next((queue for queue in index.view.queues if queue.name == name), None)
    pods = [pod for pod in index.view.pods if pod.identity.queue == name]
    if queue is None and not pods:
        return page.not_found(name)
    gpus = [gpu for gpu in index.view.gpus if any(holder.queue == name for holder in gpu.holders)]
    users: defaultdict[str, list[PodView]] = defaultdict(list)
    for pod in pods:
        if pod.node is not None and pod.identity.user is not None:
            users[pod.identity.user].append(pod)
    held = [(user, *requested(of_user)) for user, of_user in users.items()]
    top_users = sorted(held, key=lambda entry: (-entry[1], entry[0]))
    sections = [
        page.section("facts", "queue", queue=queue, users=top_users, waiting=_waiting_gpus(pods)),
        *_owner_sections(page, index, HistorySubject.QUEUE, name, pods, gpus),
    ]
    return page.respond("owner.html", name, *sections, kind="queue")


def _owner_sections(
    page: PageRequest, index: ClusterIndex, kind: HistorySubject, name: str, pods: list[PodView], gpus: list[GpuView]
) -> list[PageSection]:
    """Sections about a user or queue."""
    return [
        page.history(kind, name),
        page.section("alerts", "alerts", polite=True, rows=firing_alerts(page, **{kind.value: name})),
        page.section("pods", "pods", **limited_rows(index, pods)),
        held_gpus(page, index, gpus, pods),
    ]


def _waiting_gpus(pods: list[PodView]) -> Value:
    return wanted(pod for pod in pods if pod.node is None)
