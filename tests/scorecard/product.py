"""The product on a simulated cluster: everything between watch events and messages is the real code.

One loop replaces threads and sockets: agents are polled and services probed at their scheduled times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from monitor.alert.dispatcher import next_state
from monitor.alert.inhibition import inhibition
from monitor.alert.lifecycle import GROUP_BY, advance
from monitor.alert.message.compose import compose
from monitor.alert.message.locale import Locale
from monitor.alert.model import Alert, AlertState, Batch, Notification
from monitor.alert.notify import decide
from monitor.alert.routes import NotifyPolicy, Route
from monitor.cluster.agents.poller import MAX_SKIPPED_INTERVALS, _failed
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import all_rules, required_fields
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewChanges
from monitor.config.agent import CollectorsConfig
from monitor.config.alerts import AlertsConfig
from monitor.config.daemon import AgentsConfig, DaemonConfig
from monitor.config.services import ServiceConfig
from monitor.daemon.evaluator import EvaluatorSettings
from monitor.detect.base import Limits, Rule, RuleContext
from monitor.detect.engine import Engine
from monitor.detect.meta.monitor import MonitorState, with_monitor_findings
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import SourceFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.services import ServiceFact
from monitor.kube.decode import stream
from monitor.sim.snapshot import snapshot
from tests.scorecard.record import Record
from tests.scorecard.scene import NODES, Scene

LOOK = EvaluatorSettings(state="").interval
POLL = AgentsConfig().interval
CYCLE = DaemonConfig().cycle
PROBE = float(ServiceConfig.model_fields["interval"].default)
# Collector intervals; collectors with five seconds are fresh in every response.
READ: dict[str, float] = {
    name: interval
    for name in ("pod_devices", "containers", "container_usage", "shm", "logs", "disk", "disk_io", "mounts", "images",
                 "runtime_usage", "probes", "host")
    if (interval := getattr(CollectorsConfig(), name).interval)
}  # fmt: skip
EVENTS_KEPT = 3600.0  # set by the API server
POLICY = NotifyPolicy(routes=(Route(receivers=("ops",)),), cluster="scorecard")
GROUP_WAIT = POLICY.routes[0].group_wait
PLATFORMS = all_rules()
KINDS: dict[str, stream.ObjectKind[Any]] = {
    "pods": stream.pods(required_fields(PLATFORMS)),
    "nodes": stream.NODES,
    "events": stream.EVENTS,
    "resourcequotas": stream.QUOTAS,
    "queues.scheduling.volcano.sh": stream.VOLCANO_QUEUES,
}


class Kube:
    """The API server's data through its watches: frozen while it is down, caught up afterwards."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._lines: deque[tuple[str, bytes]] = deque()
        self.facts: dict[str, dict[str, Any]] = {plural: {} for plural in KINDS}
        self._down_since: float | None = None
        for plural in KINDS:
            scene.objects.watch(plural, lambda line, plural=plural: self._lines.append((plural, line)))  # type: ignore[misc]  # of defaults mypy infers nothing

    def follow(self) -> ViewChanges:
        """Process new watch events and return the changes relevant to the view."""
        pods: dict[str, Any] = {}
        nodes: dict[str, Any] = {}
        if not self._scene.api_up:
            self._down_since = self._down_since or self._scene.clock.now
            return ViewChanges()
        self._down_since = None
        while self._lines:
            plural, line = self._lines.popleft()
            event = KINDS[plural].line(line)
            assert event.fact is not None, event.problem
            fact = None if event.type == "DELETED" else event.fact
            if fact is None:
                self.facts[plural].pop(event.fact.uid, None)
            else:
                self.facts[plural][fact.uid] = fact
            if plural == "pods":
                pods[event.fact.uid] = fact
            elif plural == "nodes":
                nodes[event.fact.name] = fact
        oldest = self._scene.clock.now - EVENTS_KEPT
        self.facts["events"] = {uid: each for uid, each in self.facts["events"].items() if each.last_at >= oldest}
        return ViewChanges(pods=pods, nodes=nodes)

    def sources(self) -> tuple[SourceFact, ...]:
        """State of each watched kind."""
        state = "synced" if self._down_since is None else "stale"
        said = None if self._down_since is None else "connection refused"
        return tuple(
            SourceFact(resource=plural, state=state, stale_since=self._down_since, last_error=said) for plural in KINDS
        )


class Reading:
    """Last values of an agent's collectors, each read at its own interval."""

    def __init__(self, number: int) -> None:
        self._phase = number * 3.7  # nodes did not start in the same second
        self._parts: dict[str, tuple[float, Any]] = {}

    def answer(self, fresh: NodeSnapshot) -> NodeSnapshot:
        """The agent's response for the current state of its node."""
        for name, interval in READ.items():
            turn = (fresh.at - self._phase) // interval
            if self._parts.get(name, (-1.0, None))[0] != turn:
                self._parts[name] = turn, getattr(fresh, name)
        return msgspec.structs.replace(fresh, **{name: value for name, (_, value) in self._parts.items()})


