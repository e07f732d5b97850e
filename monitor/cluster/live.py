"""Live view of the cluster: watches Kubernetes, polls the agents, and keeps the joined view up to date.

Either source may be missing: without Kubernetes the nodes are still seen, without agents the pods are. `sources` of the
view says what is missing and since when. A changed pod or node is in the view within milliseconds, a new fact of an
agent within half a second; every node is joined again once per cycle, because states also change with time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from monitor.base.state_problems import StateProblem
from monitor.base.threads import Periodic
from monitor.cluster.agents.poller import CLOCK_STEP_SECONDS, AgentPoller, PollSettings, Targets
from monitor.cluster.agents.targets import AgentPods
from monitor.cluster.facts_feed import FactsUpdate
from monitor.cluster.failures import nodes_with_new_failures
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.pending import PendingChanges
from monitor.cluster.platforms import ALSO_REQUIRED, PlatformRule, required_fields
from monitor.cluster.rejoin import RejoinSchedule
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.cluster.view import ViewBuilder, ViewMemory
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.cluster.view_memory import ViewMemoryFile
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.devices import DeviceFacts
from monitor.facts.facts_index import SmallFacts
from monitor.facts.kube import NodeFact, OwnerFact, PodFact
from monitor.kube.client import KubeApi
from monitor.kube.informers import KubeInformers
from monitor.kube.store import ObjectChange

log = logging.getLogger(__name__)
COALESCE_SECONDS = 0.02  # changes that arrive together are joined together
IDLE_WAIT_SECONDS = 0.5  # between updates without a change in Kubernetes
SOURCE_CHECK_SECONDS = 1.0
UNSEEN_RETENTION_SECONDS = 600.0  # after a start, until when a node may return with its former state
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class ClusterSettings:
    """Sources and parameters of the view. `state` is the directory of state that survives restarts; None: none does."""

    poll: PollSettings
    agents: tuple[str, ...]
    agent_label: str
    agent_port: int
    resource: str
    limits: StateLimits
    rules: tuple[PlatformRule, ...]
    cycle: float
    state: str | None = None
    agent_namespace: str | None = None  # of the agents' pods; None: any
    annotations: tuple[str, ...] = ()  # of pods, besides those that the rules read
    job_ends: bool = False  # whether to read how Jobs end, and to keep the last versions of pods


class LiveCluster:
    """View of Kubernetes and the agents. `no_kubernetes` says why there is no API server, if so."""

    def __init__(self, settings: ClusterSettings, api: KubeApi | None, no_kubernetes: str | None = None) -> None:
        self._settings = settings
        self._no_kubernetes = no_kubernetes
        self.api = api
        self._pending = PendingChanges(self._node_named, keep_gone=settings.job_ends)
        self._agent_pods = AgentPods(settings.agent_label, settings.agent_port, settings.agent_namespace)
        self.kube = (
            KubeInformers(
                api,
                required_fields(settings.rules, (*ALSO_REQUIRED, *settings.annotations)),
                on_change=self._kube_changed,
                job_ends=settings.job_ends,
            )
            if api
            else None
        )
        self.poller = AgentPoller(settings.poll, self._targets, on_answer=self._pending.note_agent)
        self._file = ViewMemoryFile(settings.state) if settings.state is not None else None
        self._builder = self._make_builder(self._file.load() if self._file else None)
        self._forget_at = time.monotonic() + UNSEEN_RETENTION_SECONDS
        self._namespace_owners: tuple[int, dict[str, str]] = (-1, {})  # version of the namespaces, and their owners
        self._building = threading.RLock()
        self._schedule = RejoinSchedule(settings.cycle)
        self._incomplete = False  # whether the last update failed
        self._loop = Periodic("view", self._run_once, IDLE_WAIT_SECONDS)
        self._context = ClusterContext()
        self._clock_offset = self.poller.clock_offset()
        self._check_sources_at = 0.0
        self._versions = count(1)
        self._version = 0  # assigned from a counter: two threads never set the same value
        self._view: tuple[int, ClusterView] = (-1, ClusterView(at=time.time()))
        self._overview = self._view

    def start(self) -> None:
        if self.kube:
            self.kube.start()
        self.poller.start()
        self._loop.start()
        if self._file:
            self._file.start(self._current_memory)

    def stop(self) -> None:
        self._loop.stop()
        self.poller.stop()
        if self._file:
            self._file.stop()
        if self.kube:
            self.kube.stop()

    @property
    def version(self) -> int:
        """Grows with every change of the facts."""
        return self._version

    @property
    def sources(self) -> tuple[SourceView, ...]:
        """Which sources can be observed."""
        return self._context.sources

    @property
    def view(self) -> ClusterView:
        """The joined view; the same object until something changes."""
        version, view = self._view
        if version == self._version:
            return view
        with self._building:
            self._view = self._version, self._builder.view()
            return self._view[1]

    @property
    def overview(self) -> ClusterView:
        """The joined view with only those pods that are not scheduled yet."""
        version, view = self._overview
        if version == self._version:
            return view
        with self._building:
            self._overview = self._version, self._builder.overview()
            return self._overview[1]

    def take_update(self) -> FactsUpdate:
        """What has changed since the last call; everything at the first. For one caller only."""
        with self._building:
            self._follow_clock()
            changes, nodes, pods = self._builder.take_changes()
            events = self._pending.take_events()
            context = self._context
        kube = self.kube
        if kube is None:
            return FactsUpdate(changes, nodes, pods, {}, SmallFacts(sources=context.sources))
        if changes.complete:
            events = {event.uid: event for event in kube.events.snapshot().items}
        small = SmallFacts(
            sources=context.sources,
            queues=context.queues,
            quotas=kube.quotas.snapshot().items,
            pod_groups=kube.pod_groups.snapshot().items,
            workloads=kube.workloads.snapshot().items,
            devices=context.devices,
        )
        return FactsUpdate(changes, nodes, pods, events, small)

    def take_gone_pods(self) -> dict[str, PodFact]:
        """Last versions of the pods that have gone since the last call. For one caller only."""
        return self._pending.take_gone()

    def owner(self, uid: str) -> OwnerFact | None:
        """The ReplicaSet or Job with this uid."""
        return self.kube.owner(uid) if self.kube is not None else None

    def _follow_clock(self) -> None:
        """Move the times of all agents with a step of the clock, which must not count as silence."""
        offset = self.poller.clock_offset()
        if abs(offset - self._clock_offset) >= CLOCK_STEP_SECONDS:
            self._clock_offset = offset
            self._builder.update(ViewChanges(agents=self.poller.facts()), time.time())

    @property
    def state_problem(self) -> StateProblem | None:
        """Why the state of the view is not written; None if it is."""
        return self._file.problem if self._file is not None else None

    def answered_once(self) -> bool:
        """Whether every watched resource is synced or unavailable, and every agent has answered or failed once."""
        if self.kube is not None and not self.kube.wait_settled(0.0):
            return False
        self.poller.update_targets()
        return self.poller.answered_once()

    def wait_settled(self, seconds: float) -> None:
        """Wait until every source has answered once, at most `seconds`, and build the view."""
        deadline = time.monotonic() + seconds
        if self.kube:
            self.kube.wait_settled(seconds)
        while not self.answered_once() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        self.refresh()

    def refresh(self) -> ClusterView:
        """Build the view from the current facts of Kubernetes and the agents."""
        with self._building:
            self._pending.take()
            self._apply_owner_changes()
            kube, agents = self.kube, self.poller.facts()
            self._context = self._read_context(agents)
            inputs = ViewInputs(
                agents=agents,
                pods=kube.pods.snapshot().items if kube else (),
                nodes=kube.nodes.snapshot().items if kube else (),
                around=self._context,
            )
            self._builder.build(inputs, time.time())
            self._version = next(self._versions)
            return self.view

    def catch_up(self) -> None:
        """Bring the view up to date with everything that is known now, also with agents that have yet to answer."""
        with self._building:
            for fact in self.poller.facts():
                if fact.target not in self._builder.targets:
                    self._pending.note_new_agent(fact)
            self._apply_owner_changes()
            self._check_sources_at = 0.0
            self._update()

    def _read_context(self, facts: Sequence[AgentFact]) -> ClusterContext:
        agents = agent_sources(facts)
        if self.kube is None:
            return ClusterContext(sources=(*kube_sources(None, self._no_kubernetes), *agents))
        sources = self.kube.sources()
        return ClusterContext(
            queues=self.kube.queues(),
            sources=(*kube_sources(sources), *agents),
            pods_known=any(source.resource == "pods" and source.state == "synced" for source in sources),
            devices=self.kube.devices(),
        )

    def fetch_agent(self, node: str) -> AgentFact | None:
        """Latest fact of a node's agent."""
        return next((fact for fact in self.poller.facts() if fact.node == node), None)

    def joined_objects(self) -> tuple[tuple[PodFact, ...], tuple[NodeFact, ...]]:
        """Pods and nodes of Kubernetes, with the GPUs of claims and of DRA drivers."""
        with self._building:
            return self._builder.pods, self._builder.nodes

    @property
    def devices(self) -> DeviceFacts:
        """Claims, slices and device classes of Dynamic Resource Allocation."""
        return self._context.devices

    def identities(self) -> dict[str, Identity]:
        """Identities of all pods, by uid."""
        with self._building:
            return self._builder.identities

    def _identify(self, pod: PodFact) -> Identity:
        if self.kube is None:
            return identify(pod, no_owners, self._settings.rules, {})
        version = self.kube.namespaces.version
        if version != self._namespace_owners[0]:
            self._namespace_owners = (version, self.kube.namespace_owners())
        return identify(pod, self.kube.owner, self._settings.rules, self._namespace_owners[1])

    def _apply_owner_changes(self) -> None:
        """Identify pods again whose ReplicaSet, Job or namespace became known after them."""
        owners = self._pending.take_owners()
        if owners:
            self._builder.identify_again(owners)

    def _targets(self) -> Targets:
        """Configured agents, else the running pods with the agent label."""
        agents = self._settings.agents
        return dict.fromkeys(agents) if agents or self.kube is None else self._agent_pods.targets()

    def _kube_changed(self, resource: str, changes: Sequence[ObjectChange[Any]]) -> None:
        if resource == "pods":
            self._agent_pods.note(changes)
        was_urgent = self._pending.urgent
        self._pending.note(resource, changes)
        if resource == "events":
            self._version = next(self._versions)
        elif self._pending.urgent and not was_urgent:
            self._loop.wake()

    def _node_named(self, name: str) -> NodeFact | None:
        nodes = self.kube.nodes.snapshot().items if self.kube else ()
        return next((node for node in nodes if node.name == name), None)

    def _run_once(self) -> None:
        if self._pending.urgent:
            time.sleep(COALESCE_SECONDS)
        self._update()

    def _rebuild(self) -> None:
        """Build the view with a new builder: one that failed has lost changes and may be inconsistent."""
        self._builder = self._make_builder(self._builder.memory)
        self.refresh()

    def _make_builder(self, memory: ViewMemory | None = None) -> ViewBuilder:
        return ViewBuilder(self._identify, self._settings.resource, self._settings.limits, memory)

    def _current_memory(self) -> ViewMemory:
        with self._building:
            if time.monotonic() >= self._forget_at:
                self._builder.forget_unseen()
                self._forget_at = float("inf")
            return self._builder.memory

    def _update(self) -> None:
        """Apply pending changes, and join some nodes again: all once per cycle, so that no change has to wait."""
        with self._building:
            incomplete, self._incomplete = self._incomplete, True
            if incomplete:
                self._rebuild()
            changes, now = self._pending.take(), time.monotonic()
            heard = frozenset(agent.node for agent in changes.agents if agent.node)
            again, new_cycle = self._schedule.due(self._builder.node_names, heard, now)
            changes = replace(changes, again=again)
            if new_cycle:
                self._apply_owner_changes()
            if new_cycle or now >= self._check_sources_at:
                self._check_sources_at = now + SOURCE_CHECK_SECONDS
                changes = self._with_source_changes(changes, new_cycle)
            if changes:
                self.poller.hasten(nodes_with_new_failures(changes.pods.values(), time.time()))
                self._builder.update(changes, time.time())
                self._version = next(self._versions)
            self._incomplete = False
            if new_cycle:
                log.info("%s", status_line(self.view))

    def _with_source_changes(self, changes: ViewChanges, always: bool) -> ViewChanges:
        """Changes with those that no event reports: sources that became available or not, and agents that are gone."""
        facts = self.poller.facts()
        before, self._context = self._context, self._read_context(facts)
        changes = replace(changes, gone=frozenset(self._builder.targets - {fact.target for fact in facts}))
        if self._context.pods_known != before.pods_known:  # affects the fate of every holder
            changes = replace(changes, again=frozenset(self._builder.node_names))
        return replace(changes, around=self._context) if always or self._context != before else changes


def status_line(view: ClusterView) -> str:
    """One-line summary of a view for the log."""
    states = Counter(gpu.state.value for gpu in view.gpus)
    counts = " ".join(f"{state}={count}" for state, count in sorted(states.items())) or "none"
    unseen = ",".join(source.name for source in view.sources if not source.ok) or "-"
    return f"nodes={len(view.nodes)} pods={len(view.pods)} gpus: {counts} unseen={unseen}"
