"""All rules on a cluster of 1,000 nodes with 8 GPUs each and 10,000 pods: duration of an evaluation and how it scales.

The cluster is that of `bench.cluster_data`, decoded and joined as in the daemon. Most nodes are healthy; on one in
twenty the disk is nearly full, a mount hangs and the registry is unreachable; 200 pods are pending. `outage` is the
same with one node in five down and its agent silent. Seconds are CPU time of the rules including their shared indexes;
each evaluation has fresh facts, five seconds after the previous one, with its history.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from bench.cluster_data import GPUS, write
from bench.cold import pages
from bench.plot import Bar, Plot
from bench.report import Goal, Report
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import all_rules, required_fields
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import NodeFact
from monitor.facts.node import NodeSnapshot
from monitor.kube.decode import stream

LARGE, SMALL = 1000, 100
NOW = 1_794_873_600.0  # 2026-11-17: the pods of the data were created in the days before
LOOKS = 7
BEAT = 5.0
ILL_EVERY, DOWN_EVERY = 20, 5
SEEN = tuple(SourceView(name=name, ok=True) for name in ("pods", "nodes", "events", "agents"))
RULES_OF_PLATFORMS = all_rules()


@dataclass(frozen=True)
class Facts:
    """Facts of Kubernetes and the agents."""

    inputs: ViewInputs
    events: tuple[Any, ...]


def run() -> Report:
    """Measure both sizes, each in its own process, and return the report."""
    with TemporaryDirectory() as name:
        found = {nodes: _measure(Path(name), nodes) for nodes in (SMALL, LARGE)}
    large, small = found[LARGE], found[SMALL]
    goals = [
        Goal(
            "detect_s", large["detect"], 0.5, f"all {len(RULES)} rules, one evaluation of {LARGE} nodes and 10,000 pods"
        ),
        Goal(
            "detect_growth_10x",
            large["detect"] / small["detect"],
            12,
            "growth of that with ten times the cluster",
        ),
        Goal("detect_outage_s", large["outage"], None, "the same while every fifth node is down"),
        Goal("detect_world_s", large["world"], None, "building the indexes of one evaluation"),
    ]
    rows = [
        (rule, f"{seconds * 1000:.1f}") for rule, seconds in sorted(large["rules"].items(), key=lambda item: -item[1])
    ]
    counts = [(what, str(count)) for what, count in sorted(large["found"].items())]
    return Report(
        name="detect",
        title="Detectors",
        how=" ".join((__doc__ or "").split("\n\n")[1].split()),
        goals=goals,
        tables=[("Each rule alone", ("rule", "CPU ms"), rows), ("Found", ("finding", "count"), counts)],
        plot=Plot(
            f"One look by all {len(RULES)} rules",
            "s of CPU",
            (("", [Bar(f"{nodes:,} nodes", each["detect"]) for nodes, each in found.items()]),),
        ),
    )


def _measure(directory: Path, nodes: int) -> dict[str, Any]:
    data = directory / str(nodes)
    write(data, nodes)
    done = subprocess.run(
        [sys.executable, "-m", "bench.detect", str(data)], check=True, capture_output=True, timeout=600
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(directory: Path) -> Facts:
    """Facts of a written cluster."""
    kind, decoder = stream.pods(required_fields(RULES_OF_PLATFORMS)), msgspec.json.Decoder(NodeSnapshot)
    pods = tuple(pod for page in pages(directory, "pods") for pod in kind.page(page).items)
    nodes = tuple(node for page in pages(directory, "nodes") for node in stream.NODES.page(page).items)
    events = tuple(event for page in pages(directory, "events") for event in stream.EVENTS.page(page).items)
    answers = (directory / "snapshots").read_bytes().splitlines()
    agents = tuple(_agent(decoder.decode(answer), number) for number, answer in enumerate(answers))
    return Facts(ViewInputs(agents, pods, nodes, ClusterContext(sources=SEEN, pods_known=True)), events)


def _agent(snapshot: NodeSnapshot, number: int) -> AgentFact:
    if number % ILL_EVERY:
        snapshot = _well(snapshot)
    return AgentFact(target=f"{snapshot.node}:9835", node=snapshot.node, snapshot=snapshot, received_at=NOW)


def _well(snapshot: NodeSnapshot) -> NodeSnapshot:
    """A node's snapshot without the problems of the full one."""
    change = msgspec.structs.replace
    disks = tuple(
        change(disk, used_bytes=disk.available_bytes, inodes_used=1000)
        for disk in snapshot.disk or ()
        if disk.size_bytes is not None
    )
    return change(
        snapshot,
        disk=disks,
        disk_io=tuple(change(io, busy_ratio=0.2, queue_length=0.5) for io in snapshot.disk_io or ()),
        mounts=tuple(change(mount, state="ok", error=None) for mount in snapshot.mounts or ()),
        probes=tuple(change(probe, ok=True, cause=None, error=None) for probe in snapshot.probes or ()),
    )


