"""What several pages show: cards, pods and alerts as rows, and a view that can be looked things up in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from monitor.alert.model import Phase
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView, PodView
from monitor.facts.text import Evidence
from monitor.present.alerts import AlertView, alert_views
from monitor.present.findings import SUBJECT_LABELS
from monitor.web.pages.render import PageRequest

SHOWN = 200
RELEASABLE = frozenset({GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.WEDGED, GpuState.PHANTOM, GpuState.GHOST})


class Index:
    """A view, and what belongs to what in it."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        return {node.name: node for node in self.view.nodes}

    @cached_property
    def cards(self) -> dict[str, list[GpuView]]:
        """Cards by node."""
        found = defaultdict(list)
        for gpu in self.view.gpus:
            found[gpu.node].append(gpu)
        return found

    @cached_property
    def held(self) -> dict[tuple[str | None, str | None], list[GpuView]]:
        """Cards by the namespace and name of the pod that has them."""
        found = defaultdict(list)
        for gpu in self.view.gpus:
            for holder in gpu.holders:
                found[holder.namespace, holder.pod].append(gpu)
        return found

    def pod(self, namespace: str, name: str) -> PodView | None:
        """Return a pod by its name."""
        return next((pod for pod in self.view.pods if pod.name == name and pod.namespace == namespace), None)


@dataclass(frozen=True)
class CardRow:
    """A card, and why it is in its state, in words."""

    gpu: GpuView
    because: tuple[str, ...]

    @property
    def releasable(self) -> bool:
        """Return whether somebody holds it for nothing."""
        return self.gpu.state in RELEASABLE

    @property
    def owner(self) -> str | None:
        """Return whose it is."""
        return next((holder.user for holder in self.gpu.holders), None)


@dataclass(frozen=True)
class PodRow:
    """A pod, and the cards that it has."""

    pod: PodView
    cards: Sequence[GpuView]

    @property
    def waiting(self) -> bool:
        return self.pod.node is None and self.pod.phase == "Pending"


@dataclass(frozen=True)
class AlertRow:
    """An alert, what it is about, and how many others are only its symptoms."""

    alert: AlertView
    about: tuple[tuple[str, str], ...]
    symptoms: int = 0


def card_rows(visit: PageRequest, gpus: Iterable[GpuView]) -> list[CardRow]:
    """Return cards as rows."""
    return [CardRow(gpu, tuple(because(visit, each) for each in gpu.evidence)) for gpu in gpus]


def because(visit: PageRequest, evidence: Evidence) -> str:
    """Return a reason for a state as a sentence; one that has no words yet in the words of the program."""
    values = {name: value for name, value in evidence.values.items() if name not in ("since", "at")}
    key = f"evidence.{evidence.key}"
    try:
        return visit.t(key, **values)
    except KeyError:
        return " ".join((evidence.key, *(f"{name}={value}" for name, value in values.items())))


def pod_rows(index: Index, pods: Iterable[PodView]) -> list[PodRow]:
    """Return pods as rows: those that wait first, then those with the most cards."""
    made = [PodRow(pod, index.held.get((pod.namespace, pod.name), ())) for pod in pods]
    return sorted(made, key=lambda row: (not row.waiting, -row.pod.requested_gpus, row.pod.namespace, row.pod.name))


def alert_rows(alerts: Sequence[AlertView]) -> list[AlertRow]:
    """Return alerts as rows, each with how many it explains."""
    symptoms: dict[str, int] = defaultdict(int)
    for each in alerts:
        if each.explained_by is not None and each.phase is Phase.FIRING:
            symptoms[each.explained_by] += 1
    return [AlertRow(each, subject(each.labels), symptoms[each.fingerprint]) for each in alerts]


def subject(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what an alert is about, the most telling first."""
    return tuple((name, labels[name]) for name in SUBJECT_LABELS if name in labels)


def firing(visit: PageRequest, **labels: str) -> list[AlertRow]:
    """Return what fires with these labels. Only that is put into words."""
    wanted = labels.items()
    shown = visit.sources.parts.shown
    if shown is None:
        alerts = visit.sources.alerts.alerts(visit.lang) if visit.sources.alerts is not None else ()
        return alert_rows([each for each in alerts if each.phase is Phase.FIRING and wanted <= each.labels.items()])
    met = [each for each in shown() if each.alert.phase is Phase.FIRING and wanted <= each.alert.finding.labels.items()]
    return alert_rows(alert_views(met, visit.lang))
