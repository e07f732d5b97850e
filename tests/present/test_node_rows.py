"""The table of nodes: figures of each node, and its orders."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, NodeView
from monitor.present.node_rows import ORDERS, NodeRow, in_order, node_rows
from monitor.present.rows import ClusterIndex
from tests.support.snapshots import AT, full_snapshot


def row(name: str, **figures: float) -> NodeRow:
    return dataclasses.replace(NodeRow(NodeView(name=name), (), ()), **figures)  # type: ignore[arg-type]


ROWS = (
    row("gpu-10", utilization_ratio=0.5, temperature_celsius=60.0),
    row("gpu-2", utilization_ratio=0.9),
    row("gpu-1", temperature_celsius=80.0, utilization_ratio=0.5),
)
ORDERED = [
    ("", ["gpu-1", "gpu-2", "gpu-10"]),
    ("name", ["gpu-1", "gpu-2", "gpu-10"]),
    ("-name", ["gpu-10", "gpu-2", "gpu-1"]),
    ("utilization", ["gpu-2", "gpu-1", "gpu-10"]),
    ("-utilization", ["gpu-1", "gpu-10", "gpu-2"]),
    ("temperature", ["gpu-1", "gpu-10", "gpu-2"]),
    ("-temperature", ["gpu-10", "gpu-1", "gpu-2"]),
    ("nonsense", ["gpu-1", "gpu-2", "gpu-10"]),
]


@pytest.mark.parametrize(("order", "expect"), ORDERED)
def test_order(order: str, expect: list[str]) -> None:
    assert [each.node.name for each in in_order(ROWS, order)] == expect


def test_nodes_with_problems_are_first_by_default() -> None:
    broken = NodeRow(NodeView(name="gpu-3"), ("not ready",), ())
    assert next(each.node.name for each in in_order((*ROWS, broken), "")) == "gpu-3"


def only(node: NodeView) -> NodeRow:
    snapshot = full_snapshot()
    agent = AgentFact(target="a", node=node.name, snapshot=snapshot, received_at=AT)
    (made,) = node_rows(ClusterIndex(ClusterView(at=AT, nodes=(node,))), {node.name: agent}, "en")
    return made


def test_a_node_has_the_figures_of_its_agent() -> None:
    made, snapshot = only(NodeView(name="n", has_agent=True)), full_snapshot()
    assert snapshot.host is not None
    assert snapshot.gpu is not None
    assert made.load_ratio == (snapshot.host.load1 or 0) / snapshot.host.cpus
    known = [gpu.temperature_celsius for gpu in snapshot.gpu.gpus if gpu.temperature_celsius is not None]
    assert made.temperature_celsius == max(known)
    assert made.disk is not None
    assert made.memory_ratio is not None
    assert 0 < made.memory_ratio < 1


def test_of_a_silent_agent_nothing_is_known() -> None:
    node = NodeView(name="n", has_agent=True)
    silent = only(replace(node, silent_since=AT))
    assert [figure(silent) for name, figure in ORDERS.items() if name != "state"] == [None] * (len(ORDERS) - 1)
