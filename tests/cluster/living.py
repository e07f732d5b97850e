"""A LiveCluster that runs during a test, and helpers to wait for and read its view."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from monitor.cluster.agents.poller import PollSettings
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.live import ClusterSettings, LiveCluster
from monitor.cluster.platforms import all_rules
from monitor.facts import GpuInventory, NodeSnapshot
from monitor.facts.cluster import ClusterView, GpuState, NodeView, SourceView
from tests.cluster.builders import card, process
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent

SOON = 30.0


def settings(
    *agents: FakeAgent, port: int = 1, cycle: float = 0.3, label: str = "app=gpuwarden-agent"
) -> ClusterSettings:
    return ClusterSettings(
        poll=PollSettings(interval=0.1, limit=3.0, crew=4, token=None),
        agents=tuple(agent.target for agent in agents),
        agent_label=label,
        agent_port=port,
        resource="nvidia.com/gpu",
        limits=StateLimits(settle=0.3, stale_after=60.0),
        rules=all_rules((), ("userName",)),
        cycle=cycle,
    )


@contextlib.contextmanager
def living(cluster: LiveCluster) -> Iterator[LiveCluster]:
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
        wait_until(
            lambda: not [t for t in threading.enumerate() if t.name == "view"], SOON, "the view thread has ended"
        )


def until(cluster: LiveCluster, holds: Callable[[ClusterView], object], what: str) -> ClusterView:
    """First view that satisfies a condition."""
    latest: list[ClusterView] = []

    def reached() -> bool:
        latest[:] = [cluster.view]
        return bool(holds(latest[0]))

    wait_until(reached, SOON, what)
    return latest[0]


def source(view: ClusterView, name: str) -> SourceView:
    return next(source for source in view.sources if source.name == name)


def missing(view: ClusterView) -> set[str]:
    return {source.name for source in view.sources if not source.ok}


def node_of(view: ClusterView, name: str) -> NodeView | None:
    return next((node for node in view.nodes if node.name == name), None)


def states(view: ClusterView) -> dict[int, GpuState]:
    return {gpu.index: gpu.state for gpu in view.gpus}


def two_gpus(node: str, *held_by: str) -> NodeSnapshot:
    """Snapshot of a node with two GPUs; the first ones run processes of these pods."""
    return NodeSnapshot(
        node=node,
        at=time.time(),
        agent_version="0",
        gpu=GpuInventory(gpus=(card(0, node), card(1, node))),
        gpu_processes=tuple(process(100 + i, i, node, pod_uid=f"uid-{pod}") for i, pod in enumerate(held_by)),
        pod_devices=(),
    )
