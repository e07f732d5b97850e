"""Questions about the cluster, answered from what is followed now: the command line and the page ask the same ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.live import ClusterSettings, LiveCluster
from monitor.cluster.platforms import all_rules
from monitor.config.root import Config
from monitor.explain.not_created import explain_name
from monitor.explain.reasons import Explanation, Status
from monitor.explain.render import render
from monitor.facts.cluster import ClusterView
from monitor.facts.cluster_facts import World, make_world
from monitor.facts.findings import Finding
from monitor.kube.client import NoClusterError, connect
from monitor.present.findings import SaidFinding, say_findings

WELL = (Status.RUNNING, Status.FINISHED)
STORE_MISSES = 4  # so many looks into a metrics store may bring no news of a node before its facts count as stale


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


def make_cluster(config: Config, own_agent: str | None = None, state: str | None = None) -> LiveCluster:
    """Given the configuration, return a cluster that is not followed yet. `own_agent` is the one in this process.

    `state` is where what must not be forgotten is kept, by the one process that follows the cluster for good.
    Raise NoClusterError if the configuration asks for Kubernetes and there is none.
    """
    daemon = config.daemon
    api, why_none = None, "switched off by daemon.kubernetes.enabled"
    if daemon.kubernetes.enabled != "no":
        try:
            api = connect(daemon.kubernetes.kubeconfig, daemon.kubernetes.context)
        except NoClusterError as error:
            if daemon.kubernetes.enabled == "yes":
                raise
            why_none = str(error)
    agents = tuple(str(address) for address in daemon.agents.static)
    if own_agent is not None:
        agents = (*agents, own_agent)
    elif not agents and api is None and daemon.prometheus is None:
        agents = (str(config.agent.listen),)  # the one node there can be without Kubernetes is this one
    poll = daemon.agents.settings()
    settings = ClusterSettings(
        poll=replace(poll, token=poll.token or config.agent.read_token()),
        agents=agents,
        agent_label=daemon.agents.label,
        agent_namespace=daemon.agents.namespace,
        agent_port=daemon.agents.port,
        resource=daemon.gpu_resource,
        limits=state_limits(config),
        rules=all_rules((platform.rule() for platform in daemon.platforms), daemon.user_labels),
        cycle=daemon.cycle,
        state=state,
        prometheus=daemon.prometheus.settings() if daemon.prometheus is not None else None,
    )
    return LiveCluster(settings, api, why_none)


def state_limits(config: Config) -> StateLimits:
    """Return when a card's facts count as what. A store that is asked rarely does not make them stale."""
    limits, store = config.daemon.gpu.limits(), config.daemon.prometheus
    return (
        limits if store is None else replace(limits, stale_after=max(limits.stale_after, STORE_MISSES * store.interval))
    )


def world_of(cluster: LiveCluster, resource: str) -> World:
    """Given a cluster, return everything an explanation may look at."""
    kube = cluster.kube
    if kube is None:
        return make_world(agents=cluster.poller.facts(), view=cluster.view, resource=resource)
    return make_world(
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
        lines=tuple(render(explanation, lang)),
    )
