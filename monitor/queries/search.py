"""The search for pods by name, job or user: one for the page, the API and the CLI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from monitor.explain.keys import Key
from monitor.explain.not_created import UNKNOWN_NAME
from monitor.facts.cluster import ClusterView, PodView
from monitor.i18n import say
from monitor.present.rows import ClusterIndex, pod_rows
from monitor.queries.cluster import PodExplanation, WantedName

MAX_EXPLAINED_PODS = 6  # an explanation is expensive
MAX_FOUND_PODS = 200


class Explainer(Protocol):
    """What a search needs to know about the cluster."""

    def view(self) -> ClusterView: ...

    def why(self, names: Sequence[WantedName], lang: str, /) -> Sequence[PodExplanation]: ...


@dataclass(frozen=True)
class FoundPods:
    """The pods that a search finds. `exact` if they have the name; else they are of a user or job, or similar."""

    pods: tuple[PodView, ...] = ()
    exact: bool = False

    @property
    def only(self) -> PodView | None:
        """The one pod that has exactly the name."""
        return self.pods[0] if self.exact and len(self.pods) == 1 else None


def split_name(wanted: str, namespace: str | None = None) -> tuple[str, str | None]:
    """Name and namespace of `NAME` or `NAMESPACE/NAME`; None means any namespace."""
    prefix, _, name = wanted.strip().rpartition("/")
    return name, namespace or prefix or None


def find_pods(pods: Iterable[PodView], wanted: str, namespace: str | None = None) -> FoundPods:
    """Pods of the name `wanted`, else those of the user or job of that name, else those whose name contains it."""
    name, space = split_name(wanted, namespace)
    if not name:
        return FoundPods()
    candidates = [pod for pod in pods if namespace in (None, pod.namespace)]
    exact = tuple(pod for pod in candidates if pod.name == name and space in (None, pod.namespace))
    if exact:
        return FoundPods(exact, exact=True)
    part = wanted.strip().lower()
    owned = tuple(pod for pod in candidates if part in _owners(pod))
    return FoundPods(owned or tuple(pod for pod in candidates if part in f"{pod.namespace}/{pod.name}".lower()))


def _owners(pod: PodView) -> tuple[str, str]:
    return (pod.identity.user or "").lower(), (pod.identity.job or "").lower()


def search_why(cluster: Explainer, wanted: str, namespace: str | None, lang: str) -> PodExplanation:
    """Explain the pod or job of this name, else the pods of the user, or with a similar name, waiting ones first."""
    name, space = split_name(wanted, namespace)
    (direct,) = cluster.why([(name, space)], lang)
    if direct.cause != UNKNOWN_NAME:
        return direct
    index = ClusterIndex(cluster.view())
    rows = pod_rows(index, find_pods(index.view.pods, wanted, namespace).pods)
    if not rows:
        return direct
    told = cluster.why([(row.pod.name, row.pod.namespace) for row in rows[:MAX_EXPLAINED_PODS]], lang)
    blocks = [line for each in told for line in ("", *each.lines)]
    head = say(lang, Key.FOUND_PODS, {"name": wanted, "count": len(rows)})
    rest = [say(lang, Key.FOUND_MORE, {"count": len(rows) - len(told)})] if len(rows) > len(told) else []
    return replace(
        told[0],
        name=wanted,
        well=all(each.well for each in told),
        lines=(head, *blocks, *rest) if len(rows) > 1 else told[0].lines,
        found=tuple(f"{row.pod.namespace}/{row.pod.name}" for row in rows[:MAX_FOUND_PODS]),
    )
