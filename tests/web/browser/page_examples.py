"""Addresses of every page for its browser tests, by route: a route without an example fails the test of this table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from monitor.web.context import PageDeps
from monitor.web.owner_page import owner_routes
from monitor.web.pages.routes import page_routes
from tests.web.test_app import FakeCluster

# Parts that a page requests, not pages; the pages in DIALOGS and /cleanup contain them.
FRAGMENTS = frozenset({"/suggest", "/cleanup/plan", "/cleanup/preview-run", "/alerts/preview-silence"})


def _gpus(pod: dict[str, Any]) -> float:
    return float(pod.get("requested_gpus", 0.0))


@dataclass(frozen=True)
class Objects:
    """What the cluster contains: the JSON of its view, and of its alerts; and paths that notices link to."""

    view: dict[str, Any]
    alerts: list[dict[str, Any]]
    owner_links: tuple[str, ...] = ()

    def gpus(self) -> Iterable[str]:
        """One GPU in each state."""
        by_state = {gpu["state"]: gpu for gpu in self.view["gpus"]}
        return [f"/gpus/{gpu['node']}/{gpu['index']}" for gpu in by_state.values()]

    def pods(self) -> Iterable[str]:
        """One pod in each phase, with a GPU if possible."""
        pods = sorted(self.view["pods"], key=_gpus)
        by_phase = {pod.get("phase"): pod for pod in pods}
        return [f"/pods/{pod['namespace']}/{pod['name']}" for pod in by_phase.values()]

    def jobs(self) -> Iterable[str]:
        pod = max((pod for pod in self.view["pods"] if pod["identity"].get("job")), key=_gpus)
        return [f"/jobs/{pod['namespace']}/{quote(pod['identity']['job'], safe='')}"]

    def users(self) -> Iterable[str]:
        """The user with most GPUs."""
        return [f"/users/{max(self.view['users'], key=lambda user: self.view['users'][user].get('gpus', 0))}"]

    def queues(self) -> Iterable[str]:
        """The queue for which most GPUs are waited for."""
        return [f"/queues/{max(self.view['queues'], key=lambda queue: queue['waiting'])['name']}"]

    def nodes(self) -> Iterable[str]:
        """One node in each condition."""
        nodes = {(node.get("ready"), node.get("silent_since") is None): node["name"] for node in self.view["nodes"]}
        return [f"/nodes/{name}" for name in nodes.values()]

    def alert_pages(self) -> Iterable[str]:
        """An alert with actions, one with symptoms, one that is silenced, and one that is resolved."""
        found = {alert["rule"]: alert["fingerprint"] for alert in self.alerts}
        wanted = ("gpu-zombie", "node-down", "image-oversize", "service-down")
        return [f"/alerts/{found[rule]}" for rule in wanted if rule in found] or [f"/alerts/{min(found.values())}"]


EXAMPLES: dict[str, Callable[[Objects], Iterable[str]]] = {
    "/": lambda _: ["/"],
    "/nodes": lambda _: ["/nodes", "/nodes?q=nothing-like-this"],
    "/nodes/{name}": lambda objects: [*objects.nodes(), "/nodes/nothing-like-this"],
    "/nodes/{name}/disk": lambda objects: [
        f"{next(iter(objects.nodes()))}/disk?mount=/", "/nodes/gpu01/disk?mount=/nothing-like-this",
    ],
    "/gpus/{node}/{index:int}": lambda objects: [*objects.gpus(), "/gpus/gpu01/99"],
    "/pods": lambda _: ["/pods", "/pods?what=all", "/pods?what=waiting", "/pods?user=nothing-like-this"],
    "/pods/{namespace}/{name}": lambda objects: [*objects.pods(), "/pods/nlp/nothing-like-this"],
    "/jobs/{namespace}/{name:path}": lambda objects: [*objects.jobs(), "/jobs/nlp/nothing-like-this"],
    "/users": lambda _: ["/users", "/users?q=nothing-like-this"],
    "/users/{name}": lambda objects: [*objects.users(), "/users/nothing-like-this"],
    "/queues": lambda _: ["/queues"],
    "/fits": lambda _: ["/fits", "/fits?gpus=16&per_node=8", "/fits?gpus=5000"],
    "/queues/{name}": lambda objects: [*objects.queues(), "/queues/nothing-like-this"],
    "/why": lambda _: ["/why", "/why?q=zhang", "/why?q=nothing-like-this"],
    "/alerts": lambda _: ["/alerts?all", "/alerts?rule=nothing-like-this"],  # with everything, and with nothing
    "/alerts/{fingerprint}": lambda objects: [*objects.alert_pages(), "/alerts/0123456789abcdef"],
    "/cleanup": lambda _: ["/cleanup"],
    "/report": lambda _: ["/report", "/report?since=24h&by=node"],
    "/audit": lambda _: ["/audit"],
    "/login": lambda _: ["/login?next=/nodes"],
    "/keep/{link}": lambda objects: [*objects.owner_links, "/keep/nothing-like-this"],
    "no such page": lambda _: ["/nothing-like-this"],
}  # fmt: skip


def routes() -> set[str]:
    """Routes of all pages, whatever the daemon is configured to have."""
    available = cast("Any", object())
    deps = PageDeps(FakeCluster(), alerts=available, cleanup=available, reports=available, audit=available)
    pages = [*page_routes(deps), *owner_routes(available, None, "UTC")]
    return {route.path for route in pages} | {"/login", "no such page"}
