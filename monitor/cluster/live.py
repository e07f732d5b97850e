"""The cluster as it is now: follows Kubernetes and the agents, and keeps the view of both up to date.

Either may be missing. Without Kubernetes the nodes are still seen, without agents the pods are; `sources` says what is
missing and since when. A changed pod or node is in the view within milliseconds, an agent's news at the next beat;
every node is joined again once a cycle, because time passes too.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from monitor.cluster.agents.poller import AgentPoller, PollSettings, Targets
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import PlatformRule, required_fields
from monitor.cluster.prometheus.direct import DirectAgentReader
from monitor.cluster.prometheus.source import PrometheusNodes, PrometheusSettings
from monitor.cluster.rejoin import RejoinSchedule
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.cluster.view import ViewChanges, ViewInputs, ViewMemory, ClusterContext, ViewBuilder
from monitor.cluster.view_memory import ViewMemoryFile
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.kube import NamespaceFact, NodeFact, PodFact
from monitor.kube.client import KubeApi
from monitor.kube.informers import KubeWatch
from monitor.kube.store import Change

log = logging.getLogger(__name__)
COALESCE_SECONDS = 0.02  # changes that come together are looked at together
IDLE_WAIT_SECONDS = 0.5
OWNER_RESOURCES = ("replicasets.apps", "jobs.batch", "namespaces")
SOURCE_CHECK_SECONDS = 1.0  # how often it is looked who is missing
UNSEEN_RETENTION_SECONDS = 600.0  # how long after a start a node may still come back and be as it was


@dataclass(frozen=True)
class ClusterSettings:
    """What is followed, and how. `state` is the directory of what a restart must not forget; None: it forgets."""

    poll: PollSettings
    agents: tuple[str, ...]
    agent_label: str
    agent_port: int
    resource: str
    limits: StateLimits
    rules: tuple[PlatformRule, ...]
    cycle: float
    state: str | None = None
    agent_namespace: str | None = None  # where pods with the label are agents; None: everywhere
    prometheus: PrometheusSettings | None = None  # where node facts come from, if not from the agents themselves


class LiveCluster:
    """Kubernetes and the agents, and the view of both. `no_kubernetes` says why there is none, where there is none."""

    def __init__(self, settings: ClusterSettings, api: KubeApi | None, no_kubernetes: str | None = None) -> None:
        self._settings = settings
        self._no_kubernetes = no_kubernetes
        self.api = api
        self.kube = KubeWatch(api, required_fields(settings.rules), on_change=self._kube_changed) if api else None
        self.poller: AgentPoller | PrometheusNodes = (
            AgentPoller(settings.poll, self._targets, on_answer=self._agent_changed)
            if settings.prometheus is None
            else PrometheusNodes(settings.prometheus, self._targets, on_answer=self._agent_changed)
        )
        self._direct = DirectAgentReader(settings.poll, self.poller.facts) if settings.prometheus is not None else None
        self._file = ViewMemoryFile(settings.state) if settings.state is not None else None
        self._builder = self._make_builder(self._file.load() if self._file else None)
        self._forget_at = time.monotonic() + UNSEEN_RETENTION_SECONDS
        self._owners: set[str] = set()  # of which there is news: ReplicaSets and Jobs by uid, namespaces by name
        self._persons: tuple[int, dict[str, str]] = (-1, {})  # of namespaces, and as of which version of these
        self._pods: dict[str, PodFact | None] = {}
        self._nodes: dict[str, NodeFact | None] = {}
        self._agents: dict[str, AgentFact] = {}
        self._changed = threading.Condition()  # guards what is pending; never held while a view is made
        self._building = threading.RLock()
        self._stopping = False
        self._around = ClusterContext()
        self._look_at = 0.0
        self.view = ClusterView(at=time.time())

    def start(self) -> None:
        if self.kube:
            self.kube.start()
        self.poller.start()
        threading.Thread(target=self._keep_up, name="view", daemon=True).start()
        if self._file:
            self._file.start(self._remembered)

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.poller.stop()
        if self._direct:
            self._direct.close()
        if self._file:
            self._file.stop()
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
            kube, facts = self.kube, self.poller.facts()
            self._around = self._look_around(facts)
            inputs = ViewInputs(
                agents=facts,
                pods=kube.pods.snapshot().items if kube else (),
                nodes=kube.nodes.snapshot().items if kube else (),
                around=self._around,
            )
            self.view = self._builder.build(inputs, time.time())
            return self.view

    def _look_around(self, facts: Sequence[AgentFact]) -> ClusterContext:
        agents = agent_sources(facts, self.poller.source() if isinstance(self.poller, PrometheusNodes) else None)
        if self.kube is None:
            return ClusterContext(sources=(*kube_sources(None, self._no_kubernetes), *agents))
        sources = self.kube.sources()
        return ClusterContext(
            queues=self.kube.queues(),
            sources=(*kube_sources(sources), *agents),
            pods_known=any(source.resource == "pods" and source.state == "synced" for source in sources),
        )

    def fetch_agent(self, node: str) -> AgentFact | None:
        """Return what a node's agent says itself: now, if it is not asked all the time anyway."""
        if self._direct is not None:
            return self._direct.ask(node)
        return next((fact for fact in self.poller.facts() if fact.node == node), None)

    def identities(self) -> dict[str, Identity]:
        """Return whose each pod is. Those in the view have been asked already."""
        known = {pod.uid: pod.identity for pod in self.view.pods}
        pods = self.kube.pods.snapshot().items if self.kube else ()
        return {pod.uid: known.get(pod.uid) or self._identify(pod) for pod in pods}

    def _identify(self, pod: PodFact) -> Identity:
        if self.kube is None:
            return identify(pod, no_owners, self._settings.rules, {})
        version = self.kube.namespaces.version
        if version != self._persons[0]:
            self._persons = (version, self.kube.namespace_owners())
        return identify(pod, self.kube.owner, self._settings.rules, self._persons[1])

    def _see_owners(self) -> None:
        """A ReplicaSet, Job or namespace may become known after the pods that belong to it."""
        with self._changed:
            owners, self._owners = self._owners, set()
        if owners:
            self._builder.identify_again(owners)

    def _targets(self) -> Targets:
        """Return the agents: those that are named, else the running pods with the label."""
        settings = self._settings
        if settings.agents or self.kube is None:
            return dict.fromkeys(settings.agents)
        return {
            _address(pod.pod_ip, settings.agent_port): pod.node
            for pod in self.kube.pods.snapshot().items
            if _has_label(pod, settings.agent_label)
            and settings.agent_namespace in (None, pod.namespace)
            and pod.pod_ip
            and pod.phase == "Running"
        }

    def _kube_changed(self, resource: str, changes: Sequence[Change[Any]]) -> None:
        if resource in OWNER_RESOURCES:
            self._note_owners(changes)
        if resource not in ("pods", "nodes"):
            return  # what they say is read when the surroundings are looked at, or when somebody asks why
        with self._changed:
            for change in changes:
                subject: Any = change.new or change.old
                if resource == "pods":
                    self._pods[subject.uid] = change.new
                else:
                    self._nodes[subject.name] = change.new or self._node_named(subject.name)
            self._changed.notify_all()

    def _note_owners(self, changes: Sequence[Change[Any]]) -> None:
        """Note those that belong to somebody else than before: most changes, such as a Job's progress, are no news."""
        with self._changed:
            for change in changes:
                subject: Any = change.new or change.old
                if change.old is None or change.new is None or change.old.owner != change.new.owner:
                    self._owners.add(subject.name if isinstance(subject, NamespaceFact) else subject.uid)

    def _node_named(self, name: str) -> NodeFact | None:
        """Return the node of this name: word of an old one's end may come after its successor's beginning."""
        nodes = self.kube.nodes.snapshot().items if self.kube else ()
        return next((node for node in nodes if node.name == name), None)

    def _agent_changed(self, fact: AgentFact) -> None:
        """Wait for the next beat: what is asked every few seconds is not urgent, and a thousand always answer."""
        with self._changed:
            self._agents[fact.target] = fact

    def _keep_up(self) -> None:
        """Follow what changes; join every node again once a cycle, a few at a time so that no change has to wait."""
        rounds, whole = RejoinSchedule(self._settings.cycle), False
        while not self._stopping:
            try:
                if whole:
                    self._begin_anew()
                    whole = False
                self._follow(rounds)
            except Exception:  # whatever one odd object provokes, the rest is still to be seen
                log.exception("the view could not be made")
                whole = True
                time.sleep(IDLE_WAIT_SECONDS)
            with self._changed:
                if not (self._stopping or self._pods or self._nodes):
                    self._changed.wait(IDLE_WAIT_SECONDS)
            time.sleep(COALESCE_SECONDS)

    def _begin_anew(self) -> None:
        """Make the view from all that is known: a builder that failed has lost changes, and may be half changed."""
        with self._building:
            self._builder = self._make_builder(self._builder.memory)
            self.refresh()

    def _make_builder(self, memory: ViewMemory | None = None) -> ViewBuilder:
        return ViewBuilder(self._identify, self._settings.resource, self._settings.limits, memory)

    def _remembered(self) -> ViewMemory:
        with self._building:
            if time.monotonic() >= self._forget_at:
                self._builder.forget_unseen()
                self._forget_at = float("inf")
            return self._builder.memory

    def _follow(self, rounds: RejoinSchedule) -> None:
        with self._building:
            changes, now = self._drain(), time.monotonic()
            heard = frozenset(agent.node for agent in changes.agents if agent.node)
            again, new_round = rounds.due(self._builder.node_names, heard, now)
            changes = replace(changes, again=again)
            if new_round:
                self._see_owners()
            if new_round or now >= self._look_at:
                self._look_at = now + SOURCE_CHECK_SECONDS
                changes = self._look(changes, new_round)
            if changes:
                self.view = self._builder.update(changes, time.time())
            if new_round:
                log.info("%s", status_line(self.view))
        # As many facts come as go, so Python sees no need to for long, and then looks at all of them in one long stop.
        gc.collect(0)

    def _look(self, changes: ViewChanges, always: bool) -> ViewChanges:
        """Add what is noticed only by looking: what cannot be seen any more or again, and agents that are gone."""
        facts = self.poller.facts()
        before, self._around = self._around, self._look_around(facts)
        changes = replace(changes, gone=frozenset(self._builder.targets - {fact.target for fact in facts}))
        if self._around.pods_known != before.pods_known:  # that changes what every card's holder is worth
            changes = replace(changes, again=frozenset(self._builder.node_names))
        return replace(changes, around=self._around) if always or self._around != before else changes

    def _drain(self) -> ViewChanges:
        with self._changed:
            changes = ViewChanges(self._pods, self._nodes, tuple(self._agents.values()))
            self._pods, self._nodes, self._agents = {}, {}, {}
            return changes


def _has_label(pod: PodFact, label: str) -> bool:
    """Return whether a pod has the label: `key=value`, or `key` with whatever value."""
    key, equals, value = label.partition("=")
    return pod.labels.get(key) == value if equals else key in pod.labels


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def status_line(view: ClusterView) -> str:
    """Given a view, return one line that says how the cluster fares."""
    states = Counter(gpu.state.value for gpu in view.gpus)
    counts = " ".join(f"{state}={count}" for state, count in sorted(states.items())) or "none"
    unseen = ",".join(source.name for source in view.sources if not source.ok) or "-"
    return f"nodes={len(view.nodes)} pods={len(view.pods)} gpus: {counts} unseen={unseen}"
