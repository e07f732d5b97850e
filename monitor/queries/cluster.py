"""Queries about the current state of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from monitor.cluster.live import LiveCluster
from monitor.explain.fits.answer import would_fit
from monitor.explain.fits.model import FitsRequest
from monitor.explain.model import PodStatus
from monitor.explain.not_created import UNKNOWN_NAME, explain_name, explain_unseen
from monitor.facts.cluster import ClusterView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import Finding
from monitor.present.explanation import render_explanation
from monitor.present.findings import LocalizedFinding, localize_findings
from monitor.queries.fits import FitsAnswer, localize_fits

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


def cluster_facts_of(cluster: LiveCluster, resource: str) -> ClusterFacts:
    """The facts that rules and explanations use."""
    kube = cluster.kube
    if kube is None:
        return make_cluster_facts(agents=cluster.poller.facts(), view=cluster.view, resource=resource)
    pods, nodes = cluster.joined_objects()
    return make_cluster_facts(
        pods=pods,
        nodes=nodes,
        events=kube.events.snapshot().items,
        quotas=kube.quotas.snapshot().items,
        queues=kube.queues(),
        pod_groups=kube.pod_groups.snapshot().items,
        workloads=kube.workloads.snapshot().items,
        devices=cluster.devices,
        identities=cluster.identities(),
        agents=cluster.poller.facts(),
        view=cluster.view,
        resource=resource,
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
        self._resource = resource
        self._now = now
        self._findings = findings

    def view(self) -> ClusterView:
        return self._cluster.view

    def overview(self) -> ClusterView:
        return self._cluster.overview

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        """Findings in one language; None before the first evaluation."""
        findings = self._findings()
        return None if findings is None else localize_findings(findings, lang)

    def why(self, name: str, namespace: str | None, lang: str) -> PodExplanation:
        """Explain the state of a pod or job of exactly this name, in English (`en`) or Chinese (`zh`)."""
        explanation = explain_name(name, namespace, cluster_facts_of(self._cluster, self._resource), self._now())
        unseen = pods_unseen(self.view()) if explanation.cause == UNKNOWN_NAME else None
        if unseen is not None:
            explanation = explain_unseen(name, namespace, unseen)
        return PodExplanation(
            name=name,
            status=explanation.status.value,
            cause=explanation.cause,
            well=explanation.status in HEALTHY_STATUSES,
            lines=tuple(render_explanation(explanation, lang)),
        )

    def fits(self, request: FitsRequest, lang: str) -> FitsAnswer:
        """Whether a job that does not exist yet would fit. Nothing is created."""
        facts = cluster_facts_of(self._cluster, self._resource)
        return localize_fits(would_fit(request, facts, self._now()), lang)
