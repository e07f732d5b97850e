"""Questions about the cluster, answered from what is followed now: the command line and the page ask the same ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from monitor.cluster.live import LiveCluster
from monitor.explain.model import Explanation, PodStatus
from monitor.explain.not_created import explain_name
from monitor.facts.cluster import ClusterView
from monitor.facts.cluster_facts import ClusterFacts, make_cluster_facts
from monitor.facts.findings import Finding
from monitor.present.explanation import render_explanation
from monitor.present.findings import SaidFinding, say_findings

WELL = (PodStatus.RUNNING, PodStatus.FINISHED)


@dataclass(frozen=True)
class Why:
    """Why a pod is as it is: an enumerated cause, and lines for a person. `well` if there is nothing to do about it."""

    name: str
    status: str
    cause: str
    well: bool
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def world_of(cluster: LiveCluster, resource: str) -> ClusterFacts:
    """Given a cluster, return everything an explanation may look at."""
    kube = cluster.kube
    if kube is None:
        return make_cluster_facts(agents=cluster.poller.facts(), view=cluster.view, resource=resource)
    return make_cluster_facts(
        pods=kube.pods.snapshot().items,
        nodes=kube.nodes.snapshot().items,
        events=kube.events.snapshot().items,
        quotas=kube.quotas.snapshot().items,
        queues=kube.queues(),
        pod_groups=kube.pod_groups.snapshot().items,
        workloads=kube.workloads.snapshot().items,
        identities=cluster.identities(),
        agents=cluster.poller.facts(),
        view=cluster.view,
        resource=resource,
    )


class Questions:
    """What can be asked of a cluster. `found` gives the findings; without it, nobody looks for any."""

    def __init__(
        self,
        cluster: LiveCluster,
        resource: str,
        now: Callable[[], float] = time.time,
        found: Callable[[], tuple[Finding, ...] | None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self._now = now
        self._found = found

    def view(self) -> ClusterView:
        """Return the cluster as it is now."""
        return self._cluster.view

    def findings(self, lang: str) -> tuple[SaidFinding, ...] | None:
        """Return what is wrong, in words; None while nobody has looked."""
        found = self._found()
        return None if found is None else say_findings(found, lang)

    def why(self, name: str, namespace: str | None, lang: str) -> Why:
        """Given a pod's or job's name, return why it is as it is, in Chinese (`zh`) or English (`en`)."""
        explanation = explain_name(name, namespace, world_of(self._cluster, self._resource), self._now())
        return _why(name, explanation, lang)


def _why(name: str, explanation: Explanation, lang: str) -> Why:
    return Why(
        name=name,
        status=explanation.status.value,
        cause=explanation.cause,
        well=explanation.status in WELL,
        lines=tuple(render_explanation(explanation, lang)),
    )
