"""Suggestions for the search: users, jobs, queues, nodes and pods whose name contains what was typed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from monitor.base.text import natural_key
from monitor.facts.cluster import ClusterView

MAX_SUGGESTIONS = 12
MAX_PER_KIND = 5


@dataclass(frozen=True)
class Suggestion:
    """A name, and what it is the name of: user, job, queue, node or pod."""

    value: str
    kind: str


def suggestions(view: ClusterView, typed: str) -> list[Suggestion]:
    """Names that contain what was typed; of each kind those that begin with it come first."""
    wanted = typed.strip().lower()
    if not wanted:
        return []
    found = (Suggestion(name, kind) for kind, names in _names(view) for name in _best(set(names), wanted))
    return list(islice(found, MAX_SUGGESTIONS))


def _names(view: ClusterView) -> Iterator[tuple[str, Iterable[str]]]:
    yield "user", view.users
    yield "job", (pod.identity.job for pod in view.pods if pod.identity.job is not None)
    yield "queue", (queue.name for queue in view.queues)
    yield "node", (node.name for node in view.nodes)
    yield "pod", (f"{pod.namespace}/{pod.name}" for pod in view.pods)


def _best(names: Iterable[str], wanted: str) -> list[str]:
    """The first few matching names; the name of a pod also begins after its namespace."""
    matching = [name for name in names if wanted in name.lower()]
    return sorted(matching, key=lambda name: (not _begins(name.lower(), wanted), natural_key(name)))[:MAX_PER_KIND]


def _begins(name: str, wanted: str) -> bool:
    return name.startswith(wanted) or name.rpartition("/")[2].startswith(wanted)
