"""Queries about the current state of the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from monitor.cluster.live import LiveCluster
from monitor.explain.fits.answer import would_fit
from monitor.explain.fits.model import FitsRequest
from monitor.explain.model import Explanation, PodStatus
from monitor.explain.not_created import UNKNOWN_NAME, explain_name, explain_unseen
from monitor.facts.cluster import ClusterView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import SmallFacts
from monitor.facts.findings import Finding
from monitor.facts.kept_facts import KeptFacts, Moment
from monitor.present.explanation import render_explanation
from monitor.present.findings import LocalizedFinding, localize_findings
from monitor.queries.fits import FitsAnswer, localize_fits

WantedName = tuple[str, str | None]  # name of a pod or job, and its namespace; None means any
HEALTHY_STATUSES = (PodStatus.RUNNING, PodStatus.FINISHED)


@dataclass(frozen=True)
class PodExplanation:
    """Why a pod is in its state: a cause code, and lines for people. `well` if no action is needed.

    `found` are the pods, as `namespace/name`, that a search found for the name of a user or a part of a name; the
    cause is that of the first, and the lines are about the first few.
    """

    name: str
    status: str
    cause: str
    well: bool
    lines: tuple[str, ...]
    found: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def pods_unseen(view: ClusterView) -> str | None:
    """Why the pods of the cluster cannot be read; None if they are."""
    blind = (source for source in view.sources if source.name in ("kubernetes", "pods") and not source.ok)
    return next(((source.why or source.name).rstrip(".") for source in blind), None)


def current_moment(cluster: LiveCluster) -> Moment:
    """Everything known now that explanations use."""
    kube = cluster.kube
    if kube is None:
        view = cluster.view
        return Moment(view, cluster.poller.facts(), small=SmallFacts(sources=view.sources))
    pods, nodes = cluster.joined_objects()
    view = cluster.view
    return Moment(
        view=view,
        agents=cluster.poller.facts(),
        pods=pods,
        nodes=nodes,
        events=kube.events.snapshot().items,
        identities=cluster.identities(),
        small=SmallFacts(
            sources=view.sources,
            queues=kube.queues(),
            quotas=kube.quotas.snapshot().items,
            pod_groups=kube.pod_groups.snapshot().items,
            workloads=kube.workloads.snapshot().items,
            devices=cluster.devices,
        ),
    )


class ClusterQueries:
    """Queries about a cluster. `findings` returns the current findings, None before the first evaluation."""

    def __init__(
        self,
        cluster: LiveCluster,
        resource: str,
        now: Callable[[], float] = time.time,
        findings: Callable[[], tuple[Finding, ...] | None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._now = now
        self._findings = findings
        self._facts = KeptFacts(resource)
        self._facts_lock = threading.Lock()

    def view(self) -> ClusterView:
        return self._cluster.view

    def overview(self) -> ClusterView:
        return self._cluster.overview

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        """Findings in one language; None before the first evaluation."""
        findings = self._findings()
        return None if findings is None else localize_findings(findings, lang)

    def why(self, names: Sequence[WantedName], lang: str) -> tuple[PodExplanation, ...]:
        """Explain the states of pods or jobs of exactly these names, in English (`en`) or Chinese (`zh`)."""
        with self._current_facts() as facts:
            now = self._now()
            explanations = [explain_name(name, namespace, facts, now) for name, namespace in names]
        unseen = pods_unseen(self.view())
        return tuple(
            _localized(name, _unless_unseen(explanation, name, namespace, unseen), lang)
            for (name, namespace), explanation in zip(names, explanations, strict=True)
        )

    def fits(self, request: FitsRequest, lang: str) -> FitsAnswer:
        """Whether a job that does not exist yet would fit. Nothing is created."""
        with self._current_facts() as facts:
            return localize_fits(would_fit(request, facts, self._now()), lang)

    @contextmanager
    def _current_facts(self) -> Iterator[ClusterFacts]:
        """Facts of this moment. Those of the last query are brought up to date, so one query at a time uses them."""
        with self._facts_lock:
            yield self._facts.at(current_moment(self._cluster))


def _unless_unseen(explanation: Explanation, name: str, namespace: str | None, unseen: str | None) -> Explanation:
    """The explanation; if no such pod is known, why pods cannot be read, if so."""
    if unseen is None or explanation.cause != UNKNOWN_NAME:
        return explanation
    return explain_unseen(name, namespace, unseen)


def _localized(name: str, explanation: Explanation, lang: str) -> PodExplanation:
    return PodExplanation(
        name=name,
        status=explanation.status.value,
        cause=explanation.cause,
        well=explanation.status in HEALTHY_STATUSES,
        lines=tuple(render_explanation(explanation, lang)),
    )