class Agents:
    """The agents, each polled at its own offset in every interval; a silent one does not respond."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._readings = [Reading(number) for number in range(NODES)]
        self._facts: dict[str, AgentFact] = {}
        self._due: dict[str, float] = {}

    def ask(self) -> tuple[AgentFact, ...]:
        """Poll the agents that are due and return new responses."""
        now, news = self._scene.clock.now, []
        for number, node in enumerate(self._scene.nodes):
            if now < self._due.get(node.name, 0.0):
                continue
            before = self._facts.get(node.name) or AgentFact(target=f"{node.address}:9835", node=node.name)
            if node.answering:
                said = self._readings[number].answer(snapshot(node, now))
                fact = AgentFact(target=before.target, node=node.name, snapshot=said, received_at=now)
            else:
                fact = _failed(before, now, "connection refused")
            self._facts[node.name] = fact
            phase = number * POLL / len(self._scene.nodes)
            moments = min(max(1, fact.failures - 1), MAX_SKIPPED_INTERVALS)
            self._due[node.name] = now - (now - phase) % POLL + moments * POLL
            news.append(fact)
        return tuple(news)

    def facts(self) -> tuple[AgentFact, ...]:
        return tuple(self._facts.values())


class Probes:
    """The daemon's probes of services."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._facts: dict[str, ServiceFact] = {}

    def facts(self) -> tuple[ServiceFact, ...]:
        """Probe the services that are due and return all facts."""
        now = self._scene.clock.now
        for service in self._scene.services.values():
            before = self._facts.get(service.name)
            if before is not None and now - before.at < PROBE:
                continue
            began = before.failing_since if before is not None and before.failing_since is not None else now
            self._facts[service.name] = ServiceFact(
                name=service.name,
                kind=service.kind,
                target=service.target,
                at=now,
                ok=service.failure is None,
                failing_since=began if service.failure else None,
                **(service.failure or {}),
            )
        return tuple(self._facts.values())


class Product:
    """Evaluates a scene. Create it before populating the scene, so that it sees every event."""

    def __init__(
        self, scene: Scene, rules: Sequence[Rule] = RULES, limits: Mapping[str, Limits[Any]] | None = None
    ) -> None:
        self._scene = scene
        self._rules, self._limits = rules, limits or {}
        self._kube, self._agents, self._probes = Kube(scene), Agents(scene), Probes(scene)
        self._builder = ViewBuilder(lambda pod: identify(pod, no_owners, PLATFORMS, {}))
        self._engine = Engine(self._rules, self._limits)
        self._timings = AlertsConfig().rules.timings()
        self._book = AlertState()
        self._started_at = scene.clock.now
        self._joined_at = 0.0
        self.record = Record()

    def look(self) -> None:
        """Evaluate once and send notifications."""
        now = self._scene.clock.now
        situation = self._situation(now)
        found = self._engine.evaluate(situation)
        sight = MonitorState(
            started_at=self._started_at,
            looked_at=now,
            sources=situation.facts.sources,
            agents=tuple(situation.facts.agents),
        )
        alerts = advance(
            self._book.alerts, with_monitor_findings(found, sight, now), self._timings, GROUP_BY, now
        )  # fmt: skip
        self.record.looks += 1
        self.record.note(alerts, now)
        self._note_causes(alerts, now)
        self._book = AlertState(alerts, self._book.notification_log)
        for moment in (now, now + GROUP_WAIT):
            self._tell(moment)

    def _situation(self, now: float) -> RuleContext:
        kube, news = self._kube.follow(), self._agents.ask()
        agents, sources = self._agents.facts(), self._kube.sources()
        facts = self._kube.facts
        around = ClusterContext(
            queues=tuple(facts["queues.scheduling.volcano.sh"].values()),
            sources=(*kube_sources(sources), *agent_sources(agents)),
            pods_known=self._scene.api_up,
        )
        due = now - self._joined_at >= CYCLE
        self._joined_at = now if due else self._joined_at
        again = frozenset(self._builder.node_names) if due else frozenset()
        changes = ViewChanges(pods=kube.pods, nodes=kube.nodes, agents=news, again=again, around=around)
        view = self._builder.update(changes, now).view()
        world = make_cluster_facts(
            pods=facts["pods"].values(),
            nodes=facts["nodes"].values(),
            events=facts["events"].values(),
            quotas=facts["resourcequotas"].values(),
            queues=around.queues,
            identities={pod.uid: pod.identity for pod in view.pods},
            agents=agents,
            view=view,
        )
        own = tuple(self._scene.own_deletions)
        return RuleContext(facts=world, now=now, services=self._probes.facts(), own_deletions=own)

    def _note_causes(self, alerts: Mapping[str, Alert], now: float) -> None:
        """Record which firing alerts are inhibited because another explains them."""
        for own, root in inhibition(alerts, POLICY.linger, now).causes.items():
            if own in self.record.firing:
                self.record.firing[own].explained_by = alerts[root].finding.key

    def _tell(self, now: float) -> None:
        decision = decide(self._book, POLICY, now)
        for notification in decision.notifications:
            self.record.tell(notification, now)
            for title in _read(notification):
                assert title
        self._book = next_state(self._book.alerts, self._book, decision)


def _read(notification: Notification) -> Iterator[str]:
    """Title of a message in both languages; untranslatable messages fail here."""
    parcel = Batch(
        id=notification.id, receiver=notification.receiver, notifications=(notification,), at=notification.at
    )  # fmt: skip
    msgspec.json.encode(parcel)  # in the outbox format
    for lang in ("en", "zh"):
        yield compose(parcel, Locale(lang)).title