def outage(facts: Facts) -> Facts:
    """The same cluster with every fifth node down and its agent silent."""
    down = {node.name for number, node in enumerate(facts.inputs.nodes) if number % DOWN_EVERY == 0}
    change = msgspec.structs.replace

    def node(fact: NodeFact) -> NodeFact:
        return change(fact, ready=None, ready_since=NOW - 900) if fact.name in down else fact

    def agent(fact: AgentFact) -> AgentFact:
        return change(fact, silent_since=NOW - 890, received_at=NOW - 900) if fact.node in down else fact

    inputs = replace(
        facts.inputs,
        nodes=tuple(node(fact) for fact in facts.inputs.nodes),
        agents=tuple(agent(fact) for fact in facts.inputs.agents),
    )
    return Facts(inputs, facts.events)


WorldAt = Callable[[float], tuple[ClusterFacts, ClusterView]]


def worlds(facts: Facts) -> WorldAt:
    """Function that builds the facts and the view of a time, as the daemon does."""
    builder = ViewBuilder(lambda pod: identify(pod, no_owners, RULES_OF_PLATFORMS, {}))
    inputs = facts.inputs
    owners = {pod.uid: identify(pod, no_owners, RULES_OF_PLATFORMS, {}) for pod in inputs.pods}

    def at(now: float) -> tuple[ClusterFacts, ClusterView]:
        fresh = tuple(
            agent if agent.silent_since else msgspec.structs.replace(agent, received_at=now - 1)
            for agent in inputs.agents
        )
        view = builder.build(replace(inputs, agents=fresh), now).view()
        world = make_cluster_facts(
            pods=inputs.pods, nodes=inputs.nodes, events=facts.events, agents=fresh, view=view, identities=owners
        )
        return world, view

    return at


def looks(world_at: WorldAt) -> tuple[float, DetectionHistory]:
    """Duration of an evaluation, and the last result."""
    history, took = DetectionHistory(), []
    for number in range(LOOKS):
        situation = RuleContext(world_at(NOW + number * BEAT)[0], NOW + number * BEAT)
        seconds, found = _timed(partial(detect, RULES, {}, situation, history))
        history = found.history
        took.append(seconds)
    return statistics.median(took[1:]), history


def alone(world_at: WorldAt, history: DetectionHistory) -> dict[str, float]:
    """Duration of each rule alone, with the indexes it needs."""
    now = NOW + LOOKS * BEAT
    return {
        rule.rule: _timed(partial(detect, [rule], {}, RuleContext(world_at(now)[0], now), history))[0] for rule in RULES
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def main(directory: str) -> None:
    facts = read(Path(directory))
    if any(
        len(agent.snapshot.gpu.gpus) != GPUS for agent in facts.inputs.agents if agent.snapshot and agent.snapshot.gpu
    ):
        raise RuntimeError("nodes with other than 8 cards are not what was to be measured")
    world_at = worlds(facts)
    seconds, history = looks(world_at)
    found = Counter(f"{finding.rule}: {finding.cause}" for finding in history.findings)
    result = {
        "detect": seconds,
        "outage": looks(worlds(outage(facts)))[0],
        "world": _timed(
            lambda: make_cluster_facts(pods=facts.inputs.pods, nodes=facts.inputs.nodes, events=facts.events)
        )[0],
        "rules": alone(world_at, history),
        "found": found,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
