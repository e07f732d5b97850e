"""Node facts out of a metrics store that scrapes the agents, instead of asking each agent: for large clusters.

A look asks which agents are scraped and when each last was; of those with news it asks for the series, some agents at a
time. What is old in the store is old here: the time of a fact is the time of the scrape. A store that does not answer
is one trouble, not a thousand silent agents: every agent is then out of sight, and `source` says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from monitor.cluster.agents.poller import Targets
from monitor.cluster.prometheus import query as ask
from monitor.cluster.prometheus.client import StoreAnswer, MetricStore, StoreError, StoreSettings
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
SETTLE_SECONDS = 1.0  # what was scraped in this last second may be visible in part
SLOW_PARTS_SECONDS = 60.0  # how often images and the like are asked for
KNOWN_AGENTS_SECONDS = 60.0  # how often it is asked who was an agent of late
MAX_BATCH_NODES = 40  # agents in one question: 25,000 series, 15 MB


@dataclass(frozen=True)
class PrometheusSettings:
    """Which store is asked, and how often. `selector` narrows it down to the agents of this cluster."""

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
        self._slow: dict[str, tuple[float, NodeSnapshot]] = {}  # by instance: when asked, and the slow parts
        self._known: tuple[float, dict[str, str]] = (float("-inf"), {})
        self._batch = MAX_BATCH_NODES
        self._source = SourceView(name=SOURCE, ok=False, why="starting")
        self._lock = threading.Lock()
        self._looked = threading.Event()
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to ask."""
        threading.Thread(target=self._keep_asking, name="agent-metrics", daemon=True).start()

    def stop(self) -> None:
        """Ask nothing any more; what is being asked ends within its time limit."""
        self._stopping.set()
        self._looked.set()

    def facts(self) -> tuple[AgentFact, ...]:
        """Return what is known of every agent, in a stable order."""
        with self._lock:
            return tuple(self._by_node[node] for node in sorted(self._by_node))

    def update_targets(self) -> None:
        """Return when the store was asked for the first time: before that, nobody knows which agents there are."""
        self._looked.wait(self._settings.store.limit)

    def source(self) -> SourceView:
        """Return whether the store can be asked, and why not."""
        return self._source

    def _keep_asking(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self.look()
            except Exception:  # whatever an odd answer provokes, the next may be better
                log.exception("asking the metrics store")
            self._looked.set()
            self._stopping.wait(max(0.0, began + self._settings.interval - time.monotonic()))
        self._store.close()

    def look(self) -> None:
        """Ask once, and note what is known after that."""
        now = self._now()
        fresh: dict[str, AgentFact] = {}
        try:
            seen, missing = self._see(now)
            for heard_of in self._read(seen, now):
                fresh |= heard_of
        except StoreError as error:
            if self._source.ok:
                log.warning("the metrics store: %s", error)
            agents = {
                instance: fresh.get(instance) or unheard(fact, instance, fact.node, str(error), now)
                for instance, fact in self._by_instance.items()
            }
            self._publish({**agents, **fresh}, str(error), now)
            self._note(str(error), now)
            return
        self._publish(self._all(seen, fresh, missing, now), missing or NEVER, now)
        self._note(f"its answer is not complete: {missing}" if missing else None, now)

    def _see(self, now: float) -> tuple[ScrapeState, str | None]:
        """Ask which agents there are; return that, and what the store could not see itself."""
        selector, at = self._settings.selector, now - SETTLE_SECONDS
        up = self._store.query(ask.agents_up(selector), at)
        scraped = self._store.query(ask.agents_scraped(selector), at)
        missing = up.missing or scraped.missing
        if now - self._known[0] >= KNOWN_AGENTS_SECONDS:
            known = self._store.query(ask.agents_known(selector), at)
            self._known = (now, nodes_of(known.series))
            missing = missing or known.missing
        return ScrapeState(any_up(up.series), newest_scrapes(scraped.series), self._known[1]), missing

    def _read(self, seen: ScrapeState, now: float) -> Iterator[dict[str, AgentFact]]:
        """Yield what the agents with news say, some at a time. Raise StoreError."""
        waiting = sorted(name for name, scrape in seen.scrapes.items() if self._is_news(name, scrape.at))
        while waiting and not self._stopping.is_set():
            batch = waiting[: self._batch]
            try:
                yield self._read_batch(batch, seen, now)
            except StoreError as error:
                if not error.too_much or len(batch) == 1:
                    raise
                self._batch = max(1, len(batch) // 2)
                continue
            waiting = waiting[len(batch) :]

    def _is_news(self, instance: str, scraped_at: float) -> bool:
        before = self._by_instance.get(instance)
        return before is None or before.received_at is None or scraped_at > before.received_at

    def _read_batch(self, batch: Sequence[str], seen: ScrapeState, now: float) -> dict[str, AgentFact]:
        due = [name for name in batch if name not in self._slow or now - self._slow[name][0] >= SLOW_PARTS_SECONDS]
        for name, snapshot in self._snapshots(due, SLOW_FAMILIES, seen, now).items():
            if isinstance(snapshot, NodeSnapshot):
                self._slow[name] = (now, snapshot)
        found = {}
        for name, snapshot in self._snapshots(batch, FAST_FAMILIES, seen, now).items():
            before = self._by_instance.get(name)
            if isinstance(snapshot, NodeSnapshot):
                whole = merge(snapshot, self._slow[name][1] if name in self._slow else None)
                found[name] = heard(before, name, whole, seen.scrapes[name].at)
            else:
                found[name] = unheard(before, name, seen.nodes.get(name), str(snapshot), now)
        return found

    def _snapshots(
        self, instances: Sequence[str], families: Sequence[str], seen: ScrapeState, now: float
    ) -> dict[str, NodeSnapshot | SeriesError]:
        """Ask for the series of some agents, and return what they make, or why they make nothing."""
        if not instances:
            return {}
        question = ask.families(families, instances, self._settings.selector)
        answer: StoreAnswer = self._store.query(question, now - SETTLE_SECONDS)
        found: dict[str, NodeSnapshot | SeriesError] = {}
        for name, samples in samples_of(answer.series, {name: seen.scrapes[name] for name in instances}).items():
            try:
                found[name] = rebuild(samples)
            except SeriesError as error:
                found[name] = error
        return found

    def _all(self, seen: ScrapeState, fresh: dict[str, AgentFact], missing: str | None, now: float) -> dict[str, AgentFact]:
        """Return every agent: those with news, those without, and those of which nothing is heard."""
        agents = dict(fresh)
        for name in seen.instances | (self._by_instance.keys() if missing else set()):
            before, why = self._by_instance.get(name), why_unheard(seen, name)
            if name in fresh:
                continue
            if why is not None:
                agents[name] = unheard(before, name, seen.nodes.get(name), missing or why, now)
            elif before is not None:
                agents[name] = before if before.silent_since is None else heard(before, name, None, 0.0)
        return agents

    def _addresses(self) -> dict[str, str]:
        """Return where Kubernetes knows agents, by node."""
        return {node: target for target, node in self._targets().items() if node is not None}

    def _publish(self, agents: dict[str, AgentFact], unseen: str, now: float) -> None:
        before = self._by_node
        by_node = one_per_node(agents.values(), self._addresses(), before, unseen, now)
        with self._lock:
            self._by_instance, self._by_node = agents, by_node
        self._slow = {name: kept for name, kept in self._slow.items() if name in agents}
        for node, fact in by_node.items():
            if fact is not before.get(node):
                self._on_answer(fact)

    def _note(self, why: str | None, now: float) -> None:
        source = SourceView(name=SOURCE, ok=why is None, why=why)
        if why is not None:
            since = self._source.since if self._source.since is not None else now
            source = msgspec.structs.replace(source, since=since)
        self._source = source
