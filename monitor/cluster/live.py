"""The cluster as it is now: follows Kubernetes and the agents, and keeps the view of both up to date.

Either may be missing. Without Kubernetes the nodes are still seen, without agents the pods are; `sources` says what is
missing and since when. A change of a pod, a node or an agent is in the view within milliseconds; every node is joined
again once a cycle, because time passes too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from monitor.cluster.agents import AgentPoller, PollSettings, Targets
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.identity import identify
from monitor.cluster.kube import KubeApi
from monitor.cluster.kube_watch import KubeWatch
from monitor.cluster.owners import nobody_known
from monitor.cluster.platforms import PlatformRule, to_keep
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.cluster.store import Change
from monitor.cluster.view import Changes, Inputs, Surroundings, ViewBuilder
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.kube import NodeFact, PodFact

log = logging.getLogger(__name__)
BREATH = 0.02  # changes that come together are looked at together
IDLE_BEAT = 0.5


@dataclass(frozen=True)
class ClusterSettings:
    """What is followed, and how."""

    poll: PollSettings
    agents: tuple[str, ...]
    agent_label: str
    agent_port: int
    resource: str
    limits: StateLimits
    rules: tuple[PlatformRule, ...]
    cycle: float


class LiveCluster:
    """Kubernetes and the agents, and the view of both. `no_kubernetes` says why there is none, where there is none."""

    def __init__(self, settings: ClusterSettings, api: KubeApi | None, no_kubernetes: str | None = None) -> None:
        self._settings = settings
        self._no_kubernetes = no_kubernetes
        self.kube = KubeWatch(api, to_keep(settings.rules), on_change=self._kube_changed) if api else None
        self.poller = AgentPoller(settings.poll, self._targets, on_answer=self._agent_changed)
        self._builder = ViewBuilder(self._identify, settings.resource, settings.limits)
        self._owners_seen: tuple[int, ...] = ()
        self._pods: dict[str, PodFact | None] = {}
        self._nodes: dict[str, NodeFact | None] = {}
        self._agents: dict[str, AgentFact] = {}
        self._changed = threading.Condition()  # guards what is pending; never held while a view is made
        self._building = threading.RLock()
        self._stopping = False
        self.view = ClusterView(at=time.time())

    def start(self) -> None:
        if self.kube:
            self.kube.start()
        self.poller.start()
        threading.Thread(target=self._keep_up, name="view", daemon=True).start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.poller.stop()
        if self.kube:
            self.kube.stop()

    def wait_settled(self, seconds: float) -> None:
        """Return when Kubernetes is known as well as it can be and every agent was asked, or after so long."""
        deadline = time.monotonic() + seconds
        if self.kube:
            self.kube.wait_settled(seconds)
        self.poller.update_targets()
        while time.monotonic() < deadline:
            if all(fact.received_at or fact.failures for fact in self.poller.facts()):
                break
            time.sleep(0.02)
        self.refresh()

    def refresh(self) -> ClusterView:
        """Join everything now, from what Kubernetes and the agents say at this moment."""
        with self._building:
            self._drain()
            self._see_owners()
            kube = self.kube
            inputs = Inputs(
                agents=self.poller.facts(),
                pods=kube.pods.snapshot().items if kube else (),
                nodes=kube.nodes.snapshot().items if kube else (),
                around=self._look_around(),
            )
            self.view = self._builder.build(inputs, time.time())
            return self.view

    def _look_around(self) -> Surroundings:
        agents = agent_sources(self.poller.facts())
        if self.kube is None:
            return Surroundings(sources=(*kube_sources(None, self._no_kubernetes), *agents))
        sources = self.kube.sources()
        return Surroundings(
            queues=self.kube.queues(),
            sources=(*kube_sources(sources), *agents),
            pods_known=any(source.resource == "pods" and source.state == "synced" for source in sources),
        )

    def identities(self) -> dict[str, Identity]:
        """Return whose each pod is."""
        return {pod.uid: self._identify(pod) for pod in self.kube.pods.snapshot().items} if self.kube else {}

    def _identify(self, pod: PodFact) -> Identity:
        if self.kube is None:
            return identify(pod, nobody_known, self._settings.rules, {})
        return identify(pod, self.kube.owner, self._settings.rules, self.kube.namespace_owners())

    def _see_owners(self) -> None:
        """A ReplicaSet, Job or namespace may become known after the pods that belong to it."""
        if self.kube is None:
            return
        seen = tuple(s.version for s in (self.kube.replica_sets, self.kube.jobs, self.kube.namespaces))
        if seen != self._owners_seen:
            self._owners_seen = seen
            self._builder.identify_again()

    def _targets(self) -> Targets:
        """Return the agents: those that are named, else the running pods with the label."""
        settings = self._settings
        if settings.agents or self.kube is None:
            return dict.fromkeys(settings.agents)
        key, _, value = settings.agent_label.partition("=")
        return {
            f"{pod.pod_ip}:{settings.agent_port}": pod.node
            for pod in self.kube.pods.snapshot().items
            if pod.labels.get(key) == value and pod.pod_ip and pod.phase == "Running"
        }

    def _kube_changed(self, resource: str, changes: Sequence[Change[Any]]) -> None:
        if resource not in ("pods", "nodes"):
            return  # what they say is read when the surroundings are looked at, or when somebody asks why
        with self._changed:
            for change in changes:
                subject: Any = change.new or change.old
                if resource == "pods":
                    self._pods[subject.uid] = change.new
                else:
                    self._nodes[subject.name] = change.new
            self._changed.notify_all()

    def _agent_changed(self, fact: AgentFact) -> None:
        with self._changed:
            self._agents[fact.target] = fact
            self._changed.notify_all()

    def _keep_up(self) -> None:
        """Follow what changes; join every node again once a cycle, a few at a time so that no change has to wait."""
        rounds = Rounds(self._settings.cycle)
        while not self._stopping:
            try:
                self._follow(rounds)
            except Exception:  # whatever one odd object provokes, the rest is still to be seen
                log.exception("the view could not be made")
            with self._changed:
                if not (self._stopping or self._pods or self._nodes or self._agents):
                    self._changed.wait(IDLE_BEAT)
            time.sleep(BREATH)

    def _follow(self, rounds: Rounds) -> None:
        with self._building:
            changes = self._drain()
            again, new_round = rounds.due(self._builder.node_names, time.monotonic())
            if new_round:
                self._see_owners()
            changes = replace(changes, again=again, around=self._look_around() if new_round else None)
            if changes:
                self.view = self._builder.update(changes, time.time())
            if new_round:
                log.info("%s", status_line(self.view))

    def _drain(self) -> Changes:
        with self._changed:
            changes = Changes(self._pods, self._nodes, tuple(self._agents.values()))
            self._pods, self._nodes, self._agents = {}, {}, {}
            return changes


class Rounds:
    """Deals out the nodes so that each comes up once a cycle, evenly spread."""

    def __init__(self, cycle: float) -> None:
        self._cycle = cycle
        self._began = float("-inf")
        self._waiting: list[str] = []
        self._size = 0

    def due(self, names: Sequence[str], now: float) -> tuple[frozenset[str], bool]:
        """Given all nodes, return those to be joined again now, and whether a new round has begun."""
        new_round = now - self._began >= self._cycle
        left_over = self._waiting if new_round else []
        if new_round:
            self._began, self._waiting, self._size = now, list(names), len(names)
        wanted = round(self._size * (1 - (now - self._began) / self._cycle))
        dealt = [self._waiting.pop() for _ in range(len(self._waiting) - max(0, wanted))]
        return frozenset((*dealt, *left_over)), new_round


def status_line(view: ClusterView) -> str:
    """Given a view, return one line that says how the cluster fares."""
    states = Counter(gpu.state.value for gpu in view.gpus)
    counts = " ".join(f"{state}={count}" for state, count in sorted(states.items())) or "none"
    unseen = ",".join(source.name for source in view.sources if not source.ok) or "-"
    return f"nodes={len(view.nodes)} pods={len(view.pods)} gpus: {counts} unseen={unseen}"
