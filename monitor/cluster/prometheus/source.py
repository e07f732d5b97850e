"""Node facts from a metrics store that scrapes the agents, instead of polling each agent: for large clusters.

A round queries which agents are scraped and when; then it queries the series of those with a new scrape, in batches.
The time of a fact is the time of the scrape. A store that does not answer is one problem, not a thousand silent agents:
the state of all agents is unknown then, and `source` says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from monitor.base.threads import Periodic
from monitor.cluster.agents.poller import Targets
from monitor.cluster.prometheus import query as promql
from monitor.cluster.prometheus.client import MetricStore, StoreAnswer, StoreError, StoreSettings
from monitor.cluster.prometheus.series.rebuild import FAST_FAMILIES, SLOW_FAMILIES, SeriesError, merge, rebuild
from monitor.cluster.prometheus.targets import (
    NEVER,
    ScrapeState,
    any_up,
    heard,
    newest_scrapes,
    nodes_of,
    one_per_node,
    samples_of,
    unheard,
    why_unheard,
)
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.node import NodeSnapshot

log = logging.getLogger(__name__)
SOURCE = "prometheus"
SETTLE_SECONDS = 1.0  # a scrape younger than this may be visible in part
SLOW_PARTS_SECONDS = 60.0  # between queries for images and the like
KNOWN_AGENTS_SECONDS = 60.0  # between queries for the agents of the last hour
MAX_BATCH_NODES = 40  # agents per query: 25,000 series, 15 MB


@dataclass(frozen=True)
class PrometheusSettings:
    """Store and query interval. `selector` restricts queries to the agents of this cluster."""

    store: StoreSettings
    interval: float
    selector: str = ""


class PrometheusNodes:
    """Keeps an `AgentFact` for each node, as the poller of agents does."""

    def __init__(
        self,
        settings: PrometheusSettings,
        targets: Callable[[], Targets] = dict,
        on_answer: Callable[[AgentFact], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._targets = targets
        self._on_answer = on_answer
        self._now = now
        self._store = MetricStore(settings.store)
        self._by_instance: dict[str, AgentFact] = {}
        self._by_node: dict[str, AgentFact] = {}
        self._slow: dict[str, tuple[float, NodeSnapshot]] = {}  # by instance: time of the query, and the slow parts
        self._known: tuple[float, dict[str, str]] = (float("-inf"), {})
        self._batch = MAX_BATCH_NODES
        self._source = SourceView(name=SOURCE, ok=False, why="starting")
        self._lock = threading.Lock()
        self._queried = threading.Event()
        self._loop = Periodic("agent-metrics", self._run_once, settings.interval)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Start no further query; the current one ends within its time limit."""
        self._loop.stop()
        self._queried.set()

    def facts(self) -> tuple[AgentFact, ...]:
        """Facts of all agents, sorted by node."""
        with self._lock:
            return tuple(self._by_node[node] for node in sorted(self._by_node))

    def update_targets(self) -> None:
        """Wait for the first query: until then the agents are unknown."""
        self._queried.wait(self._settings.store.limit)

    def source(self) -> SourceView:
        """Health of the store."""
        return self._source

    def _run_once(self) -> float:
        began = time.monotonic()
        try:
            self.query()
        finally:
            self._queried.set()
        return max(0.0, began + self._settings.interval - time.monotonic())

    def query(self) -> None:
        """Query the store once, and update all facts."""
        now = self._now()
        fresh: dict[str, AgentFact] = {}
        try:
            state, missing = self._scrape_state(now)
            for facts in self._read(state, now):
                fresh |= facts
        except StoreError as error:
            if self._source.ok:
                log.warning("metrics store: %s", error)
            agents = {
                instance: fresh.get(instance) or unheard(fact, instance, fact.node, str(error), now)
                for instance, fact in self._by_instance.items()
            }
            self._publish({**agents, **fresh}, str(error), now)
            self._note(str(error), now)
            return
        self._publish(self._all(state, fresh, missing, now), missing or NEVER, now)
        self._note(f"its answer is not complete: {missing}" if missing else None, now)

    def _scrape_state(self, now: float) -> tuple[ScrapeState, str | None]:
        """Scrape state of all agents, and which part of it the store could not determine."""
        selector, at = self._settings.selector, now - SETTLE_SECONDS
        up = self._store.query(promql.agents_up(selector), at)
        scraped = self._store.query(promql.agents_scraped(selector), at)
        missing = up.missing or scraped.missing
        if now - self._known[0] >= KNOWN_AGENTS_SECONDS:
            known = self._store.query(promql.agents_known(selector), at)
            self._known = (now, nodes_of(known.series))
            missing = missing or known.missing
        return ScrapeState(any_up(up.series), newest_scrapes(scraped.series), self._known[1]), missing

    def _read(self, state: ScrapeState, now: float) -> Iterator[dict[str, AgentFact]]:
        """Facts of the agents with a new scrape, in batches. Raise StoreError."""
        waiting = sorted(name for name, scrape in state.scrapes.items() if self._is_new(name, scrape.at))
        while waiting and not self._loop.stopping:
            batch = waiting[: self._batch]
            try:
                yield self._read_batch(batch, state, now)
            except StoreError as error:
                if not error.too_much or len(batch) == 1:
                    raise
                self._batch = max(1, len(batch) // 2)
                continue
            waiting = waiting[len(batch) :]

    def _is_new(self, instance: str, scraped_at: float) -> bool:
        before = self._by_instance.get(instance)
        return before is None or before.received_at is None or scraped_at > before.received_at

    def _read_batch(self, batch: Sequence[str], state: ScrapeState, now: float) -> dict[str, AgentFact]:
        due = [name for name in batch if name not in self._slow or now - self._slow[name][0] >= SLOW_PARTS_SECONDS]
        for name, snapshot in self._snapshots(due, SLOW_FAMILIES, state, now).items():
            if isinstance(snapshot, NodeSnapshot):
                self._slow[name] = (now, snapshot)
        facts = {}
        for name, snapshot in self._snapshots(batch, FAST_FAMILIES, state, now).items():
            before = self._by_instance.get(name)
            if isinstance(snapshot, NodeSnapshot):
                whole = merge(snapshot, self._slow[name][1] if name in self._slow else None)
                facts[name] = heard(before, name, whole, state.scrapes[name].at)
            else:
                facts[name] = unheard(before, name, state.nodes.get(name), str(snapshot), now)
        return facts

    def _snapshots(
        self, instances: Sequence[str], families: Sequence[str], state: ScrapeState, now: float
    ) -> dict[str, NodeSnapshot | SeriesError]:
        """Snapshot of each instance, or why its series make none."""
        if not instances:
            return {}
        expression = promql.families(families, instances, self._settings.selector)
        answer: StoreAnswer = self._store.query(expression, now - SETTLE_SECONDS)
        snapshots: dict[str, NodeSnapshot | SeriesError] = {}
        for name, samples in samples_of(answer.series, {name: state.scrapes[name] for name in instances}).items():
            try:
                snapshots[name] = rebuild(samples)
            except SeriesError as error:
                snapshots[name] = error
        return snapshots

    def _all(
        self, state: ScrapeState, fresh: dict[str, AgentFact], missing: str | None, now: float
    ) -> dict[str, AgentFact]:
        """Facts of all agents: with a new scrape, without one, and silent."""
        agents = dict(fresh)
        for name in state.instances | (self._by_instance.keys() if missing else set()):
            before, why = self._by_instance.get(name), why_unheard(state, name)
            if name in fresh:
                continue
            if why is not None:
                agents[name] = unheard(before, name, state.nodes.get(name), missing or why, now)
            elif before is not None:
                agents[name] = before if before.silent_since is None else heard(before, name, None, 0.0)
        return agents

    def _addresses(self) -> dict[str, str]:
        """Addresses of the agents that Kubernetes knows, by node."""
        return {node: target for target, node in self._targets().items() if node is not None}

    def _publish(self, agents: dict[str, AgentFact], unseen: str, now: float) -> None:
        before = self._by_node
        by_node = one_per_node(agents.values(), self._addresses(), before, unseen, now)
        with self._lock:
            self._by_instance, self._by_node = agents, by_node
        self._slow = {name: parts for name, parts in self._slow.items() if name in agents}
        for node, fact in by_node.items():
            if fact is not before.get(node):
                self._on_answer(fact)

    def _note(self, why: str | None, now: float) -> None:
        source = SourceView(name=SOURCE, ok=why is None, why=why)
        if why is not None:
            since = self._source.since if self._source.since is not None else now
            source = msgspec.structs.replace(source, since=since)
        self._source = source
