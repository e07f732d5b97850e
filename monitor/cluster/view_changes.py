"""Which parts of a node differ between two of its states."""

from __future__ import annotations

import msgspec

from monitor.facts.agents import AgentFact
from monitor.facts.changes import AGENT, ALL_PARTS, GPU_STATES, GPUS, changed_gpu_parts
from monitor.facts.cluster import GpuView, NodeView
from monitor.facts.node import changed_parts


def changed_agent_parts(before: AgentFact | None, after: AgentFact) -> frozenset[str]:
    """Changed parts of an agent. Its times change with every poll, which alone does not count."""
    if before is None or before.snapshot is None or after.snapshot is None:
        return ALL_PARTS
    same = (before.silent_since, before.error, before.target) == (after.silent_since, after.error, after.target)
    return changed_parts(before.snapshot, after.snapshot) | (frozenset() if same else {AGENT})


def changed_view_parts(
    before: tuple[NodeView, tuple[GpuView, ...]] | None, after: tuple[NodeView, tuple[GpuView, ...]]
) -> frozenset[str]:
    """Changed parts of a joined node; the time of the last answer does not count."""
    if before is None:
        return frozenset((AGENT, GPUS, GPU_STATES))
    changed = changed_gpu_parts(before[1], after[1])
    same = msgspec.structs.replace(before[0], heard_at=after[0].heard_at) == after[0]
    return changed if same else changed | {AGENT}
