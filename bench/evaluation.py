"""Evaluation of the same changes in clusters of 500 and of 5,000 nodes: how much of its cost depends on the size.

The cluster is that of `bench.cluster_data`. Between two evaluations, a quarter of a second apart, 25 agents report new
GPU figures. Milliseconds are CPU time per evaluation, from the changed facts to the findings, including the join of
the changed nodes and the update of all indexes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.cluster_data import write
from bench.detect import NOW, RULES_OF_PLATFORMS, Facts, read
from bench.report import Goal, Report
from monitor.cluster.facts_feed import FactsFeed, FactsUpdate
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ViewChanges
from monitor.detect.base import RuleContext
from monitor.detect.engine import Engine
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import SmallFacts

SMALL, LARGE = 500, 5000
CHANGED_NODES = 25
EVALUATIONS, INTERVAL_SECONDS = 80, 0.25
TIMEOUT_SECONDS = 900.0


def run() -> Report:
    """Measure both sizes, each in its own process."""
    with TemporaryDirectory() as name:
        small, large = (_measure(Path(name), nodes) for nodes in (SMALL, LARGE))
    goals = [
        Goal("eval_idle_growth_10x", large / small, 1.5, f"CPU of the same changes, {LARGE:,} nodes / {SMALL}"),
        Goal("eval_changed_node_ms", 1000 * large / CHANGED_NODES, None, f"CPU per changed node of {LARGE:,}"),
    ]
    return Report("evaluation", "Evaluation of changes", __doc__ or "", goals)


def _measure(directory: Path, nodes: int) -> float:
    data = directory / str(nodes)
    write(data, nodes)
    command = [sys.executable, "-m", "bench.evaluation", str(data)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    seconds: float = json.loads(done.stdout)
    return seconds


class Cluster:
    """A cluster with its view, facts and engine, as in the daemon."""

    def __init__(self, facts: Facts) -> None:
        inputs = facts.inputs
        self._agents = [agent for agent in inputs.agents if agent.snapshot is not None and agent.snapshot.gpu]
        self._builder = ViewBuilder(lambda pod: identify(pod, no_owners, RULES_OF_PLATFORMS, {}))
        self._builder.build(replace(inputs, agents=tuple(_answer(agent, NOW) for agent in inputs.agents)), NOW)
        self._events = {event.uid: event for event in facts.events}
        self._small = SmallFacts(sources=inputs.around.sources)
        self._feed = FactsFeed(self._take_update, "nvidia.com/gpu")
        self._engine = Engine(RULES, {})
        self._chance = random.Random(3)

    def _take_update(self) -> FactsUpdate:
        changes, nodes, pods = self._builder.take_changes()
        events, self._events = self._events, {}
        return FactsUpdate(changes, nodes, pods, events, self._small)

    def evaluate(self, now: float) -> None:
        """Evaluate what has changed."""
        changes = self._feed.update()
        self._engine.update(RuleContext(self._feed.facts, now), changes)

    def answers(self, now: float) -> tuple[AgentFact, ...]:
        """New answers of some agents, with other GPU figures."""
        return tuple(self._later(agent, now) for agent in self._chance.sample(self._agents, CHANGED_NODES))

    def _later(self, agent: AgentFact, now: float) -> AgentFact:
        assert agent.snapshot is not None
        assert agent.snapshot.gpu is not None
        change = msgspec.structs.replace
        gpus = tuple(
            change(gpu, utilization_ratio=self._chance.random()) if gpu.utilization_ratio else gpu
            for gpu in agent.snapshot.gpu.gpus
        )
        snapshot = change(agent.snapshot, at=now, gpu=change(agent.snapshot.gpu, gpus=gpus))
        return _answer(change(agent, snapshot=snapshot), now)

    def apply(self, answers: tuple[AgentFact, ...], now: float) -> None:
        """Join the nodes of these agents again."""
        self._builder.update(ViewChanges(agents=answers), now)


def _answer(agent: AgentFact, now: float) -> AgentFact:
    return msgspec.structs.replace(agent, received_at=now)


def main(directory: str) -> None:
    """Print the CPU seconds of one evaluation."""
    cluster = Cluster(read(Path(directory)))
    cluster.evaluate(NOW)
    took = 0.0
    for number in range(1, EVALUATIONS + 1):
        now = NOW + number * INTERVAL_SECONDS
        answers = cluster.answers(now)
        began = time.process_time()
        cluster.apply(answers, now)
        cluster.evaluate(now)
        took += time.process_time() - began
    print(json.dumps(took / EVALUATIONS))


if __name__ == "__main__":
    main(sys.argv[1])
